"""Following one run to its end: a small live picture on a terminal, plain lines elsewhere."""

import json
import select
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

from mosaic.cli.durations import format_duration
from mosaic.cli.paint import STATE_STYLE, bar, number, paint, printable, sparkline
from mosaic.model.errors import NoDaemon
from mosaic.model.states import RunState

if TYPE_CHECKING:
    from rich.live import Live
    from rich.text import Text

    from mosaic.client import Run, TrainerClient

EVERY_S = 0.2
LINE_EVERY_S = 5.0
PATIENCE_S = 120.0  # a daemon's restart, or the tailer's 30 s before it starts one


def follow(client: "TrainerClient", run: "Run") -> int:
    """Show the run until it is over; Ctrl-C asks whether to detach or cancel."""
    try:
        return exit_code(_show(client, run))
    except KeyboardInterrupt:
        return _interrupted(client, run)


def wait_quietly(client: "TrainerClient", run: "Run") -> int:
    """Wait for the end and print the run as JSON."""
    for latest in polls(client, run.run_id):
        run = latest
    print(json.dumps(run.to_dict(), indent=1))
    return exit_code(run)


def exit_code(run: "Run") -> int:
    return 0 if run.state is RunState.TERMINATED else 1


def polls(client: "TrainerClient", run_id: str) -> "Iterator[Run]":
    """The run again and again, the last time when it is over. A daemon's restart is waited for, and said."""
    deadline, run = time.monotonic() + PATIENCE_S, None
    while run is None or not run.state.is_over:
        try:
            run = client.get_run(run_id)
            deadline = time.monotonic() + PATIENCE_S
        except NoDaemon:
            if run is None or time.monotonic() > deadline:
                raise
            run = replace(run, life="no daemon answers; waiting for one")
        yield run
        time.sleep(0.0 if run.state.is_over else EVERY_S)


def _show(client: "TrainerClient", run: "Run") -> "Run":
    show = _show_live if sys.stdout.isatty() else _show_lines
    run = show(client, run)
    print(ending(run))
    return run


def _show_live(client: "TrainerClient", run: "Run") -> "Run":
    from rich.console import Console
    from rich.live import Live

    with opened(Live(picture(run), console=Console(highlight=False), auto_refresh=False, transient=True)) as live:
        for latest in polls(client, run.run_id):
            run = latest
            live.update(picture(run), refresh=True)
    return run


@contextmanager
def opened(live: "Live") -> "Iterator[Live]":
    """rich's own `with` leaves the terminal as it is when Ctrl-C comes while the view is being set up."""
    try:
        live.start()
        yield live
    finally:
        live.stop()


def _show_lines(client: "TrainerClient", run: "Run") -> "Run":
    said, at = "", 0.0
    print(f"Run {run.run_id} ({printable(run.name)})", flush=True)
    for latest in polls(client, run.run_id):
        run = latest
        if str(run.state) != said or time.monotonic() - at > LINE_EVERY_S:
            said, at = str(run.state), time.monotonic()
            print(line(run), flush=True)
    return run


def line(run: "Run") -> str:
    """One line of a log: state, progress, rate, return."""
    parts = [format_duration(run.duration_s), str(run.state)]
    if run.progress is not None:
        parts.append(f"{run.progress:.0%}")
    if run.summary.last_step >= 0:
        parts.append(f"step {run.summary.last_step}")
    if run.state is RunState.EXECUTING:
        parts.append(f"{number(run.summary.steps_per_s)} steps/s")
    if run.eta_s is not None:
        parts.append(f"{format_duration(run.eta_s)} left")
    if run.summary.last_return is not None:
        parts.append(f"return {number(run.summary.last_return)}")
    return "  ".join(parts + [printable(word) for word in (run.waiting, run.life, run.telemetry) if word])


def picture(run: "Run") -> "Text":
    """Three lines for a terminal."""
    from rich.text import Text

    text = Text()
    text.append(printable(run.name or run.worker_name), "bold").append(f"  {run.run_id}  ", "dim")
    text.append(str(run.state), STATE_STYLE[run.state])
    for word in (run.waiting, run.life, run.telemetry):
        text.append(f"  {printable(word)}" if word else "", "yellow")
    text.append(f"\n{progress_words(run)}\n")
    if run.summary.recent_returns:
        text.append(sparkline(run.summary.recent_returns, 50), "green")
        text.append(f"  return {number(run.summary.last_return)}, episode {run.summary.episodes}")
    else:
        text.append("no episode yet", "dim")
    return text


def progress_words(run: "Run") -> str:
    rate = [f"{number(run.summary.steps_per_s)} steps/s"] if run.state is RunState.EXECUTING else []
    words = [*rate, format_duration(run.duration_s)]
    if run.progress is None:
        return "  ".join([f"step {max(0, run.summary.last_step)}", *words])
    if run.eta_s is not None:
        words.append(f"{format_duration(run.eta_s)} left")
    done = f"{min(run.summary.last_step + 1, run.total_steps or 0)}/{run.total_steps}"
    return "  ".join([bar(run.progress, 30), f"{run.progress:>4.0%}", done, *words])


def ending(run: "Run") -> str:
    """The last words: how it ended, what there is, where to look."""
    state = paint(str(run.state), STATE_STYLE[run.state])
    reason = f": {run.reason.strip()}" if run.reason and run.state is not RunState.TERMINATED else ""
    s = run.summary
    # Many workers tell how far they are without telling every step.
    counts = {"steps": max(s.steps, s.last_step), "episodes": s.episodes, "metrics": s.metrics}
    counted = ", ".join(f"{count} {kind}" for kind, count in counts.items() if count > 0) or "nothing measured"
    told = f"{counted} in {format_duration(run.duration_s)}"
    last = f", last return {number(s.last_return)}" if s.last_return is not None else ""
    hint = f"\nIts log: mosaic logs {run.run_id}" if run.state is RunState.FAULTED else ""
    return f"{state}{reason}\n{told}{last}\n{run.run_dir}{hint}"


def _interrupted(client: "TrainerClient", run: "Run") -> int:
    if _wants_cancel():
        client.cancel_run(run.run_id)
        try:
            _show(client, run)
        except KeyboardInterrupt:
            print(f"\nRun {run.run_id} is being ended.", file=sys.stderr)
        return 130
    print(f"Detached: the run goes on. Watch it with: mosaic watch {run.run_id}", file=sys.stderr)
    return 130


def _wants_cancel() -> bool:
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        return False
    try:
        # The question inside as well: who knows it answers it with Ctrl-C before it is all printed.
        print("\nDetach (the run goes on) or cancel it? [d/c] ", end="", flush=True)
        # input() can sleep through a Ctrl-C that comes just before it reads.
        while not select.select([sys.stdin], [], [], 0.1)[0]:
            pass
        return sys.stdin.readline().strip().lower().startswith("c")
    except KeyboardInterrupt:
        print()
        return False
