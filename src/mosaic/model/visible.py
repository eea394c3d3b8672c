r"""Text of others, made harmless for a terminal.

What would move its cursor, change its title, write to its clipboard or reverse a text is printed as \u001b or so.

The form is that of JSON on purpose: JSON stays the same JSON, whatever passes through here.
"""

import re

# C0 and C1 controls, DEL, directions of writing, invisible tags, separators of lines, and halves of surrogate pairs,
# which no stream can encode.
_OTHERS = "\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff\ud800-\udfff\U000e0000-\U000e007f"
_IN_TEXT = re.compile(f"[\x00-\x08\x0b-\x1f{_OTHERS}]")  # not the tab and the end of a line
_IN_LOG = re.compile(f"[\x00-\x08\x0b\x0c\x0e-\x1f{_OTHERS}]")  # nor the return of a progress bar
_IN_LINE = re.compile(f"[\x00-\x1f{_OTHERS}]")


def visible(text: str) -> str:
    """Text of any number of lines."""
    return _IN_TEXT.sub(_escaped, text)


def visible_line(text: str) -> str:
    """A name or a message that must not pass for two lines."""
    return _IN_LINE.sub(_escaped, text)


def visible_log(text: str) -> str:
    """The output of a program."""
    return _IN_LOG.sub(_escaped, text)


def _escaped(found: "re.Match[str]") -> str:
    code = ord(found.group())
    if code < 0x10000:
        return f"\\u{code:04x}"
    return f"\\u{0xD800 + (code - 0x10000 >> 10):04x}\\u{0xDC00 + (code & 0x3FF):04x}"
