"""SIGTERM, obeyed between two steps: XuanCe has `except:` clauses, which would swallow a handler's exception."""

import signal
import threading
from types import FrameType, TracebackType
from typing import Any

from mosaic_sdk.cli import WorkerStopped


class Stopping:
    """Remembers SIGTERM while its block runs; `check` raises WorkerStopped once it has arrived."""

    def __init__(self) -> None:
        self.is_requested = False
        self._before: Any = None

    def check(self) -> None:
        if self.is_requested:
            raise WorkerStopped

    def __enter__(self) -> "Stopping":
        if threading.current_thread() is threading.main_thread():  # only it may set handlers
            self._before = signal.signal(signal.SIGTERM, self._remember)
        return self

    def __exit__(self, kind: type | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if self._before is not None:
            # After a stop it stays: a second SIGTERM must not interrupt the last lines.
            signal.signal(signal.SIGTERM, signal.SIG_IGN if self.is_requested else self._before)

    def _remember(self, number: int, frame: FrameType | None) -> None:
        self.is_requested = True
