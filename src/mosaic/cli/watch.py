"""`mosaic watch`: a live view of all runs or of one; plain lines where there is no terminal."""

import argparse
import select
import signal
import sys
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from mosaic.cli.connection import connected
from mosaic.cli.inbox import Inbox
from mosaic.cli.live_runs import LiveRuns
from mosaic.cli.safe_output import raw
from mosaic.cli.terminal_text import is_screen
from mosaic.cli.verb import RUN_HELP, add_verb
from mosaic.present.text import printable

if TYPE_CHECKING:
    from mosaic.cli.keyboard import Keyboard
    from mosaic.cli.verb import Verbs
    from mosaic.client import Run, TrainerClient

TICK_S = 1.0  # redraw at least this often: the view shows the time and the age of runs
DRAW_S = 0.1  # collect updates for this long before drawing; keys are handled immediately
NEWEST = 20  # how many of the runs that are over get a line at the start
EXAMPLES = """
mosaic watch                    all runs; press ? for the keys
mosaic watch 01JCQ              one run
mosaic watch > runs.log         one line per change, until no run is live
"""


def add_verbs(verbs: "Verbs") -> None:
    parser = add_verb(verbs, "watch", watch, "watch all runs, or one run, live", EXAMPLES)
    parser.add_argument("run", metavar="RUN", nargs="?", default="", help=f"start with this run: {RUN_HELP}")


def watch(args: argparse.Namespace) -> int:
    with connected(args) as client:
        run = client.get_run(args.run) if args.run else None
        if is_screen(sys.stdout) and sys.stdin.isatty():
            _keep_open(client, run)
        elif run:
            from mosaic.cli.follow import show_lines, summary

            print(summary(show_lines(client, run)))
        else:
            print_lines(client)
    return 0


# ---- plain lines


def print_lines(client: "TrainerClient") -> None:
    """Print a line per change of any run, until no run is live."""
    from mosaic.cli.follow import Pace

    paces: "defaultdict[str, Pace]" = defaultdict(Pace)
    with Inbox(client) as inbox:
        runs, problem = LiveRuns(inbox).follow(), ""
        while True:
            inbox.wait(TICK_S)
            inbox.deliver()
            if runs.error:
                raise runs.error
            if runs.problem != problem:
                problem = runs.problem
                print(f"{problem} Waiting for it." if problem else "The daemon answers again.", flush=True)
            for run in _worth_a_line(runs, is_first=not paces):
                if line := paces[run.run_id].line(run):
                    print(f"{run.run_id}  {printable(run.name or run.worker_name)}  {line}", flush=True)
            if runs.is_known and all(run.state.is_over for run in runs.by_id.values()):
                print("" if runs.by_id else "No runs. Start one with: mosaic run toy steps=500 rate=50\n", end="")
                return


def _worth_a_line(runs: LiveRuns, is_first: bool) -> "list[Run]":
    """The runs that changed, oldest first; at the start only the newest of those that are over."""
    ids = runs.changes() | {run.run_id for run in runs.by_id.values() if not run.state.is_over}
    found = sorted((runs.by_id[run_id] for run_id in ids if run_id in runs.by_id), key=lambda run: run.run_id)
    if not is_first:
        return found
    over = [run.run_id for run in found if run.state.is_over][-NEWEST:]
    return [run for run in found if not run.state.is_over or run.run_id in over]


# ---- the screen


def _keep_open(client: "TrainerClient", run: "Run | None") -> None:
    from rich.console import Console
    from rich.live import Live

    from mosaic.cli.follow import opened
    from mosaic.cli.keyboard import Keyboard
    from mosaic.cli.watch_list import draw
    from mosaic.cli.watch_state import OpenRun, WatchState
    from mosaic.cli.watch_updates import Updater

    console, state = Console(file=raw(sys.stdout), highlight=False), WatchState()
    with Inbox(client) as inbox:
        view = Updater(client, inbox, state)
        if run:
            state.open_run = OpenRun(run.run_id, run)
        view.begin(console.height)
        screen = Live(draw(state, console.size), console=console, screen=True, auto_refresh=False)
        with resizing(inbox), Keyboard(True, screen.stop, screen.start) as keyboard, opened(screen) as live:
            while not state.is_left:
                live.update(draw(state, console.size), refresh=True)
                for key in _keys(keyboard, inbox):
                    state.press(key)
                view.refresh()


def _keys(keyboard: "Keyboard", inbox: Inbox) -> list[str]:
    """The keys that were pressed; none if there is something else to draw."""
    if keyboard.fileno() not in _ready(keyboard, inbox, TICK_S):
        # Collect updates for a moment, unless a key is pressed.
        return keyboard.keys(DRAW_S)
    return keyboard.keys(0)


def _ready(keyboard: "Keyboard", inbox: Inbox, timeout_s: float) -> list[int]:
    return select.select([keyboard.fileno(), inbox.fileno()], [], [], timeout_s)[0]


@contextmanager
def resizing(inbox: Inbox) -> Iterator[None]:
    """Redraw immediately when the terminal is resized."""
    before = signal.signal(signal.SIGWINCH, lambda *_: inbox.wake())
    try:
        yield
    finally:
        signal.signal(signal.SIGWINCH, before)
