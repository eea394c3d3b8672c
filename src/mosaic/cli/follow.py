"""Following one run until it is over: a small live view on a terminal, plain lines elsewhere."""

import json
import select
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

from mosaic.cli.inbox import Inbox
from mosaic.cli.live_runs import LiveRuns
from mosaic.cli.safe_output import raw
from mosaic.cli.terminal_text import STATE_STYLE, is_screen, paint
from mosaic.model.errors import MosaicError, NoDaemon
from mosaic.model.states import RunState
from mosaic.present.durations import format_duration
from mosaic.present.observed import observed_lines
from mosaic.present.scores import (
    count,
    describe_score,
    describe_stored,
    env_steps,
    is_evaluation,
    is_rate_known,
    is_search,
    step_word,
    trace,
)
from mosaic.present.states import MEANING, explain
from mosaic.present.text import bar, number, printable

if TYPE_CHECKING:
    from rich.live import Live
    from rich.text import Text

    from mosaic.client import Run, TrainerClient

Ending = Callable[["Run"], str]

EVERY_MS = 200
TICK_S = 1.0  # the view shows how long the run has taken
LINE_EVERY_S = 5.0
QUIET_LINE_EVERY_S = 30.0
PATIENCE_S = 120.0  # enough for a restart of the daemon, and for the 30 s before a tailer starts one


def follow(client: "TrainerClient", run: "Run", ending: "Ending | None" = None) -> int:
    """Show the run until it is over, then print its summary. Ctrl-C asks whether to detach or cancel."""
    try:
        run = _show(client, run)
        print((ending or summary)(run))
    except KeyboardInterrupt:
        return interrupted(client, run)
    # WatchRuns sends runs without their config, which these depend on.
    whole = client.get_run(run.run_id)
    _print_observed(whole)
    _print_next_steps(whole)
    return exit_code(run)


def _print_observed(run: "Run") -> None:
    for line in observed_lines(run):
        print(line if line.startswith("Nothing") else f"observed {line}")


def _print_next_steps(run: "Run") -> None:
    from mosaic.cli.resume import next_steps

    steps = next_steps(run)
    if steps:
        print("Next: " + "\n      ".join(steps))


def wait_quietly(client: "TrainerClient", run: "Run") -> int:
    """Wait until the run is over and print it as JSON."""
    for latest in updates(client, run.run_id):
        run = latest
    # WatchRuns sends runs without their history and config.
    print(json.dumps(client.get_run(run.run_id).to_dict(), indent=1))
    return exit_code(run)


def exit_code(run: "Run") -> int:
    return 0 if run.state is RunState.TERMINATED else 1


def updates(client: "TrainerClient", run_id: str) -> "Iterator[Run]":
    """Yield the run at every change and at least once a second; the last one is over.

    While the daemon restarts, `life` says so.
    """
    with Inbox(client) as inbox:
        runs = LiveRuns(inbox, [run_id], EVERY_MS).follow()
        while True:
            inbox.wait(TICK_S)
            inbox.deliver()
            if (run := latest_of(runs, run_id)) is not None:
                yield run
                if run.state.is_over:
                    return


def latest_of(runs: LiveRuns, run_id: str) -> "Run | None":
    """The run as last reported; None before the first report. Raises what ends a view."""
    latest_problem(runs)
    run = runs.by_id.get(run_id)
    if run is None and runs.is_known:
        raise MosaicError(f"Run {run_id} was deleted.")
    if run is not None and runs.silent_s:
        return replace(run, life="waiting for the daemon, which does not answer")
    return run


def latest_problem(runs: LiveRuns) -> None:
    """Raise what ends a view."""
    if runs.error:
        raise runs.error
    if runs.silent_s > PATIENCE_S:
        raise NoDaemon(runs.problem or "The daemon does not answer. Find the reason with: mosaic doctor")


def _show(client: "TrainerClient", run: "Run") -> "Run":
    if not is_screen(sys.stdout):
        return show_lines(client, run)
    return _show_live(client, run)


def _show_live(client: "TrainerClient", run: "Run") -> "Run":
    from rich.console import Console
    from rich.live import Live

    console = Console(file=raw(sys.stdout), highlight=False)
    view = Live(live_view(run, console.width), console=console, auto_refresh=False, transient=True)
    with opened(view) as live:
        for latest in updates(client, run.run_id):
            run = latest
            live.update(live_view(run, console.width), refresh=True)
    return run


@contextmanager
def opened(live: "Live") -> "Iterator[Live]":
    """Like rich's own context manager, but restores the terminal even if Ctrl-C comes while the view is set up."""
    try:
        live.start()
        yield live
    finally:
        live.stop()


def show_lines(client: "TrainerClient", run: "Run") -> "Run":
    """Print a line per change, until the run is over."""
    print(f"Run {run.run_id} ({printable(run.name)})", flush=True)
    pace = Pace()
    for latest in updates(client, run.run_id):
        run = latest
        # The summary reports the end.
        if not run.state.is_over and (text := pace.line(run)):
            print(text, flush=True)
    return run


class Pace:
    """Decides when a run gets a line: at a change of state, at a new problem, and every few seconds."""

    def __init__(self) -> None:
        self._printed: tuple[str, ...] = ()
        self._at = 0.0

    def line(self, run: "Run") -> str:
        """The line, or an empty text. A new state is explained; later lines only name it."""
        # Compare only the first words of "quiet 6 min" and "draining 3 MB": the numbers change all the time.
        now = (str(run.state), run.reason, run.waiting_for, *(text.split(" ")[0] for text in (run.life, run.telemetry)))
        # A run that waits or starts changes less often than one that trains.
        every_s = LINE_EVERY_S if run.state is RunState.EXECUTING or run.life else QUIET_LINE_EVERY_S
        is_new, is_due = now != self._printed, time.monotonic() - self._at > every_s and not run.state.is_over
        if not (is_new or is_due):
            return ""
        self._printed, self._at = now, time.monotonic()
        unchanged = f"{run.state}: still waiting" if run.waiting_for else str(run.state)
        return progress_line(run, explain(run) if is_new else unchanged)


def progress_line(run: "Run", state: str) -> str:
    """One line with state, progress, rate and return."""
    parts = [format_duration(run.duration_s), state]
    if run.progress is not None:
        parts.append(f"{run.progress:.0%}")
    if env_steps(run):
        parts.append(count(env_steps(run), step_word(run)))
    if is_rate_known(run) and not is_search(run):
        parts.append(f"{number(run.summary.steps_per_s)} steps/s")
    if run.eta_s is not None:
        parts.append(f"{format_duration(run.eta_s)} left")
    return "  ".join([*parts, *filter(None, [describe_score(run)])])


def live_view(run: "Run", width: int = 80) -> "Text":
    """Four lines for a terminal: name, explained state, progress, score."""
    from rich.text import Text

    style = STATE_STYLE[run.state]
    text = Text(no_wrap=True, overflow="ellipsis")
    text.append(printable(run.name or run.worker_name), "bold").append(f"  {run.run_id}\n", "dim")
    text.append(explain(run), "yellow" if run.life or run.waiting_for or run.telemetry else style)
    text.append(f"\n{describe_progress(run, 30 if width >= 80 else 10)}\n")
    if score := describe_score(run):
        text.append(trace(run, 30), "green").append(f"  {score}, {count(run.summary.episodes, 'episode')} in total")
    else:
        text.append("no episode has ended yet", "dim")
    return text


def describe_progress(run: "Run", bar_width: int = 30) -> str:
    has_rate = is_rate_known(run) and not is_search(run)
    rate = [f"{number(run.summary.steps_per_s)} steps/s"] if has_rate else []
    parts = [*rate, format_duration(run.duration_s)]
    if run.progress is None:
        return "  ".join([count(env_steps(run), step_word(run)), *parts])
    if run.eta_s is not None:
        parts.append(f"{format_duration(run.eta_s)} left")
    done = f"{env_steps(run):,}/{run.total_steps:,}"
    return "  ".join([bar(run.progress, bar_width), f"{run.progress:>4.0%}", done, *parts])


def summary(run: "Run") -> str:
    """What is printed when a run is over: state, what was stored, score, folder and log."""
    return "\n".join(filter(None, [how_it_ended(run), describe_score(run), run.run_dir, _log_command(run)]))


def how_it_ended(run: "Run") -> str:
    state = paint(str(run.state), STATE_STYLE[run.state])
    why = run.reason.strip() if run.state is not RunState.TERMINATED else MEANING[run.state]
    reason = f": {chr(10).join(map(printable, why.splitlines()))}" if why else ""
    return f"{state}{reason}\n{_what_was_done(run)}"


def _log_command(run: "Run") -> str:
    is_useful = run.state is RunState.FAULTED or not run.summary.events
    return f"See its output with: mosaic logs {run.run_id}" if is_useful else ""


def _what_was_done(run: "Run") -> str:
    """Env steps and stored rows differ: a worker may report every tenth step, or none."""
    took = format_duration(run.duration_s)
    if env_steps(run):
        # A resumed run continues to count from its checkpoint.
        steps = f"{count(env_steps(run), step_word(run))} in {took}"
        steps = f"reached {step_word(run)} {env_steps(run):,} in {took}" if run.relation == "resume" else steps
    else:
        steps = f"took {took}" if is_evaluation(run) else f"took {took}, no env steps reported"
    parts = [steps, describe_stored(run)]
    if rejects := run.summary.rejects:
        parts.append(f"{count(rejects, 'line')} rejected (see: mosaic logs {run.run_id} --rejects)")
    if run.telemetry:
        parts.append(f"telemetry: {printable(run.telemetry)}")
    return " · ".join(parts)


def interrupted(client: "TrainerClient", run: "Run") -> int:
    """Ask, after Ctrl-C, whether to detach or cancel; returns the exit code."""
    if shall_cancel():
        client.cancel_run(run.run_id)
        try:
            print(summary(_show(client, run)))
        except KeyboardInterrupt:
            print(f"\nRun {run.run_id} is being cancelled.", file=sys.stderr)
        return 130
    print(f"Detached. The run continues. Watch it with: mosaic watch {run.run_id}", file=sys.stderr)
    return 130


def shall_cancel(meanwhile: str = "the run continues", what: str = "it") -> bool:
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        return False
    try:
        # Inside the try block, because experienced users press Ctrl-C again before the question is printed.
        print(f"\nDetach ({meanwhile}) or cancel {what}? [d/c] ", end="", flush=True)
        # input() can miss a Ctrl-C that comes just before it starts to read.
        while not select.select([sys.stdin], [], [], 0.1)[0]:
            pass
        return sys.stdin.readline().strip().lower().startswith("c")
    except KeyboardInterrupt:
        print()
        return False
