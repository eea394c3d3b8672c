"""The members of one JSON line: raw bytes until a field is read with its type.

Each reader removes its field, so that what remains are the worker's own additions.
"""

import functools
import json
import math
import re
from datetime import UTC, datetime
from typing import Any

import msgspec
from msgspec import Raw

from mosaic.tail import nonfinite
from mosaic.tail.nesting import is_deeper

CACHED_BYTES = 256  # longer names are not cached
MAX_DEPTH = 200  # readers of `extra` recurse, and Python's own limit is 1000 frames, those of the callers included

Fields = dict[str, Raw]

NULL = Raw(b"null")
encode = msgspec.json.Encoder().encode
_TRUE, _FALSE = Raw(b"true"), Raw(b"false")
_INT64 = 1 << 63
_decode = msgspec.json.Decoder(Fields).decode
_NOT_STRICT = re.compile(rb"NaN|Infinity|\\u[dD]")  # accepted by Python's json, refused by msgspec
_decode_floats = msgspec.json.Decoder(dict[str, float]).decode


class InvalidField(Exception):
    """The line has a known type, and this field of it is invalid."""

    def __init__(self, field: str, why: str) -> None:
        super().__init__(f"{field}: {why}")


class TooDeep(InvalidField):
    def __init__(self) -> None:
        super().__init__("line", f"is nested deeper than {MAX_DEPTH} levels")


def looks_like_object(line: bytes) -> bool:
    return line[:1] == b"{" or (line[:1] in b" \t\r" and line.lstrip()[:1] == b"{")


def fields_of(data: "bytes | Raw") -> Fields | None:
    """The members of a JSON object, their values still raw; None when it is not a JSON object."""
    line = bytes(data)
    try:
        # msgspec does not check raw values for UTF-8, and `extra` must be JSON that every reader can parse.
        return _decode(line) if _is_utf8(line) else None
    except ValueError:
        return _fields_of_python(line)
    except RecursionError:
        raise TooDeep from None


def _fields_of_python(line: bytes) -> Fields | None:
    try:
        return nonfinite.fields_of(line) if _NOT_STRICT.search(line) else None
    except RecursionError:
        raise TooDeep from None


def _is_utf8(line: bytes) -> bool:
    try:
        return line.isascii() or bool(line.decode())
    except UnicodeDecodeError:
        return False


def refuse_deep(fields: Fields) -> None:
    """Raise TooDeep when a reader of these values would recurse too far."""
    if any(is_deeper(value, MAX_DEPTH - 1) for value in fields.values()):
        raise TooDeep


def floats_of(raw: Raw) -> dict[str, float]:
    """The numbers of an object, by name; InvalidField when it is not an object, or one of them is not a number."""
    try:
        return _decode_floats(raw)
    except ValueError:  # NaN, or an invalid value that the error must name
        members = fields_of(raw)
    if members is None:
        raise InvalidField("values", f"{excerpt(raw)} is not an object")
    return {name: scalar(f"values.{name[:60]}", value) for name, value in members.items()}


def whole(fields: Fields, name: str, default: int | None) -> int:
    """A 64-bit integer: 3.0 is one, true is not. Without a default the field is required."""
    raw = fields.pop(name, None)
    try:
        # Raw is a buffer, which int() and float() can read. Most lines need no more than this.
        value = default if raw is None else int(raw)
    except ValueError:
        value = default if raw == NULL else _whole_of_float(name, raw or NULL)
    if value is None:
        raise InvalidField(name, "is missing")
    if not -_INT64 <= value < _INT64:
        raise InvalidField(name, "does not fit into 64 bits")
    return value


def count_in(fields: Fields, name: str) -> int | None:
    """A non-negative integer, removed; other values stay: libraries use common names for other things."""
    raw = fields.get(name)
    if raw is None:
        return None
    try:
        value = float(raw)
    except ValueError:
        return None
    if not 0 <= value < _INT64 or not value.is_integer():
        return None
    return whole(fields, name, None)


def _whole_of_float(name: str, raw: Raw) -> int:
    value = scalar(name, raw, "an integer")
    if math.isinf(value):
        raise InvalidField(name, "does not fit into 64 bits")
    if not value.is_integer():
        raise InvalidField(name, f"{excerpt(raw)} is not an integer")
    return int(value)


def number(fields: Fields, name: str) -> float | None:
    raw = fields.pop(name, NULL)
    return None if raw == NULL else scalar(name, raw)


def scalar(name: str, raw: Raw, wanted: str = "a number") -> float:
    try:
        return float(raw)
    except ValueError:
        why = "is missing" if raw is NULL else f"{excerpt(raw)} is not {wanted}"
        raise InvalidField(name, why) from None


def flag(fields: Fields, name: str) -> bool:
    raw = fields.pop(name, _FALSE)
    if raw == _FALSE:
        return False
    if raw == _TRUE:
        return True
    value = plain(raw)
    if value not in (None, 0, 1):
        raise InvalidField(name, f"{excerpt(raw)} is neither true nor false")
    return bool(value)


def name_in(fields: Fields, name: str) -> str:
    raw = fields.pop(name, NULL)
    return "" if raw is NULL else text_of(name, bytes(raw))


def text_of(name: str, raw: bytes) -> str:
    return _cached_text(name, raw) if len(raw) <= CACHED_BYTES else _text(name, raw)


@functools.lru_cache(maxsize=1024)  # a run has few agents and metrics, and names them in every line
def _cached_text(name: str, raw: bytes) -> str:
    return _text(name, raw)


def _text(name: str, raw: bytes) -> str:
    value = plain(raw)
    if value is None:
        return ""
    if isinstance(value, bool) or not isinstance(value, str | int):
        raise InvalidField(name, f"{excerpt(raw)} is not a string")
    return valid_text(name, str(value))


def valid_text(name: str, text: str) -> str:
    """JSON can contain an unpaired surrogate; UTF-8 cannot."""
    try:
        text.encode()
    except UnicodeEncodeError:
        raise InvalidField(name, "is not valid text") from None
    return text


def time_ns(raw: Raw) -> int:
    """Unix seconds or an ISO date; a date without a time zone is UTC, so that it means the same on every machine."""
    value = plain(raw)
    try:
        if isinstance(value, str):
            moment = datetime.fromisoformat(value)
            value = (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
        if not isinstance(value, bool):
            ns = int(float(value) * 1e9)
            if -_INT64 <= ns < _INT64:
                return ns
    except (ValueError, TypeError, OverflowError):
        pass
    raise InvalidField("timestamp", f"{excerpt(raw)} is not a time")


def rest(fields: Fields) -> bytes:
    """The remaining members as a JSON object; empty when there are none."""
    return encode(fields) if fields else b""


def plain(raw: "bytes | Raw") -> Any:
    try:
        return json.loads(bytes(raw))
    except ValueError:  # a number of more than 4300 digits
        return math.inf


def excerpt(raw: "bytes | Raw") -> str:
    return bytes(raw)[:60].decode(errors="replace")
