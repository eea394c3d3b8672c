"""`mosaic resume`, and what it shares with `mosaic eval`: both start a run from another one."""

import argparse
import os
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from mosaic_sdk import keywords

from mosaic.catalog.derived import RESUME, derived_config
from mosaic.cli.connection import connected, host_of
from mosaic.cli.eval_attach import has_lanes
from mosaic.cli.eval_attach import show as show_evaluation
from mosaic.cli.follow import follow, wait_quietly
from mosaic.cli.run import add_run_options, print_submitted, run_options
from mosaic.cli.settings import parse_settings
from mosaic.cli.verb import RUN_HELP, add_verb
from mosaic.model.states import RunState
from mosaic.present.text import printable

if TYPE_CHECKING:
    from mosaic.cli.verb import Verbs
    from mosaic.client import Run, TrainerClient

    Watcher = Callable[[TrainerClient, Run], int]

EXAMPLES = """
mosaic resume last                                    a run that was killed, cancelled or failed
mosaic resume 01JCQ total_timesteps=200000            a run that has finished: train it for more steps
mosaic resume crawler learning_rate=1e-4 --detach     change a setting
"""
TOTALS = ("total_timesteps", "total_steps", "steps")


def add_verbs(verbs: "Verbs") -> None:
    parser = add_verb(
        verbs,
        "resume",
        resume_run,
        "continue a run from its newest checkpoint",
        EXAMPLES,
        "The continued run is a new run with the settings of the old one.\nThe old run must be over.",
    )
    add_derived_options(parser, "settings to change; all others are taken from the run")


def add_derived_options(parser: argparse.ArgumentParser, settings_help: str) -> None:
    parser.add_argument("run", metavar="RUN", help=RUN_HELP)
    parser.add_argument("settings", metavar="key=value", nargs="*", help=settings_help)
    parser.add_argument("--checkpoint", default="", metavar="PATH", help="use this checkpoint instead of the newest")
    add_run_options(parser)


def resume_run(args: argparse.Namespace) -> int:
    def show(client: "TrainerClient", run: "Run") -> int:
        if has_lanes(client.get_run(run.run_id)):
            return show_evaluation(client, run, args)
        return wait_quietly(client, run) if args.json else follow(client, run)

    return submit_derived(args, resume_config(args), show, show)


def submit_derived(args: argparse.Namespace, config: dict[str, Any], wait: "Watcher", show: "Watcher") -> int:
    """Submit the run and print its checkpoint. Then return, wait or follow it, like `mosaic run`."""
    with connected(args) as client:
        run = client.submit_run(config, args.idempotency_key)
        if not args.json:
            print_origin(client, run)
        if args.detach:
            print_submitted(run, args)
            return 0
        return wait(client, run) if args.json else show(client, run)


def resume_config(args: argparse.Namespace) -> dict[str, Any]:
    settings, is_remote = parse_settings(args.settings), bool(host_of(args))
    return derived_config(args.run, RESUME, settings, run_options(args), args.checkpoint, is_remote=is_remote)


def print_origin(client: "TrainerClient", run: "Run") -> None:
    """Print which checkpoint the run starts from, and which damaged ones were skipped."""
    history = client.get_run(run.run_id).history
    for sentence in history[0].reason.split("; ") if history and history[0].reason else ():
        print(printable(sentence[:1].upper() + sentence[1:]), file=sys.stderr)


def next_steps(run: "Run") -> list[str]:
    """Commands that make sense after a training that has checkpoints: evaluate and resume."""
    if not run.state.is_over or run.area != "runs" or not _has_checkpoints(run):
        return []
    if run.worker_name == "search" and run.experiment:
        if run.state is not RunState.TERMINATED:
            return []  # its summary says how it is continued
        return [f"mosaic search resume {run.experiment} --trials N"]
    schema = _schema_of(run)
    steps = [f"mosaic eval {run.run_id}"] if schema.get(keywords.EVAL) else []
    if schema.get(keywords.RESUME):
        steps.append(f"mosaic resume {run.run_id}{_more_steps(run)}")
    return steps


def _has_checkpoints(run: "Run") -> bool:
    """Whether the run has checkpoints on this machine."""
    try:
        with os.scandir(os.path.join(run.run_dir, "checkpoints")) as entries:
            return next(entries, None) is not None
    except OSError:
        return False


def _schema_of(run: "Run") -> dict[str, Any]:
    """The schema of the run's worker; empty if it is not known on this machine."""
    from mosaic.catalog.answers import Answers
    from mosaic.catalog.workers import Catalog
    from mosaic.model.errors import MosaicError
    from mosaic.model.rundir import StateRoot

    root = StateRoot.from_environment()
    worker = ((run.config or {}).get("metadata") or {}).get("worker") or {}
    try:
        found = Catalog(root).find(run.worker_name, str(worker.get("variant") or ""))
    except MosaicError:
        return {}
    descriptor = Answers(root.answers).remembered(found)
    return descriptor.schema if descriptor else {}


def _more_steps(run: "Run") -> str:
    """A training that has finished needs a larger total to continue."""
    settings = (((run.config or {}).get("metadata") or {}).get("worker") or {}).get("config") or {}
    if str(run.state) != "TERMINATED" or not run.total_steps:
        return ""
    return next((f" {name}={2 * run.total_steps}" for name in TOTALS if name in settings), "")
