"""TensorBoard with runs under their names, for `mosaic tensorboard` and the window.

It reads a folder of symbolic links:
<state root>/cache/tensorboard/<all, newest or a hash of the runs>/<name>-<short id>  →  the run's tensorboard folder
"""

import os
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from mosaic.model.errors import MosaicError
from mosaic.model.rundir import RunDir, StateRoot

if TYPE_CHECKING:
    from mosaic.catalog.environment import Environment
    from mosaic.client.run import Run

FIRST_PORT = 6006  # TensorBoard's own
MOST_PORTS = 100
LONGEST_NAME = 60
SHORT_ID = 13  # characters of a run's id, as in listings


@dataclass(frozen=True)
class Board:
    """The command of a TensorBoard, and where it will answer."""

    command: list[str]
    url: str

    @classmethod
    def of(cls, root: StateRoot, runs: "list[Run]", key: str = "", port: int | None = None) -> "Board":
        """Links the runs. `key` names their folder (default: a hash of them); `port`: default the first free one."""
        python = find_python(root, runs)
        folder = link_runs(root, runs, key)
        port = free_port() if port is None else port
        command = [str(python), "-m", "tensorboard.main", "--logdir", str(folder), "--port", str(port)]
        return cls(command, f"http://localhost:{port}/")

    def environment(self) -> dict[str, str]:
        # Our packages on the path would take precedence over those of the other environment.
        return {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "PYTHONHOME")}


def event_folder(run: "Run") -> Path:
    """Where the event files of a run are: an imported one leaves them in place."""
    if not run.origin:
        return RunDir(run.run_dir).tensorboard
    place = Path(run.origin.partition(":")[2])
    return place if place.is_dir() and next(place.glob("*tfevents*"), None) else RunDir(run.run_dir).tensorboard


def may_have_curves(run: "Run") -> bool:
    """Whether the run has TensorBoard files, or may still write some."""
    folder = event_folder(run)
    try:
        return folder.is_dir() and (not run.state.is_over or any(folder.iterdir()))
    except OSError:
        return False  # its worker closed the folder


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
    wanted = {label: event_folder(run) for label, run in labelled(runs).items()}
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
