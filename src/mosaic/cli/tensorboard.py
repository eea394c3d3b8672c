"""`mosaic tensorboard`: runs side by side under their names.

<state root>/cache/tensorboard/<all, newest or a set of runs>/<name>-<short id>  →  the run's tensorboard folder
"""

import argparse
import os
import re
import shlex
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from mosaic.cli.connection import connected, refuse_host
from mosaic.cli.runs import NEWEST, SHORT_ID
from mosaic.cli.verb import RUN_HELP, BadUsage, add_verb, count
from mosaic.model.errors import MosaicError
from mosaic.model.rundir import RunDir, StateRoot

if TYPE_CHECKING:
    from mosaic.catalog.environment import Environment
    from mosaic.cli.verb import Verbs
    from mosaic.client import Run, TrainerClient

FIRST_PORT = 6006  # TensorBoard's own
MOST_PORTS = 100
LONGEST_NAME = 60


def add_verbs(verbs: "Verbs") -> None:
    parser = add_verb(
        verbs,
        "tensorboard",
        open_board,
        "show runs in TensorBoard, each under its name",
        "mosaic tensorboard\nmosaic tensorboard 01JCQ 01JCR --port 7007\nmosaic tensorboard --all --print",
    )
    parser.add_argument("runs", metavar="RUN", nargs="*", help=f"{RUN_HELP}; without any, the newest {NEWEST}")
    parser.add_argument("--all", action="store_true", help="every run that wrote TensorBoard files")
    parser.add_argument("--port", type=count, metavar="N", help=f"the first free one from {FIRST_PORT} on if not given")
    parser.add_argument("--print", action="store_true", help="only print the command that would be executed")


def open_board(args: argparse.Namespace) -> int:
    refuse_host(args, "tensorboard")
    if args.runs and args.all:
        raise BadUsage("Name runs or say --all, not both.")
    with connected(args) as client:
        runs = [run for run in chosen(client, args) if run.run_dir and _may_have_curves(run)]
    if not runs:
        raise MosaicError("None of these runs has written TensorBoard files. List the runs with: mosaic runs --all")
    root = StateRoot.from_environment()
    python = find_python(root, runs)
    folder = link_runs(root, runs, "all" if args.all else "" if args.runs else "newest")
    port = args.port if args.port is not None else free_port()
    command = [str(python), "-m", "tensorboard.main", "--logdir", str(folder), "--port", str(port)]
    if not args.print:
        print(f"{len(runs)} run{'s' if len(runs) > 1 else ''} at http://localhost:{port}/ (Ctrl-C to stop)", flush=True)
        os.execve(command[0], command, _environment())
    print(shlex.join(command))
    return 0


def chosen(client: "TrainerClient", args: argparse.Namespace) -> "list[Run]":
    if args.runs:
        return [client.get_run(reference) for reference in args.runs]
    return list(client.list_runs((), 0 if args.all else NEWEST).runs)


def _may_have_curves(run: "Run") -> bool:
    """A live run may write its first file any moment."""
    folder = RunDir(run.run_dir).tensorboard
    return folder.is_dir() and (not run.state.is_over or any(folder.iterdir()))


def find_python(root: StateRoot, runs: "Iterable[Run]") -> Path:
    """The python of an environment that has TensorBoard: of these runs' workers first."""
    from mosaic.catalog.workers import Catalog

    workers = {run.worker_name for run in runs}
    environments = Catalog(root).environments()
    having = [environment for environment in environments if environment.locate("tensorboard")]
    if not having:
        names = ", ".join(environment.name for environment in environments if not environment.is_own)
        raise MosaicError(
            f"No worker's environment has TensorBoard (looked in: {names or 'none is installed'}). "
            "Install a worker that brings it: mosaic worker install cleanrl"
        )
    return min(having, key=lambda environment: _rank(environment, workers)).python


def _rank(environment: "Environment", workers: set[str]) -> tuple[bool, str]:
    return (environment.worker not in workers, environment.name)


def link_runs(root: StateRoot, runs: "list[Run]", key: str = "") -> Path:
    """A folder with a link per run, the same folder when the same is asked for again: an open TensorBoard goes on."""
    import hashlib  # here, because the other verbs need not wait for it

    ids = " ".join(sorted(run.run_id for run in runs))
    folder = root.path / "cache" / "tensorboard" / (key or hashlib.sha256(ids.encode()).hexdigest()[:12])
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    wanted = {label: RunDir(run.run_dir).tensorboard for label, run in labelled(runs).items()}
    for entry in folder.iterdir():
        # A run may have been renamed or moved since; nothing but links is ever put here.
        if entry.is_symlink() and wanted.get(entry.name) != Path(os.readlink(entry)):
            entry.unlink()
    for label, target in wanted.items():
        if not os.path.lexists(folder / label):
            (folder / label).symlink_to(target)
    return folder


def labelled(runs: "Iterable[Run]") -> "dict[str, Run]":
    """Runs by what TensorBoard calls them: `<name>-<short id>` in letters that every file system takes."""
    found: dict[str, Run] = {}
    for run in runs:
        name = re.sub(r"[^A-Za-z0-9._=+-]+", "-", run.name or run.worker_name)[:LONGEST_NAME].strip("-.") or "run"
        label = f"{name}-{run.run_id[:SHORT_ID]}"
        found[f"{name}-{run.run_id}" if label in found else label] = run
    return found


def free_port() -> int:
    import socket

    for port in range(FIRST_PORT, FIRST_PORT + MOST_PORTS):
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("localhost", port))
            except OSError:
                continue
            return port
    raise MosaicError(f"No port from {FIRST_PORT} to {FIRST_PORT + MOST_PORTS - 1} is free. Name one with --port.")


def _environment() -> dict[str, str]:
    # The other environment has its own packages; ours on its path would be imported before them.
    return {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "PYTHONHOME")}
