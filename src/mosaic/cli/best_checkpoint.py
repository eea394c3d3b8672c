"""The best checkpoint of a run, from checkpoints/best/best.json, which its worker writes."""

import json
import os
import stat
from dataclasses import dataclass
from pathlib import Path

MOST_BYTES = 64 * 1024


@dataclass(frozen=True)
class Best:
    """A checkpoint and its score in the evaluation that selected it."""

    score: float
    step: int
    episodes: int  # 0: the worker does not report it


def read_best(run_dir: str) -> Best | None:
    """The best checkpoint; None if there is none or its file is invalid, as a worker can write anything into it."""
    data = _read(Path(run_dir) / "checkpoints" / "best" / "best.json") if run_dir else b""
    try:
        content = json.loads(data) if data else None
    except (ValueError, RecursionError):
        return None
    if not isinstance(content, dict) or not _is_number(content.get("score")) or not _is_count(content.get("step")):
        return None
    episodes = content.get("episodes")
    # Some workers write a list with the return of each episode.
    many = len(episodes) if isinstance(episodes, list) else episodes
    return Best(float(content["score"]), content["step"], many if isinstance(many, int) and _is_count(many) else 0)


def _read(path: Path) -> bytes:
    """The content of a small regular file of this user; empty for anything else, such as a symbolic link or a FIFO."""
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
