"""`mosaic worker install|remove`: environments come and go."""

import argparse
import json
import re
from dataclasses import asdict
from typing import TYPE_CHECKING

from mosaic.cli.connection import refuse_host
from mosaic.cli.terminal_text import size
from mosaic.cli.verb import add_json, add_verb
from mosaic.model.rundir import StateRoot

if TYPE_CHECKING:
    from mosaic.catalog.installed import Installed
    from mosaic.cli.verb import Verbs

EXAMPLES = """
mosaic worker install toy                        one that comes with MOSAIC
mosaic worker install ./my_worker                a folder of your own
mosaic worker install cleanrl --variant jax      its lock file for jax, in an environment of its own
mosaic worker install "acme-worker>=2"           from the package index
mosaic worker install ./my_worker --python 3.12
"""
WHAT = "a worker that comes with MOSAIC or is installed already, a folder, or a package of the index"


def add_verbs(actions: "Verbs") -> None:
    parser = add_verb(actions, "install", install_worker, "make a worker's environment", EXAMPLES)
    parser.add_argument("what", metavar="NAME|PATH|REQUIREMENT", help=WHAT)
    parser.add_argument("--variant", default="", help="its lock file or extra of this name, beside the default one")
    parser.add_argument(
        "--python", default="", metavar="3.X|PATH", help="another Python than MOSAIC's own, from 3.9 on"
    )
    parser.add_argument("--torch", default="", metavar="cpu|cuda|cu128", help="which build of torch to take")
    parser.add_argument("--upgrade", action="store_true", help="make it anew, with the newest versions allowed")
    add_json(parser)

    parser = add_verb(
        actions, "remove", remove_worker, "delete a worker's environment", "mosaic worker remove cleanrl@jax"
    )
    parser.add_argument("name", metavar="NAME[@VARIANT]", help="an environment that `mosaic worker list` shows")


def install_worker(args: argparse.Namespace) -> int:
    from mosaic.catalog.install import Wish, install
    from mosaic.cli.install_progress import progress

    refuse_host(args, "worker install")
    what, variant = _split(args.what, args.variant)
    wish = Wish(what, variant, args.python, args.torch, args.upgrade)
    with progress() as shown:
        made, is_new = install(StateRoot.from_environment(), wish, shown)
    if args.json:
        print(json.dumps({**asdict(made), "name": made.name, "is_new": is_new}, indent=1))
    else:
        done = "is installed" if is_new else "is installed already; nothing has changed"
        print(
            f"Worker {made.name} ({made.package} {made.version}, Python {made.python}) {done}: {size(made.size_bytes)}."
        )
        _print_unavailable(made)
        print(f"Try it: mosaic worker test {made.name} · see its settings: mosaic run {made.name} --help")
    return 0


def remove_worker(args: argparse.Namespace) -> int:
    from mosaic.catalog.install import remove
    from mosaic.cli.install_progress import progress

    refuse_host(args, "worker remove")
    with progress() as shown:
        remove(StateRoot.from_environment(), args.name, shown)
    print(f"{args.name} is removed. Its runs and their results are where they were.")
    return 0


def _print_unavailable(made: "Installed") -> None:
    """What of the worker does not run here: said now, from what was really installed, not when it is wanted."""
    from mosaic.catalog.answers import Answers
    from mosaic.catalog.workers import Catalog
    from mosaic.cli.worker_settings import describe_unavailable

    root = StateRoot.from_environment()
    told = Answers(root.answers).of(Catalog(root).find(made.worker, made.variant))
    for line in describe_unavailable(told.schema):
        print(f"Not available: {line}.")


def _split(what: str, variant: str) -> tuple[str, str]:
    """`cleanrl@jax` is `cleanrl --variant jax`; in a path or a requirement an @ means something else."""
    match = re.fullmatch(r"([\w-]+)@([\w-]+)", what)
    return (match[1], match[2]) if match and not variant else (what, variant)
