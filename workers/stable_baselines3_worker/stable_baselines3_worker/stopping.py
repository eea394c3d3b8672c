"""SIGTERM during a training: the training stops after its current step, so that a checkpoint can be saved."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from mosaic_sdk.cli import WorkerStopped

# An update may take longer than a step. MOSAIC kills the process 10 s after SIGTERM, and saving takes time too.
PATIENCE_S = 5.0


class StopSignal:
    """Whether SIGTERM was received. It raises WorkerStopped if the training has not stopped within PATIENCE_S."""

    def __init__(self) -> None:
        self.is_set = False

    def check(self) -> None:
        if self.is_set:
            signal.setitimer(signal.ITIMER_REAL, 0)  # the checkpoint may take longer
            raise WorkerStopped

    def _receive(self, number: int, frame: FrameType | None) -> None:
        self.is_set = True
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        signal.setitimer(signal.ITIMER_REAL, PATIENCE_S)

    def _run_out(self, number: int, frame: FrameType | None) -> None:
        raise WorkerStopped


@contextmanager
def stoppable() -> Iterator[StopSignal]:
    """Only in the main thread, as signal handlers require."""
    stop = StopSignal()
    before = signal.signal(signal.SIGTERM, stop._receive), signal.signal(signal.SIGALRM, stop._run_out)
    try:
        yield stop
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before[1])
        if not stop.is_set:  # after a stop, SIGTERM stays ignored: the checkpoint is still to be saved
            signal.signal(signal.SIGTERM, before[0])
