"""Processes and shared memory that outlived their run."""

import fcntl
import os
import signal
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

SEGMENT_PREFIX = "mosaic.fastlane."

IsOver = Callable[[str], bool]  # of a run id: known here, and over


@dataclass(frozen=True)
class Orphan:
    pid: int
    start_ticks: str  # a pid alone may be somebody else by now
    run_id: str
    command: str


def find_orphans(trainer: Path, is_over: IsOver) -> Iterator[Orphan]:
    """Processes of runs below `trainer` that are over, resource trackers among them."""
    for name in os.listdir("/proc"):
        if name.isdigit() and int(name) != os.getpid():
            orphan = _look_at(int(name), trainer, is_over)
            if orphan:
                yield orphan


def _look_at(pid: int, trainer: Path, is_over: IsOver) -> Orphan | None:
    try:
        run_dir = _run_dir(pid, trainer)
        if run_dir is None or not is_over(run_dir.name):
            return None
        command = _command(pid)
        # The tailer may still be reading what the run left; it ends by itself.
        if "mosaic.proxy" in command:
            return None
        return Orphan(pid, _start_ticks(pid), run_dir.name, command[:80])
    except OSError:
        return None  # gone, or another user's


def _run_dir(pid: int, trainer: Path) -> Path | None:
    """The run folder a process was started for, if it lies below `trainer`."""
    environ = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    told = next((entry.partition(b"=")[2] for entry in environ if entry.startswith(b"MOSAIC_RUN_DIR=")), b"")
    if told:
        run_dir = Path(os.fsdecode(told))
        return run_dir if run_dir.parent.parent == trainer else None
    # A tracker outlives a worker that cleared its environment; where it works still tells whose it was.
    if "resource_tracker" in _command(pid):
        place = Path(os.readlink(f"/proc/{pid}/cwd"))
        return next((folder for folder in (place, *place.parents) if folder.parent.parent == trainer), None)
    return None


def _command(pid: int) -> str:
    return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace").strip()


def _start_ticks(pid: int) -> str:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19]


def kill_orphan(orphan: Orphan) -> None:
    """SIGKILL, through a pidfd that was checked to be the process we saw."""
    try:
        handle = os.pidfd_open(orphan.pid)
    except ProcessLookupError:
        return
    try:
        if _start_ticks(orphan.pid) == orphan.start_ticks:
            signal.pidfd_send_signal(handle, signal.SIGKILL)
    except (ProcessLookupError, FileNotFoundError):
        pass
    finally:
        os.close(handle)


def find_segments(shm: Path, is_over: IsOver) -> list[Path]:
    """FastLane segments of runs that are over."""
    if not shm.is_dir():
        return []
    return [path for path in sorted(shm.glob(f"{SEGMENT_PREFIX}*")) if is_over(_run_of(path))]


def _run_of(segment: Path) -> str:
    return segment.name.removeprefix(SEGMENT_PREFIX).partition(".")[0]


def remove_segment(segment: Path) -> None:
    """Only with the lock that a living writer holds on the run's control page."""
    page = segment.with_name(f"{SEGMENT_PREFIX}{_run_of(segment)}")
    try:
        fd = os.open(page, os.O_RDWR | os.O_CLOEXEC)
    except FileNotFoundError:
        segment.unlink(missing_ok=True)
        return
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        segment.unlink(missing_ok=True)
    finally:
        os.close(fd)
