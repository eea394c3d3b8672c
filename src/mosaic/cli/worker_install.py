"""`mosaic worker install` and `mosaic worker remove`: create and delete the environments of workers."""

import argparse
import json
import re
import sys
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from mosaic.cli.connection import refuse_host
from mosaic.cli.env import add_package_options
from mosaic.cli.verb import add_json, add_verb
from mosaic.model.errors import MosaicError
from mosaic.model.rundir import StateRoot
from mosaic.present.text import size

if TYPE_CHECKING:
    from mosaic.catalog.install import InstallRequest
    from mosaic.catalog.installed import Installed
    from mosaic.cli.verb import Verbs
    from mosaic.engines.node_install import Install

EXAMPLES = """
mosaic worker install toy                        a worker that is included in MOSAIC
mosaic worker install xuance ray                 several, one after the other
mosaic worker install ./my_worker                a worker in a local folder
mosaic worker install ./my_worker --with gymnasium -r more.txt     with packages that it does not declare
mosaic worker install cleanrl --variant jax      a variant, in a separate environment
mosaic worker install "acme-worker>=2"           a worker from the package index
mosaic worker install ./my_worker --python 3.12
mosaic worker install cleanrl --on ray           on the nodes of a Ray cluster
mosaic worker install cleanrl --on ray:a100 --torch cu128          on those with a resource
"""
WHAT = "a worker that is included in MOSAIC or already installed, a folder, or a package of the index"


def add_verbs(actions: "Verbs") -> None:
    parser = add_verb(actions, "install", install_worker, "install a worker in its own environment", EXAMPLES)
    parser.add_argument("what", metavar="NAME|PATH|REQUIREMENT", nargs="+", help=WHAT)
    add_package_options(parser)
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
    parser.add_argument(
        "--on",
        default="",
        metavar="CLUSTER[:RESOURCE]",
        help="install on the nodes of a Ray cluster that have environments of their own",
    )
    add_json(parser)

    parser = add_verb(
        actions, "remove", remove_worker, "delete a worker's environment", "mosaic worker remove cleanrl@jax"
    )
    parser.add_argument("name", metavar="NAME[@VARIANT]", help="an environment that `mosaic worker list` shows")


def install_worker(args: argparse.Namespace) -> int:
    from mosaic.catalog.install import install
    from mosaic.cli.install_progress import progress

    refuse_host(args, "worker install")
    if args.on:
        return _install_on_nodes(args)
    done: list[dict[str, Any]] = []
    failed: list[str] = []
    for what in args.what:
        try:
            with progress() as shown:
                made, is_new = install(StateRoot.from_environment(), _request(args, what), shown)
        except MosaicError as error:
            if len(args.what) == 1:
                raise
            failed.append(what)
            print(f"mosaic: {error}", file=sys.stderr)  # the others do not depend on it
            continue
        done.append({**asdict(made), "name": made.name, "is_new": is_new})
        if not args.json:
            _print_installed(made, is_new)
    if args.json:
        print(json.dumps(done if len(args.what) > 1 else done[0], indent=1))
    if failed:
        raise MosaicError(f"Not installed: {', '.join(failed)}. The reasons are above.")
    return 0


def _install_on_nodes(args: argparse.Namespace) -> int:
    from mosaic.cli.install_progress import progress
    from mosaic.cli.node_install import as_json, install_on_nodes, print_installs, refuse_failed

    done: list[tuple[str, list[Install]]] = []
    for what in args.what:
        with progress() as shown:
            installs = install_on_nodes(StateRoot.from_environment(), args.on, _request(args, what), shown)
        done.append((what, installs))
        if not args.json:
            print_installs(installs)
    if args.json:
        print(json.dumps([as_json(install) for _, installs in done for install in installs], indent=1))
    for what, installs in done:
        refuse_failed(installs, what, args.on)
    return 0


def _request(args: argparse.Namespace, what: str) -> "InstallRequest":
    from mosaic.catalog.install import InstallRequest

    name, variant = _split(what, args.variant)
    return InstallRequest(name, variant, args.python, args.torch, args.upgrade, tuple(args.packages), tuple(args.files))


def _print_installed(made: "Installed", is_new: bool) -> None:
    done = "is installed" if is_new else "is already installed, nothing has changed"
    print(f"Worker {made.name} ({made.package} {made.version}, Python {made.python}) {done}: {size(made.size_bytes)}.")
    _print_unavailable(made)
    print(f"Test it with: mosaic worker test {made.name}\nSee its settings with: mosaic run {made.name} --help")


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
