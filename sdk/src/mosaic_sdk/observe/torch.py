"""PyTorch: files written by torch.save."""

from types import ModuleType
from typing import Any

from mosaic_sdk.observe.observer import Observer
from mosaic_sdk.observe.seam import call_after


def listen(module: ModuleType, observer: Observer) -> None:
    def save(_: None, obj: Any, f: Any, *args: Any, **kwargs: Any) -> None:
        observer.checkpoint(f, "torch.save")  # not if it is an open file, which may be a part of another one

    call_after(module, "save", observer.guarded(save, "torch.save"))
