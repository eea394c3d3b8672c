"""Following one run to its end: a small live picture on a terminal, plain lines elsewhere."""

import json
import select
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

from mosaic.cli.durations import format_duration
from mosaic.cli.inbox import Inbox
from mosaic.cli.live_runs import LiveRuns
from mosaic.cli.scores import count, env_steps, is_evaluation, is_rate_known, score_words, stored_words, trace
from mosaic.cli.states import MEANING, explain
from mosaic.cli.terminal_text import STATE_STYLE, bar, is_screen, number, paint, printable
from mosaic.model.errors import MosaicError, NoDaemon
from mosaic.model.states import RunState

if TYPE_CHECKING:
    from rich.live import Live
    from rich.text import Text

    from mosaic.client import Run, TrainerClient

Ending = Callable[["Run"], str]

EVERY_MS = 200
TICK_S = 1.0  # the time that has passed is part of the picture
LINE_EVERY_S = 5.0
QUIET_LINE_EVERY_S = 30.0
PATIENCE_S = 120.0  # a daemon's restart, or the tailer's 30 s before it starts one


def follow(client: "TrainerClient", run: "Run", ending: "Ending | None" = None) -> int:
    """Show the run until it is over, then how it ended; Ctrl-C asks whether to detach or cancel."""
    try:
        run = _show(client, run)
        print((ending or last_words)(run))
    except KeyboardInterrupt:
        return _interrupted(client, run)
    _tell_next_steps(client, run)
    return exit_code(run)


def _tell_next_steps(client: "TrainerClient", run: "Run") -> None:
    from mosaic.cli.resume import next_steps

    # What is watched comes without its config, which tells what can be done with it.
    steps = next_steps(client.get_run(run.run_id))
    if steps:
        print("Next: " + "\n      ".join(steps))


def wait_quietly(client: "TrainerClient", run: "Run") -> int:
    """Wait for the end and print the run as JSON."""
    for latest in turns(client, run.run_id):
        run = latest
    # What is watched comes without history and config.
    print(json.dumps(client.get_run(run.run_id).to_dict(), indent=1))
    return exit_code(run)


def exit_code(run: "Run") -> int:
    return 0 if run.state is RunState.TERMINATED else 1


def turns(client: "TrainerClient", run_id: str) -> "Iterator[Run]":
    """The run at every change, at least once a second, and the last time when it is over. A restart of the daemon is
    waited for, and said."""
    with Inbox(client) as inbox:
        runs = LiveRuns(inbox, [run_id], EVERY_MS).follow()
        while True:
            inbox.wait(TICK_S)
            inbox.deliver()
            if (run := _latest(runs, run_id)) is not None:
                yield run
                if run.state.is_over:
                    return


def _latest(runs: LiveRuns, run_id: str) -> "Run | None":
    if runs.error:
        raise runs.error
    if runs.silent_s > PATIENCE_S:
        raise NoDaemon(runs.problem or "The daemon does not answer. Look at it with: mosaic doctor")
    run = runs.by_id.get(run_id)
    if run is None and runs.is_known:
        raise MosaicError(f"Run {run_id} was deleted.")
    if run is not None and runs.silent_s:
        return replace(run, life="no daemon answers; waiting for one")
    return run


def _show(client: "TrainerClient", run: "Run") -> "Run":
    if not is_screen(sys.stdout):
        return show_lines(client, run)
    return _show_live(client, run)


def _show_live(client: "TrainerClient", run: "Run") -> "Run":
    from rich.console import Console
    from rich.live import Live

    console = Console(highlight=False)
    view = Live(picture(run, console.width), console=console, auto_refresh=False, transient=True)
    with opened(view) as live:
        for latest in turns(client, run.run_id):
            run = latest
            live.update(picture(run, console.width), refresh=True)
    return run


@contextmanager
def opened(live: "Live") -> "Iterator[Live]":
    """rich's own `with` leaves the terminal as it is when Ctrl-C comes while the view is being set up."""
    try:
        live.start()
        yield live
    finally:
        live.stop()


def show_lines(client: "TrainerClient", run: "Run") -> "Run":
    """A line per change, until the run is over."""
    print(f"Run {run.run_id} ({printable(run.name)})", flush=True)
    pace = Pace()
    for latest in turns(client, run.run_id):
        run = latest
        # Its end is told by the last words.
        if not run.state.is_over and (words := pace.words(run)):
            print(words, flush=True)
    return run


class Pace:
    """When a run is worth a line: its state changed, something new is wrong with it, or some seconds have passed."""

    def __init__(self) -> None:
        self._said: tuple[str, ...] = ()
        self._at = 0.0

    def words(self, run: "Run") -> str:
        """The line, or nothing. A new state is explained, an old one only named."""
        # The numbers in "quiet 6 min" and "draining 3 MB" change all the time.
        now = (str(run.state), run.reason, run.waiting_for, *(word.split(" ")[0] for word in (run.life, run.telemetry)))
        # A run that waits or starts has nothing new to say for a while.
        every_s = LINE_EVERY_S if run.state is RunState.EXECUTING or run.life else QUIET_LINE_EVERY_S
        is_new, is_due = now != self._said, time.monotonic() - self._at > every_s and not run.state.is_over
        if not (is_new or is_due):
            return ""
        self._said, self._at = now, time.monotonic()
        return line(run, explain(run) if is_new else str(run.state))


def line(run: "Run", state: str) -> str:
    """One line of a log: state, progress, rate, return."""
    parts = [format_duration(run.duration_s), state]
    if run.progress is not None:
        parts.append(f"{run.progress:.0%}")
    if env_steps(run):
        parts.append(count(env_steps(run), "env step"))
    if is_rate_known(run):
        parts.append(f"{number(run.summary.steps_per_s)} steps/s")
    if run.eta_s is not None:
        parts.append(f"{format_duration(run.eta_s)} left")
    return "  ".join([*parts, *filter(None, [score_words(run)])])


def picture(run: "Run", width: int = 80) -> "Text":
    """Four lines for a terminal: who, its state explained, how far, how well."""
    from rich.text import Text

    style = STATE_STYLE[run.state]
    text = Text(no_wrap=True, overflow="ellipsis")
    text.append(printable(run.name or run.worker_name), "bold").append(f"  {run.run_id}\n", "dim")
    text.append(explain(run), "yellow" if run.life or run.waiting_for or run.telemetry else style)
    text.append(f"\n{progress_words(run, 30 if width >= 80 else 10)}\n")
    if words := score_words(run):
        text.append(trace(run, 30), "green").append(f"  {words}, {count(run.summary.episodes, 'episode')} in all")
    else:
        text.append("no episode yet", "dim")
    return text


def progress_words(run: "Run", bar_width: int = 30) -> str:
    rate = [f"{number(run.summary.steps_per_s)} steps/s"] if is_rate_known(run) else []
    words = [*rate, format_duration(run.duration_s)]
    if run.progress is None:
        return "  ".join([count(env_steps(run), "env step"), *words])
    if run.eta_s is not None:
        words.append(f"{format_duration(run.eta_s)} left")
    done = f"{env_steps(run):,}/{run.total_steps:,}"
    return "  ".join([bar(run.progress, bar_width), f"{run.progress:>4.0%}", done, *words])


def last_words(run: "Run") -> str:
    """How it ended, what there is, how well it did, where to look."""
    return "\n".join(filter(None, [how_it_ended(run), score_words(run), run.run_dir, _where_to_look(run)]))


def how_it_ended(run: "Run") -> str:
    state = paint(str(run.state), STATE_STYLE[run.state])
    why = run.reason.strip() if run.state is not RunState.TERMINATED else MEANING[run.state]
    reason = f": {chr(10).join(map(printable, why.splitlines()))}" if why else ""
    return f"{state}{reason}\n{_measured(run)}"


def _where_to_look(run: "Run") -> str:
    if run.state is RunState.FAULTED:
        return f"Its log: mosaic logs {run.run_id}"
    return "" if run.summary.events else f"Its output: mosaic logs {run.run_id}"


def _measured(run: "Run") -> str:
    """What the env did and what was stored are two things: a worker may tell every tenth step, or none."""
    took = format_duration(run.duration_s)
    if env_steps(run):
        # A resumed run counts on from its checkpoint.
        steps = f"{count(env_steps(run), 'env step')} in {took}"
        steps = f"reached env step {env_steps(run):,} in {took}" if run.relation == "resume" else steps
    else:
        steps = f"took {took}" if is_evaluation(run) else f"took {took}, no env steps reported"
    parts = [steps, stored_words(run)]
    if rejects := run.summary.rejects:
        parts.append(f"{count(rejects, 'line')} rejected (see: mosaic logs {run.run_id} --rejects)")
    if run.telemetry:
        parts.append(f"telemetry: {printable(run.telemetry)}")
    return " · ".join(parts)


def _interrupted(client: "TrainerClient", run: "Run") -> int:
    if _wants_cancel():
        client.cancel_run(run.run_id)
        try:
            print(last_words(_show(client, run)))
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
