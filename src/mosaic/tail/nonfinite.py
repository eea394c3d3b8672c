"""JSON as Python writes it: NaN, Infinity and unpaired surrogates, which the standard and msgspec refuse.

In a line with such numbers, stand-ins of the same length are parsed, and the values are then taken from the original
line. So a long line costs a few scans, and what the worker wrote stays unchanged.
"""

import json
import re

import msgspec
from msgspec import Raw

# The possessive `*+` never backtracks: without it a position is saved for every character of a long string.
_TEXT = rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"'
_TEXTS = re.compile(_TEXT)
# In brackets: "1NaN" must not become a number.
_STAND_INS = {b"-Infinity": b"[1111111]", b"Infinity": b"[111111]", b"NaN": b"[1]"}
_NUMBERS = re.compile(_TEXT + rb"|-?Infinity|NaN")
_MEMBER = re.compile(rb"[{,][ \t\r]*(" + _TEXT + rb")[ \t\r]*:[ \t\r]*")
_END = re.compile(rb"[ \t\r]*(?=[,}])")

_decode = msgspec.json.Decoder(dict[str, Raw]).decode


def fields_of(line: bytes) -> "dict[str, Raw] | None":
    """The members of an object that is not strict JSON, their values raw; None when Python cannot parse it either."""
    fields = None
    if b"NaN" in line or b"Infinity" in line:
        fields = _fields_of_numbers(line)
    return _fields_of_tree(line) if fields is None else fields


def _fields_of_numbers(line: bytes) -> "dict[str, Raw] | None":
    strict = _with_stand_ins(line)
    try:
        return _originals(line, strict, _decode(strict))
    except ValueError:
        return None


def _with_stand_ins(line: bytes) -> bytes:
    texts = b"".join(_TEXTS.findall(line))
    if b"NaN" in texts or b"Infinity" in texts:
        return _NUMBERS.sub(lambda found: _STAND_INS.get(found[0], found[0]), line)
    for number, stand_in in _STAND_INS.items():
        line = line.replace(number, stand_in)
    return line


def _originals(line: bytes, strict: bytes, fields: "dict[str, Raw]") -> "dict[str, Raw] | None":
    """The values of `fields`, which were parsed from `strict`, as they are in `line`; None when a name occurs twice."""
    here, originals = strict.index(b"{"), {}
    while member := _MEMBER.match(strict, here):
        name, start = msgspec.json.decode(member[1], type=str), member.end()
        raw = memoryview(fields[name])
        end = start + len(raw)
        after = _END.match(strict, end)
        if name in originals or after is None or not strict.startswith(raw, start):
            return None
        originals[name] = Raw(line[start:end])
        here = after.end()
    return originals


def _fields_of_tree(line: bytes) -> "dict[str, Raw] | None":
    """The slow path, which is rare: for an unpaired surrogate, or a name that occurs twice."""
    try:
        fields = json.loads(line)
        if not isinstance(fields, dict):
            return None
        for name in fields:
            name.encode()  # raises for an unpaired surrogate, which UTF-8 cannot encode
        return {name: Raw(json.dumps(value).encode()) for name, value in fields.items()}
    except ValueError:
        return None
