"""Safetensors: files written by safetensors.torch.save_file and save_model."""

from types import ModuleType
from typing import Any

from mosaic_sdk.observe.observer import Observer
from mosaic_sdk.observe.seam import call_after

_BY = "safetensors.torch.save_file"


def listen(module: ModuleType, observer: Observer) -> None:
    def save(_: None, tensors: Any, filename: Any, *args: Any, **kwargs: Any) -> None:
        observer.checkpoint(filename, _BY)

    # save_model calls save_file, by the name that is replaced here.
    call_after(module, "save_file", observer.guarded(save, _BY))
