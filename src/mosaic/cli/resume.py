"""`mosaic resume`, and what all verbs that make a run from another one share."""

import argparse
import os
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from mosaic.cli.connection import connected, host_of
from mosaic.cli.follow import follow, wait_quietly
from mosaic.cli.run import add_run_options, build_config, print_submitted
from mosaic.cli.settings import parse_settings
from mosaic.cli.terminal_text import printable
from mosaic.cli.verb import RUN_HELP, add_verb

if TYPE_CHECKING:
    from mosaic.cli.verb import Verbs
    from mosaic.client import Run, TrainerClient

    Watcher = Callable[[TrainerClient, Run], int]

EXAMPLES = """
mosaic resume last                                    one that was killed, cancelled or failed
mosaic resume 01JCQ total_timesteps=200000            one that is finished: give it more steps
mosaic resume crawler learning_rate=1e-4 --detach     with other settings
"""
TOTALS = ("total_timesteps", "total_steps", "steps")


def add_verbs(verbs: "Verbs") -> None:
    parser = add_verb(
        verbs, "resume", resume_run, "continue a run that is over from its newest checkpoint, as a new run", EXAMPLES
    )
    add_derived_options(parser, "settings to change; all others are the run's own")


def add_derived_options(parser: argparse.ArgumentParser, settings_help: str) -> None:
    parser.add_argument("run", metavar="RUN", help=RUN_HELP)
    parser.add_argument("settings", metavar="key=value", nargs="*", help=settings_help)
    parser.add_argument("--checkpoint", default="", metavar="PATH", help="this checkpoint instead of the newest")
    add_run_options(parser)


def resume_run(args: argparse.Namespace) -> int:
    return submit_derived(args, derived_config(args, "resume", args.checkpoint), wait_quietly, follow)


def submit_derived(args: argparse.Namespace, config: dict[str, Any], wait: "Watcher", show: "Watcher") -> int:
    """Submit, say what the run is made from, and do as `mosaic run` does: return, wait for the JSON, or show it."""
    with connected(args) as client:
        run = client.submit_run(config, args.idempotency_key)
        if not args.json:
            print_origin(client, run)
        if args.detach:
            print_submitted(run, args)
            return 0
        return wait(client, run) if args.json else show(client, run)


def derived_config(args: argparse.Namespace, relation: str, checkpoint: str = "") -> dict[str, Any]:
    """A config with nothing but what differs from the run it is made from: the daemon fills in the rest."""
    config = build_config(args, {"config": parse_settings(args.settings)})
    config["metadata"] |= {"parent_run_id": args.run, "relation": relation}
    if checkpoint:
        is_word = checkpoint == "best" or host_of(args)  # another machine's paths are not ours to complete
        config["metadata"]["checkpoint"] = checkpoint if is_word else os.path.abspath(os.path.expanduser(checkpoint))
    return config


def print_origin(client: "TrainerClient", run: "Run") -> None:
    """From which checkpoint the run starts, and which ones were passed over."""
    history = client.get_run(run.run_id).history
    for sentence in history[0].reason.split("; ") if history and history[0].reason else ():
        print(printable(sentence[:1].upper() + sentence[1:]), file=sys.stderr)


def next_steps(run: "Run") -> list[str]:
    """What can be done with a training that is over and has checkpoints: the commands, ready to be typed."""
    if not run.state.is_over or run.area != "runs" or not _has_checkpoints(run):
        return []
    schema = _schema_of(run)
    steps = [f"mosaic eval {run.run_id}"] if schema.get("x-mosaic-eval") else []
    if schema.get("x-mosaic-resume"):
        steps.append(f"mosaic resume {run.run_id}{_more_steps(run)}")
    return steps


def _has_checkpoints(run: "Run") -> bool:
    """Of a run on this machine; files elsewhere cannot be seen from here."""
    try:
        return any(os.scandir(os.path.join(run.run_dir, "checkpoints")))
    except OSError:
        return False


def _schema_of(run: "Run") -> dict[str, Any]:
    """What its worker has told before; nothing when that is not known here."""
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
    told = Answers(root.answers).remembered(found)
    return told.schema if told else {}


def _more_steps(run: "Run") -> str:
    """A finished training has no steps left: the next one needs a larger total."""
    settings = (((run.config or {}).get("metadata") or {}).get("worker") or {}).get("config") or {}
    if str(run.state) != "TERMINATED" or not run.total_steps:
        return ""
    return next((f" {name}={2 * run.total_steps}" for name in TOTALS if name in settings), "")
