"""Episode lines of a fast env, written many at a time: a write for each would cost the loop more than its steps."""

import atexit
import threading
import time
from collections import deque
from typing import Any, Deque, Tuple, Union

from mosaic_sdk import names
from mosaic_sdk.emit import Emitter

INTERVAL_S = 0.05
_EPISODE = '{{"{}":"{}"'.format(names.EVENT_TYPE_KEY, names.EPISODE)
# repr() of a finite float is JSON, and so is that of an int.
_LINE = (
    _EPISODE + ',"episode_index":%r,"total_reward":%r,"steps":%r,"env_index":%r,"terminated":%s,"truncated":%s,'
    '"global_step":%r,"ts_unix_ns":%r}\n'
)


class BatchEmitter(Emitter):
    """1. Lines are written in the order in which they were emitted.
    2. An episode's line waits if another one was written less than INTERVAL_S before, until `flush` or the next line
       that does not wait. Only while `is_flushed`: somebody calls `flush` regularly.
    3. A forked child writes each line at once: it may end without any last words.
    """

    def __init__(self) -> None:
        super().__init__()
        self.is_flushed = False
        self._waiting: Deque[Union[str, Tuple[Any, ...]]] = deque()
        self._due = 0.0
        self._turn = threading.Lock()
        atexit.register(self.flush)

    def ended(self, *fields: Any) -> None:
        """The line of an episode with the fields of _LINE, without the time; it is put together when it is written."""
        self._waiting.append((*fields, time.time_ns()))
        if not self.is_flushed or time.monotonic() >= self._due:
            self.flush()

    def write_line(self, line: str) -> bool:
        if self.is_flushed and line.startswith(_EPISODE):
            self._waiting.append(line)
            if time.monotonic() >= self._due:
                self.flush()
            return True
        self.flush()
        return super().write_line(line)

    def flush(self) -> None:
        if not self._waiting or not self._turn.acquire(blocking=False):
            return  # another thread is writing them
        try:
            lines = []
            while self._waiting:
                line = self._waiting.popleft()
                lines.append(line if type(line) is str else _LINE % line)
            super().write_line("".join(lines))
            self._due = time.monotonic() + INTERVAL_S
        finally:
            self._turn.release()

    def _reset_in_child(self) -> None:
        super()._reset_in_child()
        self.is_flushed = False
        self._waiting.clear()  # they are the parent's
        self._turn = threading.Lock()
