"""`mosaic watch`: the runs, or one of them, in a terminal view to keep open."""

import argparse
import sys
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from mosaic.cli.connection import connected
from mosaic.cli.verb import add_verb
from mosaic.model.errors import MosaicError, NoDaemon
from mosaic.model.states import LIVE_STATES

if TYPE_CHECKING:
    from mosaic.cli.verb import Verbs
    from mosaic.client import Run, TrainerClient
    from mosaic.client.events import Curve

REFRESH_S = 0.5
CURVES_EVERY_S = 2.0
MOST_CURVES = 16
CURVE_POINTS = 30  # as many as an 80-column terminal shows beside a name and three numbers
LOG_TAIL_BYTES = 256 * 1024  # of the spool, where telemetry lines lie between the log lines


def add_verbs(verbs: "Verbs") -> None:
    parser = add_verb(verbs, "watch", watch, "watch all runs, or one, live", "mosaic watch\nmosaic watch 01JCQ")
    parser.add_argument("run", metavar="RUN", nargs="?", default="", help="open this run at once")


@dataclass
class Scene:
    """What the view shows: the list, or one run with its details."""

    runs: "list[Run]" = field(default_factory=list)
    total: int = 0
    selected: int = 0
    open_run: str = ""  # id of the run whose details are shown
    run: "Run | None" = None
    curves: "list[Curve]" = field(default_factory=list)
    curves_at: float = 0.0
    log: list[str] = field(default_factory=list)
    trouble: str = ""
    is_left: bool = False

    def press(self, key: str) -> None:
        """What a key does."""
        if key == "q":
            self.is_left = True
        elif key in ("up", "down") and not self.open_run:
            self.selected += 1 if key == "down" else -1
            self.selected = max(0, min(self.selected, len(self.runs) - 1))
        elif key == "enter" and not self.open_run and self.runs:
            self.open(self.runs[self.selected].run_id)
        elif key in ("escape", "back") and self.open_run:
            self.open("")

    def open(self, run_id: str) -> None:
        self.open_run, self.run, self.curves, self.curves_at, self.log = run_id, None, [], 0.0, []


def watch(args: argparse.Namespace) -> int:
    with connected(args) as client:
        scene = Scene()
        if args.run:
            scene.open(client.get_run(args.run).run_id)
        if not (sys.stdin.isatty() and sys.stdout.isatty()):
            return _print_once(client, scene)
        _keep_open(client, scene)
    return 0


def _keep_open(client: "TrainerClient", scene: Scene) -> None:
    from rich.console import Console
    from rich.live import Live

    from mosaic.cli.follow import opened
    from mosaic.cli.keyboard import Keyboard
    from mosaic.cli.scenery import draw

    console = Console(highlight=False)
    refresh(client, scene, console.height)
    with (
        Keyboard() as keyboard,
        opened(Live(draw(scene, console.size), console=console, screen=True, auto_refresh=False)) as live,
    ):
        while not scene.is_left:
            live.update(draw(scene, console.size), refresh=True)
            keys = keyboard.keys(REFRESH_S)
            for key in keys:
                scene.press(key)
            # A moved mark is drawn at once; what is new is asked for when no key came, or a run was opened.
            if not keys or scene.open_run:
                refresh(client, scene, console.height)


def _print_once(client: "TrainerClient", scene: Scene) -> int:
    """Not a terminal: one picture and out."""
    from mosaic.cli.runs import runs_table
    from mosaic.cli.show import describe

    refresh(client, scene, 24)
    if scene.trouble:
        raise MosaicError(scene.trouble)
    print(describe(scene.run) if scene.run else runs_table(tuple(scene.runs)) if scene.runs else "No runs.")
    return 0


def refresh(client: "TrainerClient", scene: Scene, rows: int) -> None:
    """Ask for what is shown; a daemon that does not answer is said, and asked again."""
    try:
        if scene.open_run:
            _refresh_run(client, scene)
        else:
            _refresh_list(client, scene, rows)
        scene.trouble = ""
    except NoDaemon as error:
        scene.trouble = str(error)
    except MosaicError as error:
        # The run was deleted while it was looked at.
        scene.open("")
        scene.trouble = str(error)


def _refresh_list(client: "TrainerClient", scene: Scene, rows: int) -> None:
    """Live runs first, however old they are, then the newest that are over."""
    newest = client.list_runs(limit=rows)
    live = client.list_runs(LIVE_STATES, limit=rows).runs
    marked = scene.runs[scene.selected].run_id if scene.selected else ""
    scene.runs = [*live, *(run for run in newest.runs if run.state.is_over)]
    scene.total = newest.total
    # A mark that was moved stays on its run when others come above it.
    ids = [run.run_id for run in scene.runs]
    scene.selected = ids.index(marked) if marked in ids else 0


def _refresh_run(client: "TrainerClient", scene: Scene) -> None:
    scene.run = client.get_run(scene.open_run)
    if time.monotonic() - scene.curves_at < CURVES_EVERY_S:
        return
    names = client.curve_names(scene.open_run)[:MOST_CURVES]
    scene.curves = [client.query_curve(scene.open_run, name, CURVE_POINTS) for name in names]
    scene.log = log_tail(client, scene.open_run)
    scene.curves_at = time.monotonic()


def log_tail(client: "TrainerClient", run_id: str) -> list[str]:
    from mosaic.cli.logs import render

    pieces = client.stream_logs(run_id, tail_bytes=LOG_TAIL_BYTES)
    text = b"".join(render(piece) for piece in pieces)
    return text.decode(errors="replace").splitlines()
