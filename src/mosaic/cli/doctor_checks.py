"""What can be wrong with a state root and its machine. Each check looks and explains; only a fix changes anything."""

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
from mosaic.cli.disk_usage import usage_of_path
from mosaic.cli.file_locks import is_locked, lock_holder
from mosaic.cli.orphans import find_left_frames, find_orphans, kill_orphan, remove_left_frames
from mosaic.cli.terminal_text import size
from mosaic.model.rundir import AREAS, StateRoot
from mosaic.model.states import RunState

if TYPE_CHECKING:
    from mosaic.wire import mosaic_pb2 as pb

SHM = Path("/dev/shm")
ROOT_NEEDS_BYTES = 1 << 30
SHM_NEEDS_BYTES = 64 << 20
PYTHON_LIMIT_S = 20.0


@dataclass(frozen=True)
class Finding:
    what: str
    why: str  # it matters
    remedy: str = ""  # what the fix does, or what a person should do
    fix: Callable[[], None] | None = None  # only what is safe

    def to_dict(self) -> dict[str, object]:
        return {"what": self.what, "why": self.why, "remedy": self.remedy, "fixable": self.fix is not None}


@dataclass(frozen=True)
class Installation:
    """A state root, and what its daemon said, if one answered."""

    root: StateRoot
    health: "pb.Health | None" = None
    states: Mapping[str, RunState] = field(default_factory=dict)
    refusal: str = ""  # what a daemon that answered had against us
    shm: Path = SHM

    def is_over(self, run_id: str) -> bool:
        """Whether a run of this root is known to be over. Without a daemon its exit.json tells."""
        if run_id in self.states:
            return self.states[run_id].is_over
        folders = [self.root.run(area, run_id) for area in AREAS]
        return any(run.exit.exists() and not is_locked(run.owner_lock) for run in folders)

    def is_live(self, run_id: str) -> bool:
        """Whether a run of this root may still be going."""
        if run_id in self.states:
            return not self.states[run_id].is_over
        return not self.is_over(run_id) and any(self.root.run(area, run_id).path.exists() for area in AREAS)


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
            f"{path} is open to others (mode {mode:o}).",
            "Whoever reads the token in it can start processes as you.",
            "Make it 0700.",
            partial(path.chmod, 0o700),
        )
    if not os.access(path, os.W_OK | os.X_OK):
        yield Finding(
            f"You cannot write to {path}.", "No run can be stored.", "Make it yours, or set MOSAIC_HOME elsewhere."
        )


def check_token(installation: Installation) -> Iterator[Finding]:
    token = installation.root.token
    if token.exists() and stat.S_IMODE(token.stat().st_mode) & 0o077:
        yield Finding(
            f"{token} can be read by others.",
            "Somebody may have it already, and it opens everything.",
            f"mosaic daemon stop && rm {token} && mosaic daemon start",
        )


def check_daemon(installation: Installation) -> Iterator[Finding]:
    root, health = installation.root, installation.health
    if installation.refusal:
        yield Finding("The daemon refuses us.", installation.refusal, "Look at MOSAIC_ADDRESS and MOSAIC_TOKEN_FILE.")
    elif health is None:
        yield from _silent_daemon(root)
    elif not health.healthy:
        yield Finding(
            f"The daemon is not healthy: {health.problem}",
            "Telemetry may not be stored; it waits in the runs' spools.",
            "mosaic daemon stop && mosaic daemon start (runs go on meanwhile)",
        )
    if health is not None and health.version != __version__:
        yield Finding(
            f"The daemon is version {health.version}, this command is {__version__}.",
            "They may not understand each other.",
            "mosaic daemon stop && mosaic daemon start (runs go on meanwhile)",
        )


def _silent_daemon(root: StateRoot) -> Iterator[Finding]:
    pid = lock_holder(root.lock) or _pid_in(root.pid)
    if is_locked(root.lock):
        yield Finding(
            f"A daemon{f' (pid {pid})' if pid else ''} holds {root.lock} but does not answer.",
            "Nothing can be submitted or watched, and no other daemon can start.",
            f"Look at {root.daemon_log}; end it with: kill {pid or 'PID'}",
        )
        return
    stale = [path for path in (root.pid, root.socket, root.address) if path.exists()]
    if stale:
        yield Finding(
            f"The daemon{f' (pid {pid})' if pid else ''} died without a goodbye.",
            "Its runs go on and keep their telemetry, but nobody stores it until a daemon runs again.",
            f"Remove {', '.join(path.name for path in stale)}. Then: mosaic daemon start",
            partial(_remove_stale, root, stale),
        )


def _remove_stale(root: StateRoot, stale: list[Path]) -> None:
    if is_locked(root.lock):
        return  # a daemon has started since; the files are its own
    for path in stale:
        path.unlink(missing_ok=True)


def _pid_in(file: Path) -> int:
    try:
        return int(file.read_text())
    except (OSError, ValueError):
        return 0


def check_orphans(installation: Installation) -> Iterator[Finding]:
    for orphan in find_orphans(installation.root.trainer, installation.is_over):
        yield Finding(
            f"Process {orphan.pid} ({orphan.command}) belongs to run {orphan.run_id}, which is over.",
            "It holds memory and perhaps a GPU that another run was promised.",
            "Kill it.",
            partial(kill_orphan, orphan),
        )


def check_segments(installation: Installation) -> Iterator[Finding]:
    for left in find_left_frames(installation.is_live, installation.is_over):
        yield Finding(
            f"Frames of run {left.run_id} ({size(left.bytes)}) are left in /dev/shm; their writer is dead.",
            "Shared memory is memory: it is not free until the files are gone.",
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
                f"Only {size(free)} are free in {place}.",
                "Telemetry waits while its disk is full, and frames need shared memory.",
                "See what takes room with: mosaic du, mosaic gc",
            )


def check_holes(installation: Installation) -> Iterator[Finding]:
    if not os.access(installation.root.path, os.W_OK):
        return
    reason = try_hole(installation.root.path)
    if reason:
        yield Finding(
            f"The filesystem of {installation.root.path} cannot punch holes ({reason}).",
            "The log files of long runs keep their full size until the run is deleted.",
            "Set MOSAIC_HOME to a folder on ext4, xfs, btrfs or tmpfs.",
        )


def try_hole(folder: Path) -> str:
    """Why a hole cannot be punched into a file here; empty when it can."""
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
    from mosaic.catalog.advice import how_to_get_again  # the whole catalog, and every verb would wait for it

    envs = installation.root.envs
    folders = sorted(envs.iterdir()) if envs.is_dir() else []
    for folder in folders:
        reason = "" if folder.name.startswith(".") or not folder.is_dir() else why_broken(folder / "bin" / "python")
        if reason:
            yield Finding(
                f"The environment of worker '{folder.name}' is broken: {reason}.",
                "Runs of this worker fail at once.",
                how_to_get_again(folder.name, envs),
            )


def check_half_made(installation: Installation) -> Iterator[Finding]:
    """What a killed install left. While one is at work the folders are its own."""
    from mosaic.catalog.place import tidy_now

    envs = installation.root.envs
    left = sorted([*envs.glob(".new-*"), *envs.glob(".old-*")])
    if not left or is_locked(envs / ".lock"):
        return
    for folder in left:
        replaced = envs / folder.name.removeprefix(".old-")
        if folder.name.startswith(".old-") and not replaced.exists():
            yield Finding(
                f"The environment of worker '{replaced.name}' is out of its place, since an install was killed.",
                "Runs of this worker are refused.",
                f"Move {folder.name} back.",
                partial(tidy_now, envs),
            )
        else:
            yield Finding(
                f"{folder} ({size(usage_of_path(folder))}) is half an environment, left by an install that was killed.",
                "It takes room, and nothing uses it.",
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
        return f"its python does not start ({error})"
    return f"its python ends with exit code {done.returncode}" if done.returncode else ""


CHECKS: tuple[Callable[[Installation], Iterator[Finding]], ...] = (
    check_root,
    check_token,
    check_daemon,
    check_orphans,
    check_segments,
    check_room,
    check_holes,
    check_environments,
    check_half_made,
)
