"""`mosaic tensorboard`: start TensorBoard with runs under their names.

It reads a folder of symbolic links:
<state root>/cache/tensorboard/<all, newest or a hash of the runs>/<name>-<short id>  →  the run's tensorboard folder
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
from mosaic.cli.scores import count as count_of
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
        "show runs in TensorBoard",
        "mosaic tensorboard\nmosaic tensorboard 01JCQ 01JCR --port 7007\nmosaic tensorboard --all --print",
    )
    parser.add_argument("runs", metavar="RUN", nargs="*", help=f"{RUN_HELP} (default: the newest {NEWEST} runs)")
    parser.add_argument("--all", action="store_true", help="all runs that have TensorBoard files")
    parser.add_argument(
        "--port", type=count, metavar="N", help=f"the port (default: the first free one from {FIRST_PORT})"
    )
    parser.add_argument("--print", action="store_true", help="only print the command")


def open_board(args: argparse.Namespace) -> int:
    refuse_host(args, "tensorboard")
    if args.runs and args.all:
        raise BadUsage("name runs or give --all, not both")
    with connected(args) as client:
        runs = [run for run in chosen(client, args) if run.run_dir and _may_have_curves(run)]
    if not runs:
        raise MosaicError("None of these runs has TensorBoard files. List all runs with: mosaic runs --all")
    root = StateRoot.from_environment()
    python = find_python(root, runs)
    folder = link_runs(root, runs, "all" if args.all else "" if args.runs else "newest")
    port = args.port if args.port is not None else free_port()
    command = [str(python), "-m", "tensorboard.main", "--logdir", str(folder), "--port", str(port)]
    if not args.print:
        print(f"{count_of(len(runs), 'run')} at http://localhost:{port}/ (press Ctrl-C to stop)", flush=True)
        os.execve(command[0], command, _environment())
    print(shlex.join(command))
    return 0


def chosen(client: "TrainerClient", args: argparse.Namespace) -> "list[Run]":
    if args.runs:
        return [client.get_run(reference) for reference in args.runs]
    return list(client.list_runs((), 0 if args.all else NEWEST).runs)


def _may_have_curves(run: "Run") -> bool:
    """Whether the run has TensorBoard files, or may still write some."""
    folder = RunDir(run.run_dir).tensorboard
    return folder.is_dir() and (not run.state.is_over or any(folder.iterdir()))


def find_python(root: StateRoot, runs: "Iterable[Run]") -> Path:
    """The Python of an environment that has TensorBoard, preferably of a worker of these runs."""
    from mosaic.catalog.workers import Catalog

    workers = {run.worker_name for run in runs}
    environments = Catalog(root).environments()
    having = [environment for environment in environments if environment.locate("tensorboard")]
    if not having:
        names = ", ".join(environment.name for environment in environments if not environment.is_own)
        raise MosaicError(
            f"TensorBoard is not installed in the environment of any worker (installed: {names or 'none'}). "
            "Install a worker that depends on it: mosaic worker install cleanrl"
        )
    return min(having, key=lambda environment: _rank(environment, workers)).python


def _rank(environment: "Environment", workers: set[str]) -> tuple[bool, str]:
    return (environment.worker not in workers, environment.name)


def link_runs(root: StateRoot, runs: "list[Run]", key: str = "") -> Path:
    """A folder with a link per run. The same runs get the same folder, so that an open TensorBoard keeps working."""
    import hashlib  # slow to import, and not needed for --help

    ids = " ".join(sorted(run.run_id for run in runs))
    folder = root.path / "cache" / "tensorboard" / (key or hashlib.sha256(ids.encode()).hexdigest()[:12])
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    wanted = {label: RunDir(run.run_dir).tensorboard for label, run in labelled(runs).items()}
    for entry in folder.iterdir():
        # A run may have been renamed or moved. This folder contains only links.
        if entry.is_symlink() and wanted.get(entry.name) != Path(os.readlink(entry)):
            entry.unlink()
    for label, target in wanted.items():
        if not os.path.lexists(folder / label):
            (folder / label).symlink_to(target)
    return folder


def labelled(runs: "Iterable[Run]") -> "dict[str, Run]":
    """Runs by their name in TensorBoard, `<name>-<short id>`, in characters that are valid in every file system."""
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
    raise MosaicError(f"No port from {FIRST_PORT} to {FIRST_PORT + MOST_PORTS - 1} is free. Choose one with --port.")


def _environment() -> dict[str, str]:
    # Our packages on the path would take precedence over those of the other environment.
    return {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "PYTHONHOME")}
