"""SIGTERM during a training: it stops at the next safe point, so that a checkpoint can be saved.

with StopSignal() as stop:
    for batch in batches:
        learn(batch)
        stop.check()          # raises WorkerStopped once SIGTERM was received
"""

import signal
import threading
from types import FrameType, TracebackType
from typing import Any, Optional, Type

from mosaic_sdk.cli import WorkerStopped

PATIENCE_S = 5.0
_AGAIN_S = 1.0


class StopSignal:
    """Whether SIGTERM was received, while its block runs.

    `patience_s`: if no safe point is reached in this time, WorkerStopped is raised wherever the main thread is. MOSAIC
    kills the process 10 s after SIGTERM, and saving takes time too. None: only at safe points, for a library whose
    `except:` clauses would swallow the exception.
    """

    def __init__(self, patience_s: Optional[float] = PATIENCE_S) -> None:
        self.is_set = False
        self._patience_s = patience_s
        self._before: Any = None

    def check(self) -> None:
        """A safe point. An exception in another thread would end that thread, not the training."""
        if self.is_set and threading.current_thread() is threading.main_thread():
            self.disarm()
            raise WorkerStopped

    def disarm(self) -> None:
        """Do not interrupt what follows: the checkpoint may take longer."""
        signal.setitimer(signal.ITIMER_REAL, 0)

    def __enter__(self) -> "StopSignal":
        if threading.current_thread() is threading.main_thread():  # only it may set handlers
            self._before = signal.signal(signal.SIGTERM, self._receive), signal.signal(signal.SIGALRM, self._run_out)
        return self

    def __exit__(
        self, kind: Optional[Type[BaseException]], error: Optional[BaseException], trace: Optional[TracebackType]
    ) -> None:
        if self._before is not None:
            self.disarm()
            signal.signal(signal.SIGALRM, self._before[1])
            # After a stop, SIGTERM stays ignored: a second one must not interrupt what is still to be written.
            signal.signal(signal.SIGTERM, signal.SIG_IGN if self.is_set else self._before[0])

    def _receive(self, number: int, frame: Optional[FrameType]) -> None:
        self.is_set = True
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        if self._patience_s is not None:
            # Again every second: a library may swallow an exception, and Python ignores one in a finalizer.
            signal.setitimer(signal.ITIMER_REAL, self._patience_s, _AGAIN_S)

    def _run_out(self, number: int, frame: Optional[FrameType]) -> None:
        raise WorkerStopped
