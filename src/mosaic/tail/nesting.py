"""Measures how deep JSON is nested without parsing its values: a long observation has a million of them."""

import re

from msgspec import Raw

_SQUARE = bytes.maketrans(b"{}", b"[]")
_VALUES = bytes(byte for byte in range(256) if byte not in b'[]{}"')
_TEXTS = re.compile(rb'"[^"]*+"')


def is_deeper(raw: Raw, levels: int) -> bool:
    """Whether a valid JSON value is nested deeper than `levels`."""
    view = memoryview(raw)
    if len(view) <= 2 * levels:
        return False
    data = bytes(view)
    if data.count(b"[") + data.count(b"{") <= levels:
        return False
    return _levels(_brackets(data), levels + 1) > levels


def _brackets(data: bytes) -> bytes:
    """The brackets outside strings, braces converted to square ones."""
    if b"\\" in data:
        data = data.replace(b"\\\\", b"").replace(b'\\"', b"")  # now every quote starts or ends a string
    # Most strings contain no bracket and are gone after the first step; the expression only sees the others.
    data = data.translate(_SQUARE, _VALUES).replace(b'""', b"")
    return _TEXTS.sub(b"", data) if b'"' in data else data


def _levels(brackets: bytes, most: int) -> int:
    """Each pass removes the innermost level everywhere; wide values become short after the first."""
    found = 0
    while found < most and b"[]" in brackets:
        brackets = brackets.replace(b"[]", b"")
        found += 1
    return found
