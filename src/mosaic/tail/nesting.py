"""How deep JSON is nested, found without reading its values: a long observation has a million of them."""

import re

from msgspec import Raw

_SQUARE = bytes.maketrans(b"{}", b"[]")
_VALUES = bytes(byte for byte in range(256) if byte not in b'[]{}"')
_TEXTS = re.compile(rb'"[^"]*+"')


def is_deeper(raw: Raw, levels: int) -> bool:
    """Whether a valid JSON value is nested in more than so many levels."""
    view = memoryview(raw)
    if len(view) <= 2 * levels:
        return False
    data = bytes(view)
    if data.count(b"[") + data.count(b"{") <= levels:
        return False
    return _levels(_brackets(data), levels + 1) > levels


def _brackets(data: bytes) -> bytes:
    """The brackets outside texts, all of them square."""
    if b"\\" in data:
        data = data.replace(b"\\\\", b"").replace(b'\\"', b"")  # now every quote begins or ends a text
    # Most texts have no bracket in them and are gone with the first step; the expression only sees the others.
    data = data.translate(_SQUARE, _VALUES).replace(b'""', b"")
    return _TEXTS.sub(b"", data) if b'"' in data else data


def _levels(brackets: bytes, most: int) -> int:
    """Each pass removes the innermost level everywhere; what is wide is short after the first."""
    found = 0
    while found < most and b"[]" in brackets:
        brackets = brackets.replace(b"[]", b"")
        found += 1
    return found
