"""The ring of frames: four slots in one shared segment, one writer, any number of readers.

    0     header            8-byte words: magic, width, height, channels, pixel format, stride, newest
    128   head of slot 0    words: sequence, last_reward, rolling_return, step_rate_hz, when (monotonic ns)
    256   head of slot 1    … each in cache lines of its own
    4096  pixels of slot 0  rows from the top, channels together
          pixels of slot 1  `stride` bytes further; slot 2; slot 3

Frame n (1, 2, 3 …) lies in slot n % 4. Writing it: sequence = 2n-1, metrics, pixels, sequence = 2n, newest = n. A
reader takes frame `newest` and keeps it only if its sequence was 2n before and after the copy; while it copies, the
writer has three other slots to fill. A writer killed in the middle leaves `newest` at a whole frame.

Every word is one aligned 8-byte store (memoryview), never struct.pack_into, which zero-fills first. That the stores are
seen in this order is x86's promise; control.py refuses other machines. The pixels begin with a page: 64 bytes further,
beside numpy's own arrays, the same copy took a quarter longer.
"""

import contextlib
import mmap
import os
from dataclasses import dataclass
from typing import Any, List, NamedTuple, Optional, Tuple

import numpy as np

from mosaic_sdk.fastlane.control import frames_name, open_ours, path_of

SLOTS = 4
PIXEL_FORMATS = {"RGB": 3, "RGBA": 4, "GRAY": 1}  # and their channels
_MAGIC = int.from_bytes(b"MOSAICR1", "little")
MAGIC, WIDTH, HEIGHT, CHANNELS, FORMAT, STRIDE, NEWEST = range(7)
_HEADER = 4096
_HEAD = 128
_SEQUENCE, _WHEN = 0, 4
_MAP_POPULATE = getattr(mmap, "MAP_POPULATE", 0x8000)  # has a name since Python 3.10
# A reader that is overtaken tries again; that it is overtaken so often means that the segment is broken.
_TRIES = 10_000


@dataclass(frozen=True)
class FastLaneConfig:
    """The geometry of the frames: 8 bits per channel, rows from the top."""

    width: int
    height: int
    channels: int = 3
    pixel_format: str = "RGB"

    def __post_init__(self) -> None:
        if PIXEL_FORMATS.get(self.pixel_format) != self.channels or self.width < 1 or self.height < 1:
            raise ValueError(f"{self} cannot be shown. Pixel formats and their channels: {PIXEL_FORMATS}.")

    @property
    def shape(self) -> Tuple[int, int, int]:
        return (self.height, self.width, self.channels)

    @property
    def frame_bytes(self) -> int:
        return self.height * self.width * self.channels


class FastLaneMetrics(NamedTuple):
    """What is shown beside a frame, and belongs to it."""

    last_reward: float = 0.0
    rolling_return: float = 0.0
    step_rate_hz: float = 0.0


class Taken(NamedTuple):
    """A frame as a reader found it."""

    number: int
    pixels: Any  # an array of the reader's own
    metrics: FastLaneMetrics
    when_ns: int


# The words of a slot, the same bytes as doubles, and its pixels.
_Slot = Tuple["memoryview[int]", "memoryview[float]", Any]


class Ring:
    """The mapped frames of one generation."""

    def __init__(self, name: str, config: FastLaneConfig, bytes_: mmap.mmap) -> None:
        self.name = name
        self.config = config
        self.shape = config.shape
        self.header = memoryview(bytes_)[:_HEADER].cast("Q")
        self.number = self.header[NEWEST]
        self._slots: List[_Slot] = [_slot(bytes_, slot, config) for slot in range(SLOTS)]

    @classmethod
    def create(cls, lane: str, generation: int, config: FastLaneConfig) -> "Ring":
        """A new segment, its memory allocated and mapped; OSError, and nothing left behind, when /dev/shm is full."""
        name = frames_name(lane, generation)
        fd = os.open(path_of(name), os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        size = _size(config)
        try:
            # Blocks now, or SIGBUS later.
            os.posix_fallocate(fd, 0, size)
            # Populated, because touching a page for the first time costs more than copying it.
            bytes_ = mmap.mmap(fd, size, flags=mmap.MAP_SHARED | _MAP_POPULATE)
        except OSError:
            os.unlink(path_of(name))
            raise
        finally:
            os.close(fd)
        ring = cls(name, config, bytes_)
        words = (_MAGIC, *config.shape[1::-1], config.channels, _format_code(config.pixel_format), _stride(config))
        for place, word in enumerate(words):
            ring.header[place] = word
        return ring

    @classmethod
    def open(cls, lane: str, generation: int) -> "Ring":
        """The frames of a generation, to read; FileNotFoundError when the writer has moved on."""
        name = frames_name(lane, generation)
        fd = open_ours(name, os.O_RDONLY, _HEADER)
        try:
            bytes_ = mmap.mmap(fd, 0, prot=mmap.PROT_READ)
        finally:
            os.close(fd)
        header = memoryview(bytes_)[:_HEADER].cast("Q")
        config = _config(header)
        if config is None or len(bytes_) < _size(config):
            raise FileNotFoundError(f"{path_of(name)} is not a ring of frames")
        return cls(name, config, bytes_)

    def put(self, frame: Any, metrics: Tuple[float, float, float], when_ns: int) -> None:
        """Write the next frame, an array or bytes; ValueError, and nothing is shown, when it has another size."""
        if type(frame) is not _ndarray or frame.shape != self.shape:
            frame = _as_pixels(frame, self.config)
        number = self.number + 1
        words, floats, place = self._slots[number % SLOTS]
        words[0] = 2 * number - 1
        floats[1], floats[2], floats[3] = metrics
        words[4] = when_ns
        place[...] = frame  # numpy.copyto does the same, but takes half a microsecond to start
        words[0] = 2 * number
        self.header[NEWEST] = number
        self.number = number

    def take(self) -> Optional[Taken]:
        """The newest frame, whole, with its own metrics; None before the first."""
        for _ in range(_TRIES):
            number = self.header[NEWEST]
            if number == 0:
                return None
            words, floats, place = self._slots[number % SLOTS]
            before = words[_SEQUENCE]
            taken = Taken(number, place.copy(), FastLaneMetrics(*floats[1:4]), words[_WHEN])
            if before == 2 * number and words[_SEQUENCE] == before:
                return taken
        return None

    @property
    def is_current(self) -> bool:
        return os.path.exists(path_of(self.name))

    def unlink(self) -> None:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(path_of(self.name))


# A name of this module is found faster, and this one is looked up at every frame.
_ndarray = np.ndarray


def _as_pixels(data: Any, config: FastLaneConfig) -> Any:
    """`data`, an array or bytes, as an array of the config's shape; nothing is copied."""
    if isinstance(data, (bytes, bytearray, memoryview)):
        data = np.frombuffer(data, np.uint8)
    data = np.asarray(data)
    if data.shape != config.shape:
        if data.size != config.frame_bytes:
            raise ValueError(f"A frame of shape {data.shape} does not fit {config}. Create a writer for its size.")
        data = data.reshape(config.shape)
    return data


def config_of(frame: Any) -> FastLaneConfig:
    """The geometry of an array: height × width, or height × width × channels."""
    shape = np.shape(frame)
    channels = 1 if len(shape) == 2 else shape[-1] if len(shape) == 3 else 0
    names = {count: name for name, count in PIXEL_FORMATS.items()}
    if channels not in names:
        raise ValueError(f"A frame of shape {shape} cannot be shown. It must be height × width [× 1, 3 or 4].")
    return FastLaneConfig(shape[1], shape[0], channels, names[channels])


def _slot(bytes_: mmap.mmap, slot: int, config: FastLaneConfig) -> _Slot:
    start = _HEAD * (slot + 1)
    head = memoryview(bytes_)[start : start + _HEAD]
    pixels = np.frombuffer(bytes_, np.uint8, config.frame_bytes, _HEADER + slot * _stride(config))
    return head.cast("Q"), head.cast("d"), pixels.reshape(config.shape)


def _config(header: "memoryview[int]") -> Optional[FastLaneConfig]:
    if header[MAGIC] != _MAGIC or header[FORMAT] >= len(PIXEL_FORMATS):
        return None
    return FastLaneConfig(header[WIDTH], header[HEIGHT], header[CHANNELS], list(PIXEL_FORMATS)[header[FORMAT]])


def _format_code(pixel_format: str) -> int:
    return list(PIXEL_FORMATS).index(pixel_format)


def _stride(config: FastLaneConfig) -> int:
    return -(-config.frame_bytes // 4096) * 4096


def _size(config: FastLaneConfig) -> int:
    return _HEADER + SLOTS * _stride(config)
