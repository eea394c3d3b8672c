"""`mosaic watch`: the runs, or one of them, in a terminal view to keep open; plain lines where there is no screen."""

import argparse
import select
import signal
import sys
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from mosaic.cli.connection import connected
from mosaic.cli.feed import Feed, Runs
from mosaic.cli.paint import is_screen, printable
from mosaic.cli.verb import add_verb

if TYPE_CHECKING:
    from mosaic.cli.keyboard import Keyboard
    from mosaic.cli.verb import Verbs
    from mosaic.client import Run, TrainerClient

TICK_S = 1.0  # the clock and the ages move
DRAW_S = 0.1  # news come in heaps; keys are drawn at once
NEWEST = 20  # of those that are over, in plain lines
EXAMPLES = """
mosaic watch                    all runs; ? shows the keys
mosaic watch 01JCQ              open this run at once
mosaic watch > runs.log         a line per change, until no run is live
"""


def add_verbs(verbs: "Verbs") -> None:
    parser = add_verb(verbs, "watch", watch, "watch all runs, or one, live", EXAMPLES)
    parser.add_argument("run", metavar="RUN", nargs="?", default="", help="open this run at once")


def watch(args: argparse.Namespace) -> int:
    with connected(args) as client:
        run = client.get_run(args.run) if args.run else None
        if is_screen(sys.stdout) and sys.stdin.isatty():
            _keep_open(client, run)
        elif run:
            from mosaic.cli.follow import last_words, show_lines

            print(last_words(show_lines(client, run)))
        else:
            print_lines(client)
    return 0


# ---- plain lines


def print_lines(client: "TrainerClient") -> None:
    """A line per change of any run, until none is live."""
    from mosaic.cli.follow import Pace

    paces: "defaultdict[str, Pace]" = defaultdict(Pace)
    with Feed(client) as feed:
        runs, trouble = Runs(feed).follow(), ""
        while True:
            feed.wait(TICK_S)
            feed.take()
            if runs.error:
                raise runs.error
            if runs.trouble != trouble:
                trouble = runs.trouble
                print(trouble + " Waiting for it." if trouble else "The daemon answers again.", flush=True)
            for run in _worth_a_line(runs, is_first=not paces):
                if words := paces[run.run_id].words(run):
                    print(f"{run.run_id}  {printable(run.name or run.worker_name)}  {words}", flush=True)
            if runs.is_known and all(run.state.is_over for run in runs.by_id.values()):
                print("" if runs.by_id else "No runs. Start one with: mosaic run toy steps=500 rate=50\n", end="")
                return


def _worth_a_line(runs: Runs, is_first: bool) -> "list[Run]":
    """What changed, oldest first; at the start only the newest of those that are over."""
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
    from mosaic.cli.scene import CloseUp, Scene
    from mosaic.cli.scenery import draw
    from mosaic.cli.view import View

    console, scene = Console(highlight=False), Scene()
    with Feed(client) as feed:
        view = View(client, feed, scene)
        if run:
            scene.close_up = CloseUp(run.run_id, run)
        view.begin(console.height)
        screen = Live(draw(scene, console.size), console=console, screen=True, auto_refresh=False)
        with resizing(feed), Keyboard(True, screen.stop, screen.start) as keyboard, opened(screen) as live:
            while not scene.is_left:
                live.update(draw(scene, console.size), refresh=True)
                for key in _keys(keyboard, feed):
                    scene.press(key)
                view.refresh()


def _keys(keyboard: "Keyboard", feed: Feed) -> list[str]:
    """Keys that were typed, or none when there is something else to draw."""
    if keyboard.fileno() not in _ready(keyboard, feed, TICK_S):
        # Let news gather for a moment, but never hold up a key.
        return keyboard.keys(DRAW_S)
    return keyboard.keys(0)


def _ready(keyboard: "Keyboard", feed: Feed, timeout_s: float) -> list[int]:
    return select.select([keyboard.fileno(), feed.fileno()], [], [], timeout_s)[0]


@contextmanager
def resizing(feed: Feed) -> Iterator[None]:
    """Another size of the terminal is drawn at once."""
    before = signal.signal(signal.SIGWINCH, lambda *_: feed.ring())
    try:
        yield
    finally:
        signal.signal(signal.SIGWINCH, before)
