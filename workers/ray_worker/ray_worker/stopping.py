"""SIGTERM during a training: its safe points are environment steps and the ends of optimizer steps."""

from collections.abc import Iterator
from contextlib import contextmanager

from mosaic_sdk.library.stopping import StopSignal

PATIENCE_S = 6.0


@contextmanager
def checked_by_optimizers(stop: StopSignal) -> Iterator[None]:
    from torch.optim.optimizer import register_optimizer_step_post_hook

    hook = register_optimizer_step_post_hook(lambda *_: stop.check())
    try:
        yield
    finally:
        hook.remove()
