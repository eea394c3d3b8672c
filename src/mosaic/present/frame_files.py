"""Frames as files: one as PNG, many as GIF."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from mosaic.model import durable
from mosaic.model.errors import MosaicError

if TYPE_CHECKING:
    from PIL.Image import Image

    from mosaic.client import Frame

LEAST_CS = 2
LONGEST_CLIP_S = 120.0
CLIP_MAX_DIM = 640


def save_png(path: Path, pixels: Any) -> None:
    from mosaic.wire import png

    data = png.encode(pixels)
    _write_whole(path, lambda file: file.write(data))


class Clip:
    """Collects frames for a GIF that lasts as long as the recording. Each frame is reduced to 256 colours at once."""

    def __init__(self, seconds: float, clock: Callable[[], int] = time.monotonic_ns) -> None:
        self._asked_cs = round(seconds * 100)  # GIFs count in hundredths of a second
        self._clock = clock
        self._images: list[Image] = []
        self._starts_cs: list[int] = []
        self._began_ns = 0
        self._length_cs = 0

    def __len__(self) -> int:
        return len(self._images)

    @property
    def filmed_s(self) -> float:
        """The time from the first frame until now."""
        return min(self._asked_cs, self._since_start_cs(self._clock())) / 100 if self._images else 0.0

    @property
    def seconds(self) -> float:
        """The duration of the GIF."""
        return sum(self._durations_ms()) / 1000

    def add(self, frame: "Frame") -> None:
        self._began_ns = self._began_ns or self._clock()
        start_cs = self._since_start_cs(frame.when_ns) if self._images else 0
        if self._images and start_cs > self._asked_cs - LEAST_CS:
            return  # shown for its shortest time, it would make the clip longer than asked
        if self._images and start_cs < self._starts_cs[-1] + LEAST_CS:
            # Viewers cannot show a frame for a shorter time, so the newer frame replaces the older one.
            start_cs = self._starts_cs.pop()
            self._images.pop()
        self._images.append(self._reduced(frame))
        self._starts_cs.append(start_cs)

    def end(self) -> None:
        """End the recording: the last frame lasts until now."""
        self._length_cs = min(self._asked_cs, self._since_start_cs(self._clock()))

    def save(self, path: Path) -> None:
        first, *rest = self._images
        options = {"save_all": True, "append_images": rest, "duration": self._durations_ms(), "loop": 0}
        _write_whole(path, lambda file: first.save(file, format="GIF", **options))

    def _since_start_cs(self, when_ns: int) -> int:
        return max(0, (when_ns - self._began_ns) // 10_000_000)

    def _reduced(self, frame: "Frame") -> "Image":
        from PIL import Image

        pixels = frame.pixels[:, :, 0] if frame.pixels.shape[2] == 1 else frame.pixels[:, :, :3]
        image = Image.fromarray(pixels)
        if self._images and image.size != self._images[0].size:
            image = image.resize(self._images[0].size)
        return image.quantize(256, dither=Image.Dither.NONE)

    def _durations_ms(self) -> list[int]:
        """How long each frame was the newest. Computed from start to start, so that rounding errors do not add up."""
        ends = [*self._starts_cs[1:], max(self._length_cs, self._starts_cs[-1] + LEAST_CS)]
        return [10 * (end - start) for start, end in zip(self._starts_cs, ends, strict=True)]


def _write_whole(path: Path, write: Callable[[BinaryIO], object]) -> None:
    """Write the whole file or nothing."""
    try:
        with durable.Replacement(path, mode=0o666) as file:
            write(file)
    except OSError as error:
        raise MosaicError(f"Cannot write {path}: {error.strerror}.") from None


def file_name(run_name: str, run_id: str, when: str, extension: str) -> str:
    """`cartpole-s1-20261116-203112.png`: the run's name with nothing that a file system refuses."""
    plain = "".join(letter if letter.isalnum() or letter in "-_." else "-" for letter in run_name).strip("-.")
    return f"{(plain or run_id)[:60]}-{when}{extension}"


def picture_folder(remembered: str) -> Path:
    """The folder that was used last, if it still exists; else the user's pictures, else their home."""
    for folder in (Path(remembered) if remembered else None, Path.home() / "Pictures"):
        if folder is not None and folder.is_dir():
            return folder
    return Path.home()
