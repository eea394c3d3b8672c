"""`mosaic worker list|describe`."""

import argparse
import json
from typing import TYPE_CHECKING

from mosaic.cli.connection import refuse_host
from mosaic.cli.table import render_table
from mosaic.cli.verb import add_json, add_verb
from mosaic.model.errors import MosaicError
from mosaic.model.rundir import StateRoot

if TYPE_CHECKING:
    from mosaic.catalog.workers import Worker
    from mosaic.cli.verb import Verbs


def add_verbs(verbs: "Verbs") -> None:
    parser = add_verb(
        verbs, "worker", list_workers, "look at the workers", "mosaic worker list\nmosaic worker describe toy"
    )
    actions = parser.add_subparsers(metavar="list|describe", required=True)
    add_json(add_verb(actions, "list", list_workers, "list what can be run", "mosaic worker list --json"))
    parser = add_verb(actions, "describe", describe_worker, "ask a worker what it can do", "mosaic worker describe toy")
    parser.add_argument("name", metavar="NAME[@VARIANT]")
    add_json(parser)


def list_workers(args: argparse.Namespace) -> int:
    from mosaic.catalog.workers import Catalog

    refuse_host(args, "worker list")
    workers = Catalog(StateRoot.from_environment()).workers()
    if args.json:
        print(json.dumps([to_dict(worker) for worker in workers], indent=1))
        return 0
    rows = [(spelled(w), w.module, w.version, w.environment.name) for w in workers]
    print(render_table(("WORKER", "MODULE", "VERSION", "ENVIRONMENT"), rows) if rows else "No worker is installed.")
    return 0


def describe_worker(args: argparse.Namespace) -> int:
    from mosaic.catalog.descriptor import describe
    from mosaic.catalog.workers import Catalog

    refuse_host(args, "worker describe")
    name, _, variant = args.name.partition("@")
    worker = Catalog(StateRoot.from_environment()).find(name, variant)
    told = describe(worker)
    if told.problem:
        raise MosaicError(f"Worker '{args.name}' does not describe itself: {told.problem}")
    whole = {**to_dict(worker), "metadata": told.metadata, "capabilities": told.capabilities}
    print(json.dumps(whole, indent=1) if args.json else _sections(whole))
    return 0


def spelled(worker: "Worker") -> str:
    variant = worker.environment.variant
    return f"{worker.name}@{variant}" if variant else worker.name


def to_dict(worker: "Worker") -> dict[str, object]:
    return {
        "name": worker.name,
        "variant": worker.environment.variant,
        "module": worker.module,
        "version": worker.version,
        "environment": worker.environment.name,
        "python": str(worker.environment.python),
    }


def _sections(whole: dict[str, object]) -> str:
    lines = []
    for name, value in whole.items():
        if isinstance(value, dict):
            lines += ["", name, *(f"  {key:<24} {_plain(inner)}" for key, inner in value.items())]
        else:
            lines.append(f"{name:<12} {value}")
    return "\n".join(lines)


def _plain(value: object) -> str:
    return ", ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)
