"""`mosaic cancel`: cancel one or many runs."""

import argparse
import time
from typing import TYPE_CHECKING

from mosaic.cli.connection import connected
from mosaic.cli.selection import add_selection, confirm, is_answered, line_of, select
from mosaic.cli.verb import add_verb
from mosaic.model.errors import MosaicError
from mosaic.model.states import LIVE_STATES
from mosaic.present.scores import count
from mosaic.present.text import printable

if TYPE_CHECKING:
    from mosaic.cli.verb import Verbs
    from mosaic.client import Run, TrainerClient

EXAMPLES = """
mosaic cancel last
mosaic cancel 01JCQ cartpole-3 --wait
mosaic cancel --worker cleanrl --tag sweep-4 --reason "diverged"
mosaic cancel --state INIT --dry-run                   list the runs that have not started
mosaic cancel --all --yes
"""


def add_verbs(verbs: "Verbs") -> None:
    parser = add_verb(verbs, "cancel", cancel_runs, "cancel runs", EXAMPLES)
    parser.add_argument("--all", action="store_true", help="all runs that are not over")
    add_selection(parser, "INIT or EXECUTING,READY")
    parser.add_argument(
        "--reason", default="", metavar="TEXT", help="why, in one line: the reason of the state CANCELLED"
    )
    parser.add_argument("--wait", action="store_true", help="return when the runs are over")


def cancel_runs(args: argparse.Namespace) -> int:
    with connected(args) as client:
        runs = select(client, args, LIVE_STATES, args.all)
        if args.dry_run:
            _print_plan(runs)
            return 0
        if not runs:
            print("No live run matches.")
        if not (args.runs or args.yes):
            _ask(runs)
        # Cancel all before waiting for the first, so that their grace periods overlap.
        cancelled = client.cancel_runs([run.run_id for run in runs], args.reason)
        for run in cancelled:
            print(_describe(wait_until_over(client, run.run_id) if args.wait else run), flush=True)
    return 0


def _print_plan(runs: "list[Run]") -> None:
    live = [run for run in runs if not run.state.is_over]
    for run in live:
        print(f"would cancel  {line_of(run)}")
    print(f"{count(len(live), 'run')}. Nothing was cancelled.")


def _ask(runs: "list[Run]") -> None:
    """Ask a user at a terminal before several runs are cancelled; a script is not asked."""
    if len(runs) < 2 or not is_answered():
        return
    for run in runs:
        print(line_of(run))
    if not confirm(f"Cancel these {len(runs)} runs?"):
        raise MosaicError("Nothing was cancelled.")


def _describe(run: "Run") -> str:
    state = f"is {run.state}" if run.state.is_over else "is being cancelled"
    return f"Run {run.run_id} ({printable(run.name)}) {state}."


def wait_until_over(client: "TrainerClient", run_id: str) -> "Run":
    while not (run := client.get_run(run_id)).state.is_over:
        time.sleep(0.1)
    return run
