"""The scalars and texts in TensorBoard's events.

Almost every record of an event file is one scalar in the same form, which numpy decodes thousands at a time:

    09 wall_time:f64 │ 10 step:varint │ 2a n (summary) │ 0a n (value) │ 0a n tag │ 15 simple_value:f32

All other records are decoded one by one.
"""

import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from mosaic.imports import protobuf
from mosaic.imports.crc32c import checksum, masked, masked_checksums
from mosaic.imports.files import Damaged
from mosaic.imports.tfrecord import Records

VECTOR_BYTES = 4 << 10  # longer records are checked one by one, …
TEXT_BYTES = 1 << 20  # … and still longer ones are images, graphs or sounds
MOST_PLUGINS = 10_000
LATEST_NS = 4 * 10**18
Point = tuple[int, int, str, float]  # ts_ns, step, tag, value
_FORMATS = {1: "f", 2: "d", 3: "i", 9: "q"}  # dtype of a tensor
_PACKED = {1: 5, 2: 6, 3: 7, 9: 10}  # dtype → the field with its values
_NO_SCALARS = ("text", "images", "audio", "histograms", "distributions", "pr_curves", "mesh", "hparams")


@dataclass
class Decoder:
    """Decodes the records of one folder; texts are collected on the way."""

    texts: dict[str, str] = field(default_factory=dict)  # by tag: the first of each
    damaged: int = 0  # records whose checksum or content is wrong
    first_wall: float = 0.0
    _plugins: dict[str, str] = field(default_factory=dict)
    _tags: dict[bytes, str] = field(default_factory=dict)

    def points(self, records: Records) -> list[Point]:
        """All scalars, in the order of the file."""
        import numpy as np

        data = np.frombuffer(records.buffer, dtype=np.uint8)
        starts, lengths = np.array(records.starts, dtype=np.int64), np.array(records.lengths, dtype=np.int64)
        found: list[tuple[int, Point]] = []
        columns: list[tuple[Any, Any, Any, Any, Any]] = []
        for length in np.unique(lengths):
            places = np.nonzero(lengths == length)[0]
            if length > VECTOR_BYTES:
                self._decode_long(records, places.tolist(), found)
                continue
            left = self._decode_many(data, starts, places, int(length), columns)
            for place in left.tolist():
                start = records.starts[place]
                self._decode_one(place, records.buffer[start : start + int(length)], found)
        return _in_order(columns, found)

    def _decode_many(self, data: Any, starts: Any, places: Any, length: int, columns: list[Any]) -> Any:
        """Decode the records of one length that have the usual form; returns the places of the others."""
        import numpy as np

        rows = data[starts[places][:, None] + np.arange(length + 4)]
        stored = np.ascontiguousarray(rows[:, length:]).view("<u4")[:, 0]
        is_whole = masked_checksums(rows[:, :length]) == stored
        self.damaged += int(len(places) - is_whole.sum())
        places, rows = places[is_whole], rows[is_whole]
        is_usual = np.zeros(len(places), dtype=bool)
        for width in range(1, 10):  # bytes of the step
            tag_at = 10 + width + 6
            tag_size = length - tag_at - 5
            if tag_size < 1 or tag_size > 120:
                continue
            prefix = [(0, 0x09), (9, 0x10), (10 + width, 0x2A), (11 + width, length - 12 - width)]
            prefix += [(12 + width, 0x0A), (13 + width, length - 14 - width), (14 + width, 0x0A)]
            prefix += [(15 + width, tag_size), (length - 5, 0x15)]
            matches = ~is_usual
            for column, value in prefix:
                matches &= rows[:, column] == value
            for column in range(width - 1):
                matches &= rows[:, 10 + column] >= 0x80
            matches &= rows[:, 9 + width] < 0x80
            if matches.any():
                is_usual |= matches
                columns.append(self._columns(places[matches], rows[matches], width, tag_at, tag_size))
        return places[~is_usual]

    def _columns(self, places: Any, rows: Any, width: int, tag_at: int, tag_size: int) -> Any:
        import numpy as np

        wall = np.ascontiguousarray(rows[:, 1:9]).view("<f8")[:, 0]
        step = np.zeros(len(rows), dtype=np.int64)
        for column in range(width):
            step |= (rows[:, 10 + column].astype(np.int64) & 0x7F) << (7 * column)
        value = np.ascontiguousarray(rows[:, -8:-4]).view("<f4")[:, 0].astype(np.float64)
        tags = np.ascontiguousarray(rows[:, tag_at : tag_at + tag_size]).view(f"V{tag_size}")[:, 0]
        distinct, which = np.unique(tags, return_inverse=True)
        names = np.array([self._tag(tag.tobytes()) for tag in distinct], dtype=object)
        return places, times_ns(wall), step, names[which], value

    def _tag(self, data: bytes) -> str:
        if data not in self._tags and len(self._tags) < MOST_PLUGINS:
            self._tags[data] = data.decode(errors="replace")
        return self._tags.get(data) or data.decode(errors="replace")

    # ---- other records

    def _decode_long(self, records: Records, places: list[int], found: list[tuple[int, Point]]) -> None:
        for place in places:
            start, length = records.starts[place], records.lengths[place]
            if length > TEXT_BYTES:
                continue
            data, stored = records.buffer[start : start + length], records.buffer[start + length :][:4]
            if masked(checksum(data)) != int.from_bytes(stored, "little"):
                self.damaged += 1
            else:
                self._decode_one(place, data, found)

    def _decode_one(self, place: int, data: bytes, found: list[tuple[int, Point]]) -> None:
        try:
            wall, step, summary = 0.0, 0, b""
            for key, kind, value in protobuf.fields(data):
                if key == 1:
                    wall = protobuf.double(value)
                elif key == 2 and kind == protobuf.VARINT:
                    step = protobuf.signed(value)
                elif key == 5 and kind == protobuf.BYTES:
                    summary = value
            self.first_wall = self.first_wall or wall
            ts_ns = int(wall * 1e9) if 0 < wall < 4e9 else 0
            for tag, value in self._values(summary):
                found.append((place, (ts_ns, step, tag, value)))
        except Damaged:
            self.damaged += 1

    def _values(self, summary: bytes) -> Iterator[tuple[str, float]]:
        for key, kind, value in protobuf.fields(summary):
            if key == 1 and kind == protobuf.BYTES:
                yield from self._value(value)

    def _value(self, data: bytes) -> Iterator[tuple[str, float]]:
        tag, tensor = "", b""
        scalar: float | None = None
        for key, kind, value in protobuf.fields(data):
            if key == 1 and kind == protobuf.BYTES:
                tag = protobuf.text(value)
            elif key == 2 and kind == protobuf.FIXED32:
                scalar = float(struct.unpack("<f", value)[0])
            elif key == 8 and kind == protobuf.BYTES:
                tensor = value
            elif key == 9 and kind == protobuf.BYTES:
                self._note_plugin(tag, value)
        if scalar is not None:
            yield tag, scalar
        elif tensor and self._plugins.get(tag) not in _NO_SCALARS:
            if (number := tensor_scalar(tensor)) is not None:
                yield tag, number
        elif tensor and self._plugins.get(tag) == "text":
            text = protobuf.only(tensor, 8)
            if isinstance(text, bytes) and len(self.texts) < MOST_PLUGINS:
                self.texts.setdefault(tag, text.decode(errors="replace"))

    def _note_plugin(self, tag: str, metadata: bytes) -> None:
        plugin = protobuf.only(metadata, 1)
        if isinstance(plugin, bytes) and len(self._plugins) < MOST_PLUGINS:
            self._plugins[tag] = protobuf.text(protobuf.only(plugin, 1))


def tensor_scalar(tensor: bytes) -> float | None:
    """The only number in a tensor; None if it has none or several."""
    dtype, content, parts = 0, b"", []
    for key, kind, value in protobuf.fields(tensor):
        if key == 1 and kind == protobuf.VARINT:
            dtype = value
        elif key == 4 and kind == protobuf.BYTES:
            content = value
        elif key in _PACKED.values():
            parts.append((key, kind, value))
    form = _FORMATS.get(dtype)
    if form is None:
        return None
    if content:
        return _number(form, content)
    values = [(kind, value) for key, kind, value in parts if key == _PACKED[dtype]]
    if len(values) != 1:
        return None
    kind, value = values[0]
    if kind == protobuf.VARINT:
        return float(protobuf.signed(value))
    if kind == protobuf.BYTES and dtype in (3, 9):
        number, end = protobuf.varint(value, 0)
        return float(protobuf.signed(number)) if end == len(value) else None
    return _number(form, value)


def _number(form: str, data: bytes) -> float | None:
    return float(struct.unpack(f"<{form}", data)[0]) if len(data) == struct.calcsize(f"<{form}") else None


def times_ns(wall: Any) -> Any:
    """Unix seconds as int64 nanoseconds; 0 for what is not a time."""
    import numpy as np

    is_time = (wall > 0) & (wall < LATEST_NS / 1e9)
    return (np.where(is_time, wall, 0.0) * 1e9).astype(np.int64)


def _in_order(columns: list[Any], found: list[tuple[int, Point]]) -> list[Point]:
    import numpy as np

    if not columns:
        return [point for _, point in found]
    joined = [np.concatenate([part[number] for part in columns]) for number in range(5)]
    order = np.argsort(joined[0], kind="stable")
    usual = list(zip(*(column[order].tolist() for column in joined[1:]), strict=True))
    if not found:
        return usual
    places = joined[0][order].tolist()
    merged = [*zip(places, usual, strict=True), *found]
    merged.sort(key=lambda item: item[0])  # stable: several values of one record keep their order
    return [point for _, point in merged]
