"""The toy worker's telemetry: the SDK's emitter with a private record of every line that was printed.

The record has one text line `<index> <kind> <step>` per printed line, written after it, and a last line of totals:

    0 lifecycle:run_started 0
    1 step 0
    2 metric 0
    …
    total 1125 episode=20 lifecycle:run_started=1 metric=100 …

So every line in the record was printed, except `<index> command <seq>`: a command that was carried out, noted even if
its `command_done` cannot be printed. With `record_sync` at most one printed line is missing at its end (SIGKILL)
and at most one before `run_cancelled` (SIGTERM), because a signal may arrive between a line and its note.
"""

import os
import threading
from typing import Any, Dict, List, Mapping, Optional

from mosaic_sdk.emit import Emitter
from mosaic_sdk.names import EPISODE, METRIC, STEP, WorkerEnv

from toy_worker.config import ToyConfig

CARRIED_OUT = "command"
_CHUNK_LINES = 2000


class Record:
    """What was printed, in order. Nothing is kept if the path is empty."""

    def __init__(self, path: str, sync: bool) -> None:
        self.counts: Dict[str, int] = {}
        self._index = 0
        self._pending: List[str] = []
        self._pending_limit = 1 if sync else _CHUNK_LINES
        self._fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600) if path else None

    def note(self, kind: str, step: int) -> None:
        self.counts[kind] = self.counts.get(kind, 0) + 1
        self._pending.append(f"{self._index} {kind} {step}\n")
        self._index += 1
        if len(self._pending) >= self._pending_limit:
            self.flush()

    def flush(self) -> None:
        data, self._pending = "".join(self._pending).encode(), []
        if self._fd is not None and data:
            os.write(self._fd, data)

    def close(self) -> None:
        """Write the totals; a second call does nothing."""
        if self._fd is None:
            return
        totals = " ".join(f"{kind}={count}" for kind, count in sorted(self.counts.items()))
        self._pending.append(f"total {self._index} {totals}\n")
        self.flush()
        os.close(self._fd)
        self._fd = None


class Telemetry(Emitter):
    """Prints a line, then notes it. The heartbeat has a thread of its own, so both happen under one lock."""

    def __init__(self, config: ToyConfig) -> None:
        super().__init__(run_id=config.run_id)
        self.record = Record(config.record or _default_record(), config.record_sync)
        self._plain_print = config.use_plain_print
        self._silent = config.no_telemetry
        self._order = threading.RLock()

    def step(self, step_index: int, reward: Optional[float] = None, **more: Any) -> bool:
        with self._order:
            return self._noted(super().step(step_index, reward, **more), STEP, step_index)

    def episode(self, episode_index: int, total_reward: float, steps: int, **more: Any) -> bool:
        with self._order:
            return self._noted(super().episode(episode_index, total_reward, steps, **more), EPISODE, episode_index)

    def metric(self, name: str, value: float, step: int, **more: Any) -> bool:
        with self._order:
            return self._noted(super().metric(name, value, step, **more), METRIC, step)

    def metrics(self, values: Mapping[str, float], step: int, **more: Any) -> bool:
        with self._order:
            return self._noted(super().metrics(values, step, **more), METRIC, step)

    def lifecycle(self, event: str, payload: Optional[Mapping[str, Any]] = None) -> bool:
        with self._order:
            return self._noted(super().lifecycle(event, payload), f"lifecycle:{event}", 0)

    def text(self, text: str, step: int) -> None:
        """A line as a library prints it."""
        with self._order:
            print(text)
            self._noted(True, "text", step)

    def raw(self, data: bytes, kind: str, step: int) -> None:
        """Bytes, unchanged."""
        with self._order:
            os.write(1, data)
            self._noted(True, kind, step)

    def write_line(self, line: str) -> bool:
        if self._silent:
            return False
        if self._plain_print:
            print(line, end="")
            return True
        return super().write_line(line)

    def _noted(self, written: bool, kind: str, step: int) -> bool:
        if written:
            self.record.note(kind, step)
        return written


def _default_record() -> str:
    folder = os.environ.get(WorkerEnv.RUN_DIR)
    return os.path.join(folder, "toy_record.bin") if folder else ""
