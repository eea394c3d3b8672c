"""The operator's ledger: one row per decision, on disk before the answer leaves.

1. A row is appended whole, with one write, and flushed to disk. Processes of several lanes share the file.
2. A former ledger answers what it already holds: such a decision costs no request, and its row is copied once, marked
   `replayed`.
"""

import fcntl
import json
import os
from collections import defaultdict, deque
from collections.abc import Mapping
from typing import Any

from mosaic_sdk import ledger
from mosaic_sdk.config import ConfigError
from mosaic_sdk.ledger import totals

__all__ = ["Former", "Ledger", "totals"]

Row = dict[str, Any]
# The episode, and not only its seed: a script may play one seed several times.
_KEY = ("operator", "lane", "agent_id", "episode_index", "seed", "step_index", "prompt_hash")
_FLAGS = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW


class Ledger:
    """Appends rows to a file; without a path it keeps nothing."""

    def __init__(self, path: str) -> None:
        self._fd: int | None = None
        if path:
            os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
            self._fd = os.open(path, _FLAGS, 0o600)

    def append(self, row: Mapping[str, Any]) -> None:
        """OSError if the row is not on disk afterwards; then nothing of it is in the file."""
        if self._fd is None:
            return
        line = json.dumps(row, separators=(",", ":"), default=str).encode() + b"\n"
        fcntl.flock(self._fd, fcntl.LOCK_EX)
        try:
            self._write(self._fd, line)
        finally:
            fcntl.flock(self._fd, fcntl.LOCK_UN)

    def close(self) -> None:
        if self._fd is not None:
            os.close(self._fd)
            self._fd = None

    def _write(self, fd: int, line: bytes) -> None:
        end = os.fstat(fd).st_size
        # A process that was killed in the middle of its row must not spoil the next one.
        whole = b"" if end == 0 or os.pread(fd, 1, end - 1) == b"\n" else b"\n"
        try:
            written = os.write(fd, whole + line)
            if written != len(whole + line):
                raise OSError(28, "No space left on device")
            os.fdatasync(fd)
        except OSError:
            os.ftruncate(fd, end)
            raise


class Former:
    """The ledger of an interrupted run. Each of its decisions is given out once."""

    def __init__(self, path: str) -> None:
        self._rows: defaultdict[tuple[Any, ...], deque[Row]] = defaultdict(deque)
        try:
            for row in ledger.read(path) if path else ():
                if not row.get("error"):  # a request that failed was not answered
                    self._rows[_key(row)].append(row)
        except OSError as error:
            raise ConfigError(f"replay_ledger: cannot read {path}: {error.strerror}.") from None

    def take(self, place: Mapping[str, Any]) -> Row | None:
        """The row of a decision that was answered, marked as a copy."""
        rows = self._rows.get(_key(place))
        return {**rows.popleft(), "replayed": True} if rows else None


def _key(row: Mapping[str, Any]) -> tuple[Any, ...]:
    return tuple(row.get(name) for name in _KEY)
