"""`mosaic runs` and `mosaic show`."""

import argparse
import json
import sys
import time
from typing import TYPE_CHECKING

from mosaic.cli.connection import connected, tell_rebuild
from mosaic.cli.show import show_run
from mosaic.cli.table import clip, render_table
from mosaic.cli.terminal_text import STATE_STYLE, paint
from mosaic.cli.verb import RUN_HELP, add_json, add_verb, count
from mosaic.model.states import LIVE_STATES, RunState
from mosaic.present.durations import format_duration
from mosaic.present.runs import note, return_cell
from mosaic.present.scores import is_rate_known
from mosaic.present.text import number, printable

if TYPE_CHECKING:
    from mosaic.cli.verb import Verbs
    from mosaic.client import Run

SHORT_ID = 13  # the ten characters of the timestamp and three random ones
NEWEST = 20


def add_verbs(verbs: "Verbs") -> None:
    parser = add_verb(
        verbs,
        "runs",
        list_runs,
        "list runs, newest first",
        "mosaic runs\nmosaic runs --state live\nmosaic runs --all --json",
    )
    parser.add_argument("--all", action="store_true", help=f"list all runs, not only the newest {NEWEST}")
    parser.add_argument("--limit", type=count, default=NEWEST, metavar="N", help="list the newest N runs")
    parser.add_argument(
        "--state",
        type=parse_states,
        default=(),
        help="list runs in these states, e.g. FAULTED or EXECUTING,READY; live and over are groups of states",
    )
    add_json(parser)

    parser = add_verb(
        verbs, "show", show_run, "show everything about one run", "mosaic show 01JCQ\nmosaic show 01JCQ --json"
    )
    parser.add_argument("run", metavar="RUN", help=RUN_HELP)
    add_json(parser)


def parse_states(text: str) -> tuple[RunState, ...]:
    groups = {"LIVE": LIVE_STATES, "OVER": tuple(state for state in RunState if state.is_over)}
    states: list[RunState] = []
    for name in text.upper().split(","):
        if name not in groups and name not in RunState.__members__:
            raise argparse.ArgumentTypeError(
                f"'{name}' is not a state. Choose from {', '.join(RunState.__members__)}, live and over"
            )
        states += groups.get(name) or (RunState(name),)
    return tuple(states)


def list_runs(args: argparse.Namespace) -> int:
    with connected(args) as client:
        found = client.list_runs(args.state, 0 if args.all else args.limit)
    if args.json:
        print(json.dumps([run.to_dict() for run in found.runs], indent=1))
        return 0
    print(runs_table(found.runs) if found.runs else "No runs. Start one with: mosaic run toy steps=500 rate=50")
    if found.total > len(found.runs):
        print(paint(f"… and {found.total - len(found.runs)} more: mosaic runs --all", "dim"))
    tell_rebuild(args)
    return 0


def runs_table(runs: "tuple[Run, ...]") -> str:
    headings = ("RUN", "NAME", "WORKER", "STATE", "DONE", "STEPS/S", "RETURN (EPISODES)", "TIME", "AGO", "NOTE")
    return render_table(headings, [_row(run) for run in runs], right=frozenset({4, 5, 6, 7, 8}))


def _row(run: "Run") -> tuple[str, ...]:
    return (
        short_id(run.run_id),
        clip(printable(run.name), 24),
        clip(run.worker_name, 16),
        paint(str(run.state), STATE_STYLE[run.state]),
        "-" if run.progress is None else f"{run.progress:.0%}",
        number(run.summary.steps_per_s) if is_rate_known(run) else "-",
        return_cell(run),
        format_duration(run.duration_s),
        format_duration(time.time() - run.created_at),
        clip(note(run), 40),
    )


def short_id(run_id: str) -> str:
    """The first characters of an id on a terminal, the whole id in a pipe."""
    return run_id[:SHORT_ID] if sys.stdout.isatty() else run_id
