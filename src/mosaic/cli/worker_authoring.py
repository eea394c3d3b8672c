"""`mosaic worker new` and `mosaic worker test`: create a worker, and test any worker against the contract."""

import argparse
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mosaic.cli.connection import refuse_host
from mosaic.cli.settings import parse_settings
from mosaic.cli.terminal_text import paint
from mosaic.cli.verb import add_json, add_verb
from mosaic.model.rundir import StateRoot

if TYPE_CHECKING:
    from mosaic_sdk.testing import Check

    from mosaic.cli.verb import Verbs

STYLES = {"ok": "green", "failed": "red", "skipped": "dim"}


def add_verbs(actions: "Verbs") -> None:
    parser = add_verb(
        actions,
        "new",
        new_worker,
        "create a new worker from a template",
        "mosaic worker new acme\nmosaic worker new acme --in workers",
    )
    parser.add_argument("name", metavar="NAME", help="lower-case letters, digits and _; the folder is NAME_worker")
    parser.add_argument(
        "--in",
        dest="folder",
        default=".",
        metavar="FOLDER",
        help="create the worker in this folder (default: the current one)",
    )

    examples = "mosaic worker test toy\nmosaic worker test cleanrl@jax algo=dqn_jax total_timesteps=500"
    parser = add_verb(actions, "test", test_worker, "test a worker against the contract", examples)
    parser.add_argument("name", metavar="NAME[@VARIANT]", help="a worker that `mosaic worker list` shows")
    parser.add_argument("settings", metavar="key=value", nargs="*", help="settings of a run that takes a few seconds")
    parser.add_argument(
        "--keep-home", action="store_true", help="run the worker with your HOME and its caches instead of an empty HOME"
    )
    add_json(parser)


def new_worker(args: argparse.Namespace) -> int:
    from mosaic.catalog.scaffold import write_worker

    refuse_host(args, "worker new")
    folder = write_worker(args.name, Path(args.folder))
    name, path = folder.name.removesuffix("_worker"), _as_typed(folder)
    print(f"Created {path}. Next steps:")
    print(f"  mosaic worker install {path}\n  mosaic worker test {name}\n  mosaic run {name}")
    return 0


def _as_typed(folder: Path) -> str:
    """The path as the user would type it from the current folder."""
    here = Path.cwd()
    return f"./{folder.relative_to(here)}" if folder.is_relative_to(here) else str(folder)


def test_worker(args: argparse.Namespace) -> int:
    from mosaic_sdk.testing import check_worker

    from mosaic.catalog.workers import Catalog

    refuse_host(args, "worker test")
    root = StateRoot.from_environment()
    name, _, variant = args.name.partition("@")
    worker = Catalog(root).find(name, variant)
    card = check_worker(
        worker.module,
        entry_point=worker.entry_point,
        python=str(worker.environment.python),
        lab=_lab(args.settings, name, variant),
        env={"HOME": str(Path.home())} if args.keep_home else {},
        report=_ignore if args.json else _print_check,
    )
    if args.json:
        print(json.dumps(card.to_dict(), indent=1))
    else:
        print(card.total)
    return 0 if card.is_clean else 1


def _lab(settings: list[str], name: str, variant: str) -> dict[str, dict[str, Any]]:
    """The user's settings replace the short run that the schema defines."""
    if not settings:
        return {}
    from mosaic.cli.worker_settings import check_settings

    return {"short": check_settings(name, variant, parse_settings(settings))}


def _print_check(check: "Check") -> None:
    print(paint(str(check), STYLES[check.outcome]))
    sys.stdout.flush()


def _ignore(_: "Check") -> None:
    pass
