"""A minimal decoder of protobuf messages: fields by their numbers, without a schema."""

import struct
from collections.abc import Iterator
from typing import Any

from mosaic.imports.files import Damaged

VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5
Field = tuple[int, int, Any]  # number, wire type, value: an int, or bytes


def fields(data: bytes) -> Iterator[Field]:
    """The fields of a message in their order; Damaged for bytes that are not a message."""
    at, end = 0, len(data)
    while at < end:
        tag, at = varint(data, at)
        kind = tag & 7
        if kind == VARINT:
            value, at = varint(data, at)
            yield tag >> 3, kind, value
            continue
        size = {FIXED64: 8, FIXED32: 4}.get(kind, 0)
        if kind == BYTES:
            size, at = varint(data, at)
        elif not size:
            raise Damaged(f"a message has a field of the unknown type {kind}")
        if at + size > end:
            raise Damaged("a message ends inside a field")
        yield tag >> 3, kind, data[at : at + size]
        at += size


def varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while at < len(data) and shift < 70:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value & 0xFFFFFFFFFFFFFFFF, at
        shift += 7
    raise Damaged("a message ends inside a number")


def signed(value: int) -> int:
    """A varint as int64."""
    return value - (1 << 64) if value >= 1 << 63 else value


def double(data: Any) -> float:
    return float(struct.unpack("<d", data)[0]) if isinstance(data, bytes) and len(data) == 8 else 0.0


def text(data: Any) -> str:
    return data.decode(errors="replace") if isinstance(data, bytes) else ""


def only(data: bytes, number: int) -> Any:
    """The last value of a field; None if it is missing."""
    found = None
    for key, _, value in fields(data):
        if key == number:
            found = value
    return found
