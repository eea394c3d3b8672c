"""Files that frames are saved to: a PNG of one, a GIF of many."""

import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from mosaic.cli.verb import BadUsage
from mosaic.model.errors import MosaicError

if TYPE_CHECKING:
    from PIL.Image import Image

    from mosaic.client import Frame


def check_target(name: str, extension: str, force: bool) -> Path:
    """The file to write, known to be writable before anybody waits for a frame."""
    path = Path(name)
    if path.suffix.lower() != extension:
        raise BadUsage(f"'{name}' does not end with {extension}, and that is what would be written.")
    if not path.parent.is_dir():
        raise BadUsage(f"There is no folder {path.parent}. Make it first: mkdir -p {path.parent}")
    if path.is_dir():
        raise BadUsage(f"{path} is a folder. Name a file.")
    if path.exists() and not force:
        raise MosaicError(f"{path} exists. Choose another name, or overwrite it with --force.")
    if not os.access(path.parent, os.W_OK):
        raise MosaicError(f"You cannot write to {path.parent}. Choose another folder.")
    return path


def save_png(path: Path, pixels: Any) -> None:
    from mosaic.wire import png

    data = png.encode(pixels)
    _write_whole(path, lambda file: file.write(data))


class Clip:
    """Frames on their way to a GIF; each is made small as it comes, because seconds of them are much."""

    def __init__(self) -> None:
        self._images: list[Image] = []
        self._when_ns: list[int] = []

    def __len__(self) -> int:
        return len(self._images)

    @property
    def seconds(self) -> float:
        return (self._when_ns[-1] - self._when_ns[0]) / 1e9 if self._images else 0.0

    def add(self, frame: "Frame") -> None:
        from PIL import Image

        pixels = frame.pixels[:, :, 0] if frame.pixels.shape[2] == 1 else frame.pixels[:, :, :3]
        image = Image.fromarray(pixels)
        if self._images and image.size != self._images[0].size:
            image = image.resize(self._images[0].size)
        self._images.append(image.quantize(256, dither=Image.Dither.NONE))
        self._when_ns.append(frame.when_ns)

    def save(self, path: Path) -> None:
        first, *rest = self._images
        options = {"save_all": True, "append_images": rest, "duration": self._durations_ms(), "loop": 0}
        _write_whole(path, lambda file: first.save(file, format="GIF", **options))

    def _durations_ms(self) -> list[int]:
        """As long as each was the newest; viewers take no less than 20 ms."""
        gaps = [(after - before) // 1_000_000 for before, after in zip(self._when_ns, self._when_ns[1:], strict=False)]
        shown = [max(20, gap) for gap in gaps]
        return [*shown, shown[-1] if shown else 100]


def _write_whole(path: Path, write: Callable[[BinaryIO], object]) -> None:
    """All of it under its name, or nothing."""
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with open(handle, "wb") as file:
            write(file)
            os.fchmod(file.fileno(), 0o666 & ~_umask())
        os.replace(temporary, path)
    except BaseException as error:
        os.unlink(temporary)
        if isinstance(error, OSError):
            raise MosaicError(f"{path} cannot be written: {error.strerror}.") from None
        raise


def _umask() -> int:
    mask = os.umask(0o077)
    os.umask(mask)
    return mask
