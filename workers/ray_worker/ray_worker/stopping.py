"""SIGTERM during a training: it stops at the next safe point, so that a checkpoint can be saved."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from mosaic_sdk.cli import WorkerStopped

# MOSAIC kills the process 10 s after SIGTERM, and saving takes time too.
PATIENCE_S = 6.0


class StopSignal:
    """Whether SIGTERM was received. Safe points are environment steps and the ends of optimizer steps.

    WorkerStopped is raised anywhere if none is reached within PATIENCE_S.
    """

    def __init__(self) -> None:
        self.is_set = False

    def check(self) -> None:
        # IMPALA learns in a thread of its own, which an exception would end without ending the training.
        if self.is_set and threading.current_thread() is threading.main_thread():
            signal.setitimer(signal.ITIMER_REAL, 0)  # the checkpoint is saved now, without an interruption
            raise WorkerStopped

    def receive(self, number: int, frame: FrameType | None) -> None:
        self.is_set = True
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        signal.setitimer(signal.ITIMER_REAL, PATIENCE_S)

    def run_out(self, number: int, frame: FrameType | None) -> None:
        raise WorkerStopped


@contextmanager
def stoppable() -> Iterator[StopSignal]:
    """Only in the main thread, as signal handlers require."""
    from torch.optim.optimizer import register_optimizer_step_post_hook

    stop = StopSignal()
    before = signal.signal(signal.SIGTERM, stop.receive), signal.signal(signal.SIGALRM, stop.run_out)
    hook = register_optimizer_step_post_hook(lambda *_: stop.check())
    try:
        yield stop
    finally:
        hook.remove()
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before[1])
        if not stop.is_set:  # after a stop, SIGTERM stays ignored: the checkpoint is still to be saved
            signal.signal(signal.SIGTERM, before[0])
