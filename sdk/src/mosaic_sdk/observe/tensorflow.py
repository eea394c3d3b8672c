"""TensorFlow's tf.summary.scalar, which TensorBoard's own package implements."""

from types import ModuleType
from typing import Any

from mosaic_sdk.observe.observer import Observer
from mosaic_sdk.observe.seam import call_after

_BY = "tf.summary.scalar"


def listen(module: ModuleType, observer: Observer) -> None:
    def scalar(_: Any, name: str, data: Any, step: Any = None, *args: Any, **kwargs: Any) -> None:
        if step is None:
            step = module.tf.summary.experimental.get_step()
        # Inside of a tf.function neither is a number yet: such values are not observed.
        observer.metric(name, _value(data), _value(step), _BY)

    call_after(module, "scalar", observer.guarded(scalar, _BY))


def _value(tensor: Any) -> Any:
    return tensor.numpy() if hasattr(tensor, "numpy") else tensor
