"""`mosaic rm`: delete runs that are over, and all their files."""

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from mosaic.cli.connection import connected, host_of
from mosaic.cli.selection import add_age, add_selection, confirm, is_answered, line_of, select
from mosaic.cli.verb import add_verb
from mosaic.model.errors import MosaicError, NoDaemon, RunIsLive
from mosaic.model.states import RunState
from mosaic.present.folder_size import has_checkpoints, usage_of
from mosaic.present.scores import count
from mosaic.present.text import printable, size

if TYPE_CHECKING:
    from mosaic.cli.verb import Verbs
    from mosaic.client import Run, TrainerClient

EXAMPLES = """
mosaic rm last
mosaic rm 01JCQ cartpole-3 --yes
mosaic rm --state FAULTED,CANCELLED --older-than 7d --dry-run
mosaic rm --worker toy --tag sweep-4 --yes
"""
OVER = tuple(state for state in RunState if state.is_over)


def add_verbs(verbs: "Verbs") -> None:
    parser = add_verb(verbs, "rm", remove_runs, "delete runs that are over, and all their files", EXAMPLES)
    add_selection(parser, "FAULTED,CANCELLED or over")
    add_age(parser)


def remove_runs(args: argparse.Namespace) -> int:
    with connected(args) as client:
        runs = select(client, args, OVER, every=False)
        refuse_live(runs)
        if not runs:
            print("No run that is over matches.")
            return 0
        if args.dry_run or not args.yes:
            _print_plan(runs, is_here=not host_of(args))
        if args.dry_run:
            print("Nothing was deleted.")
            return 0
        if not args.yes:
            _ask(runs)
        return _delete(client, runs)


def refuse_live(runs: "list[Run]") -> None:
    """Refuse live runs before the first run is deleted."""
    for run in runs:
        if not run.state.is_over:
            raise RunIsLive(run.run_id, str(run.state))


def _print_plan(runs: "list[Run]", is_here: bool) -> None:
    """Print which runs would be deleted and their sizes, which are unknown for runs on another machine."""
    total = 0
    for run in runs:
        used = sum(usage_of(Path(run.run_dir)).values()) if is_here else 0
        checkpoints = ", with checkpoints" if is_here and has_checkpoints(Path(run.run_dir)) else ""
        total += used
        print(line_of(run, f"{size(used)}{checkpoints}" if is_here else ""))
    print(f"{count(len(runs), 'run')}{f', {size(total)}' if is_here else ''}.")


def _ask(runs: "list[Run]") -> None:
    if not is_answered():
        raise MosaicError("Cannot ask for confirmation without a terminal. Add --yes to delete the runs.")
    if not confirm(f"Delete {count(len(runs), 'run')} with telemetry, logs and checkpoints?"):
        raise MosaicError("Nothing was deleted.")


def _delete(client: "TrainerClient", runs: "list[Run]") -> int:
    """Delete the runs. If one cannot be deleted, the others still are."""
    total, failed = 0, 0
    for run in runs:
        try:
            freed = client.delete_run(run.run_id)
        except NoDaemon:
            raise
        except MosaicError as error:
            failed += 1
            print(f"mosaic: {error}", file=sys.stderr)
            continue
        total += freed
        print(f"Deleted {run.run_id} ({printable(run.name)}): {size(freed)}.", flush=True)
    if len(runs) > 1:
        print(f"Deleted {count(len(runs) - failed, 'run')}: {size(total)}.")
    return 1 if failed else 0
