"""TensorBoard's SummaryWriter: torch's, and that of tensorboardX."""

from types import ModuleType
from typing import Any, Callable

from mosaic_sdk.observe.observer import Observer
from mosaic_sdk.observe.seam import call_after

_HOMES = {"torch": "torch.utils.tensorboard.SummaryWriter", "tensorboardX": "tensorboardX.SummaryWriter"}


def on_scalar(writer_class: Any, listener: Callable[[str, Any, Any], None]) -> None:
    """Call `listener(tag, value, step)` after every add_scalar of this class; what it raises is passed on."""

    def add_scalar(
        _: None, writer: Any, tag: str, scalar_value: Any, global_step: Any = None, *args: Any, **kwargs: Any
    ) -> None:
        listener(tag, scalar_value, global_step)

    call_after(writer_class, "add_scalar", add_scalar)


def listen(module: ModuleType, observer: Observer) -> None:
    writer_class = module.SummaryWriter
    by = _HOMES[module.__name__.partition(".")[0]]

    def note_scalar(tag: str, value: Any, step: Any) -> None:
        observer.metric(str(tag), value, step, by)

    def note_scalars(
        _: None, writer: Any, main_tag: str, tag_scalar_dict: Any, global_step: Any = None, *args: Any, **kwargs: Any
    ) -> None:
        values = {"{}/{}".format(main_tag, tag): value for tag, value in tag_scalar_dict.items()}
        observer.metrics(values, global_step, by)

    def note_settings(_: None, writer: Any, hparam_dict: Any, *args: Any, **kwargs: Any) -> None:
        observer.settings(hparam_dict, by)

    on_scalar(writer_class, observer.guarded(note_scalar, by))
    call_after(writer_class, "add_scalars", observer.guarded(note_scalars, by))
    if hasattr(writer_class, "add_hparams"):
        call_after(writer_class, "add_hparams", observer.guarded(note_settings, by))
