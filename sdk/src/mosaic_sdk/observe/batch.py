"""Episode lines of a fast env, written many at a time: a write for each would cost the loop more than its steps."""

import atexit
import threading
import time
from collections import deque
from typing import Deque, Tuple, Union

from mosaic_sdk import names
from mosaic_sdk.emit import Emitter, to_json

INTERVAL_S = 0.5
_INTERVAL_NS = int(INTERVAL_S * 1e9)
_EPISODE = '{{"{}":"{}"'.format(names.EVENT_TYPE_KEY, names.EPISODE)
_HUGE = float("inf")
_TRUTH = ("false", "true")
# What BatchEmitter.ended takes: episode_index, total_reward, steps, env_index, terminated, truncated, global_step and
# ts_unix_ns.
Ended = Tuple[int, float, int, int, bool, bool, int, int]


class BatchEmitter(Emitter):
    """1. Lines are written in the order in which they were emitted.
    2. An episode's line waits if another one was written less than INTERVAL_S before, until `flush` or the next line
       that does not wait. Only while `is_flushed`: somebody calls `flush` regularly.
    3. A forked child writes each line at once: it may end without any last words.
    """

    def __init__(self) -> None:
        super().__init__()
        self.is_flushed = False
        self._waiting: Deque[Union[str, Ended]] = deque()
        self._due_ns = 0  # by the clock of ts_unix_ns; if that is set back, lines wait for the next `flush`
        self._turn = threading.Lock()
        atexit.register(self.flush)

    def ended(self, fields: Ended) -> None:
        """The line of an episode, only while `is_flushed`. It is put together when it is written: a fast env ends
        thousands of episodes in a second, and the script waits for this call."""
        self._waiting.append(fields)
        if fields[-1] >= self._due_ns:
            self.flush()

    def write_line(self, line: str) -> bool:
        if self.is_flushed and line.startswith(_EPISODE):
            self._waiting.append(line)
            if time.time_ns() >= self._due_ns:
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
                lines.append(line if type(line) is str else _line(*line))
            super().write_line("".join(lines))
            self._due_ns = time.time_ns() + _INTERVAL_NS
        finally:
            self._turn.release()

    def _reset_in_child(self) -> None:
        super()._reset_in_child()
        self.is_flushed = False
        self._waiting.clear()  # they are the parent's
        self._turn = threading.Lock()


def _line(index: int, total: float, steps: int, env: int, terminated: bool, truncated: bool, at: int, ns: int) -> str:
    return (
        f'{_EPISODE},"episode_index":{index},"total_reward":{_number(total)},"steps":{steps},"env_index":{env},'
        f'"terminated":{_TRUTH[terminated]},"truncated":{_TRUTH[truncated]},"global_step":{at},"ts_unix_ns":{ns}}}\n'
    )


def _number(value: float) -> str:
    """repr() of a finite float is JSON."""
    return repr(value) if -_HUGE < value < _HUGE else to_json(value)
