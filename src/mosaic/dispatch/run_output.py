"""What a run leaves in its folder: the size and the last lines of its output, its reserve, its manifest."""

import logging
import os
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from mosaic_sdk.fastlane.control import lanes, remove_dead

from mosaic.model import durable
from mosaic.model.run import RunRecord
from mosaic.model.rundir import RunDir

log = logging.getLogger(__name__)
STDERR_TAIL_BYTES = 16_384
UNREAD_BYTES = 65_536


def exit_of_dead_holder(attempt: int, rundir: RunDir, unkillable: bool) -> dict[str, Any]:
    """The content of the exit.json that a killed holder could not write."""
    return {
        "version": 1,
        "attempt": attempt,
        "exit_code": None,
        "signal": None,
        "ended_by": "holder died",
        "unkillable": unkillable,
        "stdout_bytes": _size(rundir.stdout),
        "stderr_bytes": _size(rundir.stderr),
    }


def release_reserve(rundir: RunDir) -> None:
    """Free the blocks that a killed holder reserved ahead of the spool. Only when its whole tree is proven dead."""
    for path in (rundir.stdout, rundir.stderr):
        try:
            _truncate_to_size(path)
        except OSError as error:
            log.info("The reserve of %s cannot be released: %s", path, error)


def _truncate_to_size(path: Path) -> None:
    found = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        os.fchmod(found, 0o600)
        # Through the descriptor: the name may have been replaced by a symbolic link meanwhile.
        with open(f"/proc/self/fd/{found}", "ab") as file:
            file.truncate(os.fstat(found).st_size)
    finally:
        os.fchmod(found, 0o400)
        os.close(found)


def remove_segments(run_id: str) -> None:
    """Unlink the run's FastLane segments. Called when its tree is proven dead; their locks confirm it."""
    remove_dead(run_id)
    for lane in lanes(run_id):
        log.warning("%s stays in /dev/shm: a process still holds its lock.", lane, extra={"run_id": run_id})


def bytes_missing(exit: Mapping[str, Any], stdout_offset: int, stderr_offset: int) -> int:
    """How much of the spool is not in the store yet."""
    stdout = max(0, (exit.get("stdout_bytes") or 0) - stdout_offset)
    stderr = max(0, (exit.get("stderr_bytes") or 0) - stderr_offset)
    return stdout + stderr


def total_bytes(rundir: RunDir) -> int:
    """How much the worker has printed, on both streams, since it started."""
    return _plain_size(rundir.stdout) + _plain_size(rundir.stderr)


def has_unread_line(rundir: RunDir, stdout_offset: int) -> bool:
    """Whether the worker has printed a whole line that is not in the store yet."""
    try:
        with rundir.stdout.open("rb") as file:
            file.seek(stdout_offset)
            return b"\n" in file.read(UNREAD_BYTES)
    except OSError:
        return False


def is_cut(exit: Mapping[str, Any], rundir: RunDir) -> bool:
    """Whether the spool was replaced, deleted or truncated: then its missing bytes will never arrive."""
    sizes = ((rundir.stdout, "stdout_bytes"), (rundir.stderr, "stderr_bytes"))
    return any(_plain_size(path) < (exit.get(name) or 0) for path, name in sizes)


def stderr_tail(rundir: RunDir) -> str:
    try:
        with rundir.stderr.open("rb") as file:
            file.seek(max(0, os.fstat(file.fileno()).st_size - STDERR_TAIL_BYTES))
            return file.read().replace(b"\0", b"").decode(errors="replace")
    except OSError:
        return ""


def write_manifest(record: RunRecord, rundir: RunDir) -> None:
    """Write analytics.json for a worker that wrote none; it lists only what exists."""
    if rundir.analytics.exists():
        return
    folders = {"tensorboard": rundir.tensorboard, "checkpoints": rundir.checkpoints, "videos_dir": rundir.videos}
    filled = {name: path.name for name, path in folders.items() if path.is_dir() and any(path.iterdir())}
    manifest = {
        "version": 1,
        "run_id": record.run_id,
        "worker_type": record.worker_name,
        "artifacts": {
            "tensorboard": {"log_dir": filled["tensorboard"]} if "tensorboard" in filled else None,
            "wandb": None,
            "checkpoints": {"directory": filled["checkpoints"]} if "checkpoints" in filled else None,
            "logs_dir": rundir.logs.name,
            "videos_dir": filled.get("videos_dir"),
        },
        "metadata": {"written_by": "daemon"},
    }
    durable.write_json(rundir.analytics, manifest)


def with_holder_log(sentence: str, rundir: RunDir) -> str:
    """The sentence, followed by the last lines of the holder's log."""
    try:
        lines = rundir.holder_log.read_text(errors="replace").strip().splitlines()[-4:]
    except OSError:
        lines = []
    return "\n".join([sentence, *lines])


def _plain_size(path: Path) -> int:
    """0 for anything that is not a regular file, such as a symbolic link."""
    try:
        found = path.lstat()
    except OSError:
        return 0
    return found.st_size if stat.S_ISREG(found.st_mode) else 0


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0
