"""The best checkpoint of a run, as its worker wrote it down: checkpoints/best/best.json."""

import json
import os
import stat
from dataclasses import dataclass
from pathlib import Path

MOST_BYTES = 64 * 1024


@dataclass(frozen=True)
class Best:
    """A checkpoint and the score it had in the evaluation that chose it."""

    score: float
    step: int
    episodes: int  # 0: the worker does not say


def read_best(run_dir: str) -> Best | None:
    """None when there is none, or a file that cannot be one: a worker can put anything into its own folder."""
    data = _read(Path(run_dir) / "checkpoints" / "best" / "best.json") if run_dir else b""
    try:
        told = json.loads(data) if data else None
    except (ValueError, RecursionError):
        return None
    if not isinstance(told, dict) or not _is_number(told.get("score")) or not _is_count(told.get("step")):
        return None
    episodes = told.get("episodes")
    # A list names the return of each.
    many = len(episodes) if isinstance(episodes, list) else episodes
    return Best(float(told["score"]), told["step"], many if isinstance(many, int) and _is_count(many) else 0)


def _read(path: Path) -> bytes:
    """A small regular file of our own; empty for anything else. Neither a link nor a FIFO is waited for or followed."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return b""
    try:
        status = os.fstat(fd)
        is_good = stat.S_ISREG(status.st_mode) and status.st_uid == os.geteuid() and status.st_size <= MOST_BYTES
        return os.read(fd, MOST_BYTES) if is_good else b""
    except OSError:
        return b""
    finally:
        os.close(fd)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**63
