"""Orphaned processes and shared memory of runs that are over."""

import errno
import os
import signal
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from mosaic_sdk.fastlane import control

from mosaic.model import procfs
from mosaic.model.file_locks import is_locked

YOUNG_S = 86_400.0  # frames of an unknown run may belong to another state root; only older ones are removed
IsOver = Callable[[str], bool]  # of a run id: whether the run is known here and over (or live)


@dataclass(frozen=True)
class Orphan:
    pid: int
    start_ticks: int | None  # identifies the process, because a pid can be reused
    run_id: str
    command: str


def find_orphans(trainer: Path, is_over: IsOver) -> Iterator[Orphan]:
    """Processes of runs below `trainer` that are over, including resource trackers."""
    for pid in procfs.pids():
        orphan = _look_at(pid, trainer, is_over) if pid != os.getpid() else None
        if orphan:
            yield orphan


def _look_at(pid: int, trainer: Path, is_over: IsOver) -> Orphan | None:
    run_dir = _run_dir(pid, trainer)
    if run_dir is None or not is_over(run_dir.name):
        return None
    command = _command(pid)
    # The tailer may still be reading the rest of the spool; it exits on its own.
    if "mosaic.tail" in command:
        return None
    return Orphan(pid, procfs.start_ticks(pid), run_dir.name, command[:80])


def _run_dir(pid: int, trainer: Path) -> Path | None:
    """The run folder that a process was started for, if it is below `trainer`."""
    environment = procfs.environment(pid)
    named = next((entry.partition(b"=")[2] for entry in environment if entry.startswith(b"MOSAIC_RUN_DIR=")), b"")
    if named:
        run_dir = Path(os.fsdecode(named))
        return run_dir if run_dir.parent.parent == trainer else None
    # A resource tracker can outlive a worker that cleared its environment. Its working folder still names the run.
    if "resource_tracker" in _command(pid):
        place = Path(procfs.working_folder(pid))
        return next((folder for folder in (place, *place.parents) if folder.parent.parent == trainer), None)
    return None


def _command(pid: int) -> str:
    return b" ".join(procfs.command_line(pid)).decode(errors="replace").strip()


def kill_orphan(orphan: Orphan) -> None:
    """Send SIGKILL through a pidfd, after checking that the pid was not reused."""
    try:
        handle = os.pidfd_open(orphan.pid)
    except ProcessLookupError:
        return
    try:
        if procfs.is_same(orphan.pid, orphan.start_ticks):
            signal.pidfd_send_signal(handle, signal.SIGKILL)
    except ProcessLookupError:
        pass
    finally:
        os.close(handle)


@dataclass(frozen=True)
class LeftFrames:
    """Frames of a run that remain in shared memory without a writer."""

    run_id: str
    bytes: int


def find_left_frames(is_live: IsOver, is_over: IsOver) -> Iterator[LeftFrames]:
    """FastLane segments whose writer has exited. Those of unknown runs must also be old."""
    for run_id in sorted({control.run_of(lane) for lane in control.lanes()}):
        pages = [Path(control.path_of(lane)) for lane in control.lanes(run_id)]
        # Read the kernel's list of locks: trying the lock could make a writer fail that is just starting.
        if is_live(run_id) or any(map(is_locked, pages)):
            continue
        facts = [fact for page in pages for file in page.parent.glob(f"{page.name}*") if (fact := _facts_of(file))]
        if not facts:
            continue  # removed meanwhile
        is_ours = all(os.geteuid() in (0, fact.st_uid) for fact in facts)
        if is_ours and (is_over(run_id) or all(time.time() - fact.st_mtime > YOUNG_S for fact in facts)):
            yield LeftFrames(run_id, sum({fact.st_ino: fact.st_blocks * 512 for fact in facts}.values()))


def _facts_of(file: Path) -> "os.stat_result | None":
    try:
        return file.lstat()
    except FileNotFoundError:
        return None


def remove_left_frames(left: LeftFrames) -> None:
    """Remove frames under the lock that a live writer would hold."""
    control.remove_dead(left.run_id)
    if control.lanes(left.run_id):
        raise BlockingIOError(errno.EAGAIN, "the writer is running")
