"""The checks of `mosaic doctor`. A check only looks and explains; only a fix changes anything."""

import ctypes
import errno
import os
import shutil
import stat
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from mosaic import __version__
from mosaic.cli.orphans import find_left_frames, find_orphans, kill_orphan, remove_left_frames
from mosaic.model.file_locks import is_locked, lock_holder
from mosaic.model.registry_origin import RegistryOrigin, confirm
from mosaic.model.rundir import AREAS, StateRoot
from mosaic.model.states import RunState
from mosaic.present.folder_size import usage_of_path
from mosaic.present.text import size

if TYPE_CHECKING:
    from mosaic.wire import mosaic_pb2 as pb

SHM = Path("/dev/shm")
ROOT_NEEDS_BYTES = 1 << 30
SHM_NEEDS_BYTES = 64 << 20
PYTHON_LIMIT_S = 20.0
RESTART = "Restart it; runs continue meanwhile: mosaic daemon stop && mosaic daemon start"


@dataclass(frozen=True)
class Finding:
    """A problem."""

    what: str
    why: str  # why it matters
    remedy: str = ""  # what the fix does, or what the user should do
    fix: Callable[[], None] | None = None  # only if it is safe

    def to_dict(self) -> dict[str, object]:
        return {"what": self.what, "why": self.why, "remedy": self.remedy, "fixable": self.fix is not None}


@dataclass(frozen=True)
class Installation:
    """A state root, and what its daemon reports if one answers."""

    root: StateRoot
    health: "pb.Health | None" = None
    states: Mapping[str, RunState] = field(default_factory=dict)
    refusal: str = ""  # why the daemon refused the request
    shm: Path = SHM

    def is_over(self, run_id: str) -> bool:
        """Whether a run of this root is known to be over; without a daemon, from its exit.json."""
        if run_id in self.states:
            return self.states[run_id].is_over
        folders = [self.root.run(area, run_id) for area in AREAS]
        return any(os.path.lexists(run.exit) and not is_locked(run.owner_lock) for run in folders)

    def is_live(self, run_id: str) -> bool:
        """Whether a run of this root may still be running."""
        if run_id in self.states:
            return not self.states[run_id].is_over
        return not self.is_over(run_id) and any(os.path.lexists(self.root.run(area, run_id).path) for area in AREAS)


def run_checks(installation: Installation) -> Iterator[Finding]:
    for check in CHECKS:
        yield from check(installation)


def check_root(installation: Installation) -> Iterator[Finding]:
    path = installation.root.path
    if not path.exists():
        return
    mode = stat.S_IMODE(path.stat().st_mode)
    if mode & 0o077:
        yield Finding(
            f"Other users can access {path} (mode {mode:o}).",
            "A user who can read the token in it can start processes as you.",
            "Set its mode to 0700.",
            partial(path.chmod, 0o700),
        )
    if not os.access(path, os.W_OK | os.X_OK):
        yield Finding(
            f"You cannot write to {path}.",
            "No run can be stored.",
            "Change its owner, or set MOSAIC_HOME to another folder.",
        )


def check_token(installation: Installation) -> Iterator[Finding]:
    token = installation.root.token
    if token.exists() and stat.S_IMODE(token.stat().st_mode) & 0o077:
        yield Finding(
            f"Other users can read {token}.",
            "A user who has copied the token can start processes as you.",
            f"mosaic daemon stop && rm {token} && mosaic daemon start",
        )


def check_daemon(installation: Installation) -> Iterator[Finding]:
    root, health = installation.root, installation.health
    if installation.refusal:
        yield Finding(
            "The daemon refused the request.", installation.refusal, "Check MOSAIC_ADDRESS and MOSAIC_TOKEN_FILE."
        )
    elif health is None:
        yield from _silent_daemon(root)
    elif not health.healthy:
        yield Finding(
            f"The daemon is not healthy: {health.problem}",
            "Telemetry may not be stored; until then it stays in the runs' spools.",
            RESTART,
        )
    if health is not None and health.version != __version__:
        yield Finding(
            f"The daemon is version {health.version}, this command is {__version__}.",
            "Different versions may be incompatible.",
            RESTART,
        )


def _silent_daemon(root: StateRoot) -> Iterator[Finding]:
    pid = lock_holder(root.lock) or _pid_in(root.pid)
    if is_locked(root.lock):
        yield Finding(
            f"A daemon{f' (pid {pid})' if pid else ''} holds {root.lock} but does not answer.",
            "Runs can neither be submitted nor watched, and no other daemon can start.",
            f"Find the reason in {root.daemon_log}; stop it with: kill {pid or 'PID'}",
        )
        return
    stale = [path for path in (root.pid, root.socket, root.address) if path.exists()]
    if stale:
        yield Finding(
            f"The daemon{f' (pid {pid})' if pid else ''} exited without cleaning up.",
            "Its runs continue, but their telemetry is stored only when a daemon runs again.",
            f"Remove the stale files {', '.join(path.name for path in stale)}, then run: mosaic daemon start",
            partial(_remove_stale, root, stale),
        )


def _remove_stale(root: StateRoot, stale: list[Path]) -> None:
    if is_locked(root.lock):
        return  # a daemon has started since, and the files belong to it
    for path in stale:
        path.unlink(missing_ok=True)


def _pid_in(file: Path) -> int:
    try:
        return int(file.read_text())
    except (OSError, ValueError):
        return 0


def check_registry(installation: Installation) -> Iterator[Finding]:
    """A rebuild that the user has not confirmed yet."""
    origin = RegistryOrigin.read(installation.root)
    if told := origin.describe():
        kept = f" The old file is kept as {origin.damaged_file}." if origin.damaged_file else ""
        yield Finding(
            told,
            f"Changes of the last moments before may be missing.{kept}",
            "Compare it with what you expect, then confirm that you have seen this.",
            partial(confirm, installation.root),
        )


def check_orphans(installation: Installation) -> Iterator[Finding]:
    for orphan in find_orphans(installation.root.trainer, installation.is_over):
        yield Finding(
            f"Orphaned process {orphan.pid} ({orphan.command}) belongs to run {orphan.run_id}, which is over.",
            "It uses memory, and perhaps a GPU that was granted to another run.",
            "Kill it.",
            partial(kill_orphan, orphan),
        )


def check_segments(installation: Installation) -> Iterator[Finding]:
    for left in find_left_frames(installation.is_live, installation.is_over):
        yield Finding(
            f"Frames of run {left.run_id} ({size(left.bytes)}) remain in /dev/shm, but their writer has exited.",
            "They use memory until they are removed.",
            "Remove them.",
            partial(remove_left_frames, left),
        )


def check_room(installation: Installation) -> Iterator[Finding]:
    needs = {installation.root.path: ROOT_NEEDS_BYTES, installation.shm: SHM_NEEDS_BYTES}
    for place, needed in needs.items():
        if not place.exists():
            continue
        free = shutil.disk_usage(place).free
        if free < needed:
            yield Finding(
                f"Only {size(free)} free in {place}.",
                "Telemetry cannot be stored on a full disk, and frames need shared memory.",
                "See what uses the space with: mosaic du, mosaic gc",
            )


def check_holes(installation: Installation) -> Iterator[Finding]:
    if not os.access(installation.root.path, os.W_OK):
        return
    reason = try_hole(installation.root.path)
    if reason:
        yield Finding(
            f"The filesystem of {installation.root.path} cannot free parts of a file ({reason}).",
            "The spools of long runs keep their full size until the run is deleted.",
            "Set MOSAIC_HOME to a folder on ext4, xfs, btrfs or tmpfs.",
        )


def try_hole(folder: Path) -> str:
    """Why the filesystem cannot punch a hole into a file; empty if it can."""
    punch_keeping_size = 0x02 | 0x01
    libc = ctypes.CDLL(None, use_errno=True)
    libc.fallocate.argtypes = [ctypes.c_int, ctypes.c_int, ctypes.c_int64, ctypes.c_int64]
    try:
        with tempfile.TemporaryFile(dir=folder) as file:
            file.write(b"x" * 65536)
            file.flush()
            failed = libc.fallocate(file.fileno(), punch_keeping_size, 0, 32768)
            return errno.errorcode.get(ctypes.get_errno(), "unknown error") if failed else ""
    except OSError as error:
        return str(error.strerror)


def check_environments(installation: Installation) -> Iterator[Finding]:
    from mosaic.catalog.advice import how_to_get_again  # imports the whole catalog, which the other checks do not need

    envs = installation.root.envs
    folders = sorted(envs.iterdir()) if envs.is_dir() else []
    for folder in folders:
        reason = "" if folder.name.startswith(".") or not folder.is_dir() else why_broken(folder / "bin" / "python")
        if reason:
            yield Finding(
                f"The environment of worker '{folder.name}' is broken: {reason}.",
                "Runs of this worker fail immediately.",
                how_to_get_again(folder.name, envs),
            )


def check_unfinished(installation: Installation) -> Iterator[Finding]:
    """Folders that a killed install left. Those of a running install are not a problem."""
    for envs in (installation.root.envs, installation.root.script_envs):
        yield from _unfinished_in(envs)


def _unfinished_in(envs: Path) -> Iterator[Finding]:
    from mosaic.catalog.place import tidy_now

    left = sorted([*envs.glob(".new-*"), *envs.glob(".old-*")])
    if not left or is_locked(envs / ".lock"):
        return
    for folder in left:
        replaced = envs / folder.name.removeprefix(".old-")
        if folder.name.startswith(".old-") and not replaced.exists():
            yield Finding(
                f"The environment '{replaced.name}' is missing because an install was killed.",
                "Runs in it are refused.",
                f"Move {folder.name} back.",
                partial(tidy_now, envs),
            )
        else:
            yield Finding(
                f"{folder} ({size(usage_of_path(folder))}) is an unfinished environment, left by a killed install.",
                "It wastes disk space.",
                "Remove it.",
                partial(tidy_now, envs),
            )


def why_broken(python: Path) -> str:
    try:
        done = subprocess.run([python, "-c", "pass"], capture_output=True, timeout=PYTHON_LIMIT_S, cwd="/")
    except FileNotFoundError:
        gone = f" (it points to {os.readlink(python)})" if python.is_symlink() else ""
        return f"{python} is missing{gone}"
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"its Python does not start ({error})"
    return f"its Python exits with code {done.returncode}" if done.returncode else ""


CHECKS: tuple[Callable[[Installation], Iterator[Finding]], ...] = (
    check_root,
    check_token,
    check_daemon,
    check_registry,
    check_orphans,
    check_segments,
    check_room,
    check_holes,
    check_environments,
    check_unfinished,
)
