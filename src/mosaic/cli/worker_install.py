"""`mosaic worker install` and `mosaic worker remove`: create and delete the environments of workers."""

import argparse
import json
import re
from dataclasses import asdict
from typing import TYPE_CHECKING

from mosaic.cli.connection import refuse_host
from mosaic.cli.verb import add_json, add_verb
from mosaic.model.rundir import StateRoot
from mosaic.present.text import size

if TYPE_CHECKING:
    from mosaic.catalog.installed import Installed
    from mosaic.cli.verb import Verbs

EXAMPLES = """
mosaic worker install toy                        a worker that is included in MOSAIC
mosaic worker install ./my_worker                a worker in a local folder
mosaic worker install cleanrl --variant jax      a variant, in a separate environment
mosaic worker install "acme-worker>=2"           a worker from the package index
mosaic worker install ./my_worker --python 3.12
"""
WHAT = "a worker that is included in MOSAIC or already installed, a folder, or a package of the index"


def add_verbs(actions: "Verbs") -> None:
    parser = add_verb(actions, "install", install_worker, "install a worker in its own environment", EXAMPLES)
    parser.add_argument("what", metavar="NAME|PATH|REQUIREMENT", help=WHAT)
    parser.add_argument(
        "--variant", default="", help="install the lock file or extra of this name, in a separate environment"
    )
    parser.add_argument(
        "--python",
        default="",
        metavar="3.X|PATH",
        help="use this Python, 3.9 or later (default: the one that runs MOSAIC)",
    )
    parser.add_argument("--torch", default="", metavar="cpu|cuda|cu128", help="install this build of torch")
    parser.add_argument(
        "--upgrade", action="store_true", help="rebuild the environment with the newest allowed versions"
    )
    add_json(parser)

    parser = add_verb(
        actions, "remove", remove_worker, "delete a worker's environment", "mosaic worker remove cleanrl@jax"
    )
    parser.add_argument("name", metavar="NAME[@VARIANT]", help="an environment that `mosaic worker list` shows")


def install_worker(args: argparse.Namespace) -> int:
    from mosaic.catalog.install import InstallRequest, install
    from mosaic.cli.install_progress import progress

    refuse_host(args, "worker install")
    what, variant = _split(args.what, args.variant)
    request = InstallRequest(what, variant, args.python, args.torch, args.upgrade)
    with progress() as shown:
        made, is_new = install(StateRoot.from_environment(), request, shown)
    if args.json:
        print(json.dumps({**asdict(made), "name": made.name, "is_new": is_new}, indent=1))
    else:
        done = "is installed" if is_new else "is already installed, nothing has changed"
        print(
            f"Worker {made.name} ({made.package} {made.version}, Python {made.python}) {done}: {size(made.size_bytes)}."
        )
        _print_unavailable(made)
        print(f"Test it with: mosaic worker test {made.name}\nSee its settings with: mosaic run {made.name} --help")
    return 0


def remove_worker(args: argparse.Namespace) -> int:
    from mosaic.catalog.install import remove
    from mosaic.cli.install_progress import progress

    refuse_host(args, "worker remove")
    with progress() as shown:
        remove(StateRoot.from_environment(), args.name, shown)
    print(f"Removed the environment {args.name}. Its runs and their results are kept.")
    return 0


def _print_unavailable(made: "Installed") -> None:
    """Print what the worker cannot do with the packages that were installed, before the user tries it."""
    from mosaic.catalog.answers import Answers
    from mosaic.catalog.workers import Catalog
    from mosaic.cli.worker_settings import describe_unavailable

    root = StateRoot.from_environment()
    descriptor = Answers(root.answers).of(Catalog(root).find(made.worker, made.variant))
    for line in describe_unavailable(descriptor.schema):
        print(f"Unavailable: {line}.")


def _split(what: str, variant: str) -> tuple[str, str]:
    """Split `cleanrl@jax` into name and variant. In a path or a requirement, an @ means something else."""
    match = re.fullmatch(r"([\w-]+)@([\w-]+)", what)
    return (match[1], match[2]) if match and not variant else (what, variant)
