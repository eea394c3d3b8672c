"""The ring of frames: four slots in one shared segment, one writer, any number of readers.

    0     header            8-byte words: magic, width, height, channels, pixel format, stride, newest, cost
    128   head of slot 0    words: sequence, last_reward, rolling_return, step_rate_hz, when (monotonic ns), read until
    256   head of slot 1    … each in separate cache lines
    4096  pixels of slot 0  rows from the top, channels together
          pixels of slot 1  `stride` bytes further; slot 2; slot 3

Frame n (1, 2, 3 …) is in slot n % 4. Writing it: sequence = 2n-1, metrics, pixels, sequence = 2n, newest = n. A
reader takes frame `newest` and keeps it only if its sequence was 2n before and after the copy; while it copies, the
writer has three other slots to fill. A writer killed in the middle leaves `newest` at a whole frame. `cost` is what a
frame takes from its env, render and copy, in ns of CPU; 0 if it was not measured.

While a reader copies a slot, "read until" is in the future (monotonic ns; 0 when it is done), and the writer skips that
slot and its number, never two in a row. Otherwise a writer that publishes without pause would return to the slot in a
quarter of the time that a copy takes, and overtake the reader repeatedly. It is a request, not a lock: it expires,
and only the sequence decides whether a frame is whole.

Every word is one aligned 8-byte store (memoryview), never struct.pack_into, which zero-fills first. x86 guarantees that
other processes see the stores in this order; control.py refuses other machines. The pixels start at a page boundary: at
an offset of 64 bytes, as in numpy's own arrays, the same copy took a quarter longer.
"""

import contextlib
import mmap
import os
import struct
import time
import weakref
from dataclasses import dataclass
from typing import Any, List, NamedTuple, Optional, Tuple

import numpy as np

from mosaic_sdk.fastlane.control import FileWords, frames_name, open_ours, path_of

SLOTS = 4
PIXEL_FORMATS = {"RGB": 3, "RGBA": 4, "GRAY": 1}  # and their channels
_MAGIC = int.from_bytes(b"MOSAICR1", "little")
MAGIC, WIDTH, HEIGHT, CHANNELS, FORMAT, STRIDE, NEWEST, COST = range(8)
_HEADER = 4096
_HEAD = 128
_SLOT_HEAD = struct.Struct("<QdddQ")
READ_UNTIL = 5  # the word after these
_READ_NS = 20_000_000  # more than a copy takes; a reader that is stopped in the middle may be overtaken
_MAP_POPULATE = getattr(mmap, "MAP_POPULATE", 0x8000)  # has a name since Python 3.10
# A reader that is overtaken tries again; after so many tries the segment must be damaged.
_TRIES = 1000


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
    """The numbers that belong to a frame."""

    last_reward: float = 0.0
    rolling_return: float = 0.0
    step_rate_hz: float = 0.0


class Taken(NamedTuple):
    """A frame that a reader has copied."""

    number: int
    pixels: Any  # the reader's own array
    metrics: FastLaneMetrics
    when_ns: int


# The words of a slot, the same bytes as doubles, and its pixels.
_Slot = Tuple["memoryview[int]", "memoryview[float]", Any]


class Ring:
    """The frames of one generation as their writer sees them: mapped memory."""

    def __init__(self, name: str, config: FastLaneConfig, bytes_: mmap.mmap) -> None:
        self.name = name
        self.config = config
        self.shape = config.shape
        self.header = memoryview(bytes_)[:_HEADER].cast("Q")
        self.number = 0
        self._identity = _identity(name)
        code = list(PIXEL_FORMATS).index(config.pixel_format)
        self._head = [_MAGIC, config.width, config.height, config.channels, code, _stride(config)]
        for place, word in enumerate(self._head):
            self.header[place] = word
        self._slots: List[_Slot] = [_slot(bytes_, slot, config) for slot in range(SLOTS)]

    @classmethod
    def create(cls, lane: str, generation: int, config: FastLaneConfig) -> "Ring":
        """A new segment, allocated and mapped; if /dev/shm is full, OSError, and nothing is left behind."""
        name = frames_name(lane, generation)
        _unlink(name)  # the holder of the lane's lock owns its names: a file there is a leftover
        fd = os.open(path_of(name), os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        size = _size(config)
        try:
            # Allocate now, or die of SIGBUS later.
            os.posix_fallocate(fd, 0, size)
            # Populated, because the first access to a page costs more than copying it.
            bytes_ = mmap.mmap(fd, size, flags=mmap.MAP_SHARED | _MAP_POPULATE)
        except OSError:
            os.unlink(path_of(name))
            raise
        finally:
            os.close(fd)
        return cls(name, config, bytes_)

    def put(self, frame: Any, metrics: Tuple[float, float, float], when_ns: int, fits: bool = False) -> None:
        """Write the next frame, an array or bytes; ValueError, and nothing is shown, if it has another size.

        With `fits` the frame is not checked. If it does not fit, that is a ValueError or TypeError too, unless numpy
        can broadcast it.
        """
        if not fits and (type(frame) is not _ndarray or frame.shape != self.shape):
            frame = _as_pixels(frame, self.config)
        number = self.number + 1
        words, floats, place = self._slots[number % SLOTS]
        if words[READ_UNTIL] > when_ns:
            number += 1
            words, floats, place = self._slots[number % SLOTS]
        words[0] = 2 * number - 1
        floats[1], floats[2], floats[3] = metrics
        words[4] = when_ns
        place[...] = frame  # numpy.copyto does the same, but takes half a microsecond more
        words[0] = 2 * number
        self.header[NEWEST] = number
        self.number = number

    @property
    def is_current(self) -> bool:
        """Whether its name still refers to it, with its original size and header."""
        try:
            # The size first: reading a truncated mapping is SIGBUS.
            return _identity(self.name) == self._identity and self.header[:NEWEST].tolist() == self._head
        except FileNotFoundError:
            return False

    def unlink(self) -> None:
        _unlink(self.name)


class RingFile:
    """The frames of one generation as a reader sees them: an open file, for the reason given in control.py."""

    def __init__(self, config: FastLaneConfig, fd: int) -> None:
        self.config = config
        self._fd = fd
        self._words = FileWords(fd)
        self._end = weakref.finalize(self, os.close, fd)

    @classmethod
    def open(cls, lane: str, generation: int) -> "RingFile":
        """The frames of a generation; FileNotFoundError if they were replaced or the file is not a ring of frames."""
        name = frames_name(lane, generation)
        fd = open_ours(name, os.O_RDWR, _HEADER)
        config = _config(FileWords(fd))
        if config is None or os.fstat(fd).st_size < _size(config):
            os.close(fd)
            raise FileNotFoundError(f"{path_of(name)} is not a ring of frames")
        return cls(config, fd)

    @property
    def cost_ns(self) -> int:
        return self._words[COST]

    @property
    def newest(self) -> int:
        """The number of the newest frame; 0 before the first."""
        return self._words[NEWEST]

    def take(self) -> Optional[Taken]:
        """The newest frame, whole, with its own metrics; None before the first, or if the file is damaged."""
        pixels: Any = np.empty(self.config.shape, np.uint8)
        for _ in range(_TRIES):
            number = self._words[NEWEST]
            if number == 0:
                return None
            head = _HEAD * (number % SLOTS + 1)
            sequence, *metrics, when_ns = self._read_head(head)
            # Checked before the pixels are copied: a damaged file must not cost a thousand copies.
            if sequence != 2 * number:
                continue
            if not self._read_pixels(number % SLOTS, pixels):
                return None
            if self._read_head(head)[0] == sequence:
                return Taken(number, pixels, FastLaneMetrics(*metrics), when_ns)
        return None

    def close(self) -> None:
        self._end()

    def _read_head(self, place: int) -> Tuple[Any, ...]:
        return _SLOT_HEAD.unpack(os.pread(self._fd, _SLOT_HEAD.size, place).ljust(_SLOT_HEAD.size, b"\0"))

    def _read_pixels(self, slot: int, pixels: Any) -> bool:
        read_until = _HEAD // 8 * (slot + 1) + READ_UNTIL
        self._words[read_until] = time.monotonic_ns() + _READ_NS
        count = os.preadv(self._fd, [pixels], _HEADER + slot * _stride(self.config))
        self._words[read_until] = 0
        return count == self.config.frame_bytes


# A name of this module is looked up faster, and this one is used for every frame.
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


def _config(header: FileWords) -> Optional[FastLaneConfig]:
    """The geometry in a header; None if it is invalid."""
    if header[MAGIC] != _MAGIC or header[FORMAT] >= len(PIXEL_FORMATS):
        return None
    try:
        return FastLaneConfig(header[WIDTH], header[HEIGHT], header[CHANNELS], list(PIXEL_FORMATS)[header[FORMAT]])
    except ValueError:
        return None


def _unlink(name: str) -> None:
    with contextlib.suppress(FileNotFoundError):
        os.unlink(path_of(name))


def _identity(name: str) -> Tuple[int, int, int]:
    facts = os.stat(path_of(name), follow_symlinks=False)
    return facts.st_dev, facts.st_ino, facts.st_size


def _stride(config: FastLaneConfig) -> int:
    return -(-config.frame_bytes // 4096) * 4096


def _size(config: FastLaneConfig) -> int:
    return _HEADER + SLOTS * _stride(config)
