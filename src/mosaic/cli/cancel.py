"""`mosaic cancel`: end runs, one or many."""

import argparse
import time
from typing import TYPE_CHECKING

from mosaic.cli.connection import connected
from mosaic.cli.selection import add_selection, confirm, is_answered, line_of, select
from mosaic.cli.terminal_text import printable
from mosaic.cli.verb import add_verb
from mosaic.model.errors import MosaicError
from mosaic.model.states import LIVE_STATES

if TYPE_CHECKING:
    from mosaic.cli.verb import Verbs
    from mosaic.client import Run, TrainerClient

EXAMPLES = """
mosaic cancel last
mosaic cancel 01JCQ cartpole-3 --wait
mosaic cancel --worker cleanrl --tag sweep-4
mosaic cancel --state INIT --dry-run                   which runs still wait
mosaic cancel --all --yes
"""


def add_verbs(verbs: "Verbs") -> None:
    parser = add_verb(verbs, "cancel", cancel_runs, "end runs", EXAMPLES)
    parser.add_argument("--all", action="store_true", help="every run that is not over")
    add_selection(parser, "INIT or EXECUTING,READY")
    parser.add_argument("--wait", action="store_true", help="return when they are over")


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
        # All are asked to end before the first is waited for: their grace periods pass at the same time.
        asked = [client.cancel_run(run.run_id) for run in runs]
        for run in asked:
            print(_told(wait_until_over(client, run.run_id) if args.wait else run), flush=True)
    return 0


def _print_plan(runs: "list[Run]") -> None:
    live = [run for run in runs if not run.state.is_over]
    for run in live:
        print(f"would cancel  {line_of(run)}")
    print(f"{len(live)} run(s). Nothing was cancelled.")


def _ask(runs: "list[Run]") -> None:
    """A script that says --all means it; a person at a terminal sees first what is about to end."""
    if len(runs) < 2 or not is_answered():
        return
    for run in runs:
        print(line_of(run))
    if not confirm(f"Cancel these {len(runs)} runs?"):
        raise MosaicError("Nothing was cancelled.")


def _told(run: "Run") -> str:
    state = f"is {run.state}" if run.state.is_over else "is being ended"
    return f"Run {run.run_id} ({printable(run.name)}) {state}."


def wait_until_over(client: "TrainerClient", run_id: str) -> "Run":
    while not (run := client.get_run(run_id)).state.is_over:
        time.sleep(0.1)
    return run
