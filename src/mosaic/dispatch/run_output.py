"""What a run leaves in its folder: the size and the last lines of its output, its reserve, its manifest."""

import errno
import logging
import os
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from mosaic_sdk.fastlane.control import lanes, remove_dead

from mosaic.model import durable
from mosaic.model.end_proof import of_attempt, own_launch, secret_of
from mosaic.model.run import RunRecord
from mosaic.model.rundir import RunDir

log = logging.getLogger(__name__)
STDERR_TAIL_BYTES = 16_384
UNREAD_BYTES = 65_536
HOLDER_LOG_BYTES = 16_384
_MAY_PASS = (errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EROFS, errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.EAGAIN)


def may_pass(error: Exception) -> bool:
    """Whether an error is the machine's, such as a full disk, and not due to what a worker left in its folder."""
    return isinstance(error, OSError) and error.errno in _MAY_PASS


def open_up(rundir: RunDir) -> None:
    """Give the run's folder and its logs mode 0700 again: a worker that removed it must not hide its own end."""
    for folder in (rundir.path, rundir.logs):
        try:
            found = folder.lstat()
            if stat.S_ISDIR(found.st_mode) and found.st_mode & 0o700 != 0o700 and found.st_uid == os.geteuid():
                folder.chmod(0o700)
                log.warning("%s was not accessible; it has mode 0700 again.", folder, extra={"run_id": rundir.run_id})
        except OSError as error:
            log.info("%s cannot be made accessible: %s", folder, error, extra={"run_id": rundir.run_id})


def write_exit(attempt: int, rundir: RunDir, unkillable: bool) -> None:
    """The exit.json that a killed holder could not write."""
    durable.insist_on_json(rundir.exit, exit_of_dead_holder(attempt, rundir, unkillable))


def exit_of_dead_holder(attempt: int, rundir: RunDir, unkillable: bool) -> dict[str, Any]:
    return {
        "version": 1,
        "attempt": attempt,
        "secret": secret_of(
            *(of_attempt(facts, attempt) for facts in (own_launch(rundir), durable.read_json(rundir.started)))
        ),
        "exit_code": None,
        "signal": None,
        "ended_by": "holder died",
        "unkillable": unkillable,
        **printed(rundir),
    }


def printed(rundir: RunDir) -> dict[str, int]:
    """How much the worker has printed on each stream, as exit.json says it."""
    return {"stdout_bytes": _plain_size(rundir.stdout), "stderr_bytes": _plain_size(rundir.stderr)}


def release_reserve(rundir: RunDir) -> None:
    """Free the blocks that a killed holder reserved ahead of the spool. Only when its whole tree is proven dead."""
    for path in (rundir.stdout, rundir.stderr):
        try:
            _truncate_to_size(path, rundir)
        except OSError as error:
            log.info("The reserve of %s cannot be released: %s", path, error)


def _truncate_to_size(path: Path, rundir: RunDir) -> None:
    found = durable.open_regular(path, below=rundir.path)
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
    stdout = max(0, _count(exit, "stdout_bytes") - stdout_offset)
    stderr = max(0, _count(exit, "stderr_bytes") - stderr_offset)
    return stdout + stderr


def total_bytes(rundir: RunDir) -> int:
    """How much the worker has printed, on both streams, since it started."""
    return sum(printed(rundir).values())


def has_unread_line(rundir: RunDir, stdout_offset: int) -> bool:
    """Whether the worker has printed a whole line that is not in the store yet."""
    try:
        fd = durable.open_regular(rundir.stdout, below=rundir.path)
    except OSError:
        return False
    try:
        return b"\n" in os.pread(fd, UNREAD_BYTES, stdout_offset)
    except OSError:
        return False
    finally:
        os.close(fd)


def is_cut(exit: Mapping[str, Any], rundir: RunDir) -> bool:
    """Whether missing bytes will never arrive: the spool was replaced, deleted or truncated, or no tailer can start."""
    sizes = ((rundir.stdout, "stdout_bytes"), (rundir.stderr, "stderr_bytes"))
    is_short = any(_plain_size(path) < _count(exit, name) for path, name in sizes)
    return is_short or not own_launch(rundir)


def stderr_tail(rundir: RunDir) -> str:
    try:
        end = durable.read_tail(rundir.stderr, STDERR_TAIL_BYTES, below=rundir.path)
    except OSError:
        return ""
    return end.replace(b"\0", b"").decode(errors="replace")


def write_manifest(record: RunRecord, rundir: RunDir) -> None:
    """Write analytics.json for a worker that wrote none, or something that is not a file; it lists only what exists."""
    if _is_plain(rundir.analytics):
        return
    folders = {"tensorboard": rundir.tensorboard, "checkpoints": rundir.checkpoints, "videos_dir": rundir.videos}
    filled = {name: path.name for name, path in folders.items() if _is_filled(path)}
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
    try:
        durable.insist_on_json(rundir.analytics, manifest)
    except OSError as error:
        if may_pass(error):
            raise  # the dispatcher tries again
        log.warning("%s cannot be written: %s", rundir.analytics, error, extra={"run_id": rundir.run_id})


def with_holder_log(sentence: str, rundir: RunDir) -> str:
    """The sentence, followed by the last lines of the holder's log."""
    try:
        end = durable.read_tail(rundir.holder_log, HOLDER_LOG_BYTES)
    except OSError:
        end = b""
    lines = end.decode(errors="replace").strip().splitlines()[-4:]
    return "\n".join([sentence, *lines])


def _count(exit: Mapping[str, Any], name: str) -> int:
    found = exit.get(name)
    return found if isinstance(found, int) else 0


def _plain_size(path: Path) -> int:
    """0 for anything that is not a regular file, such as a symbolic link."""
    try:
        found = path.lstat()
    except OSError:
        return 0
    return found.st_size if stat.S_ISREG(found.st_mode) else 0


def _is_plain(path: Path) -> bool:
    try:
        return stat.S_ISREG(path.lstat().st_mode)
    except OSError:
        return False


def _is_filled(folder: Path) -> bool:
    """Whether a folder has an entry; no for one that is a link or cannot be read."""
    try:
        if folder.is_symlink():
            return False
        with os.scandir(folder) as entries:
            return next(entries, None) is not None
    except OSError:
        return False
