"""stdout and stderr of the command: every text that is printed is made harmless for the terminal, in this one place.

Only what draws a screen itself (rich, `mosaic frames`) writes to the stream behind it: `raw(sys.stdout)`.
"""

import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, TextIO, cast

from mosaic.cli.terminal_text import is_colourful
from mosaic.model.visible import visible

# What `paint` and argparse print: bold, dim, underlined, and colours of letters. Nothing that could hide a text.
_COLOUR = re.compile(r"(\x1b\[(?:(?:[0-4]|[39]\d)(?:;|(?=m)))*m)")
_RESET = "\x1b[0m"


class SafeOutput:
    """A text stream that prints control characters as text. Colours are kept where we print them: on a terminal."""

    def __init__(self, stream: TextIO) -> None:
        self.raw_text = stream

    def write(self, text: str) -> int:
        self.raw_text.write(self._safe(text))
        return len(text)

    def writelines(self, lines: "Iterator[str]") -> None:
        for line in lines:
            self.write(line)

    def _safe(self, text: str) -> str:
        if "\x1b" not in text or not is_colourful(self.raw_text):
            return visible(text)
        parts = _COLOUR.split(text)
        safe = "".join(part if place % 2 else visible(part) for place, part in enumerate(parts))
        # Our own colours end in the text in which they begin; one that a worker left open must not colour the rest.
        return safe if len(parts) == 1 or parts[-2] == _RESET else safe + _RESET

    def __getattr__(self, name: str) -> Any:
        return getattr(self.raw_text, name)


@contextmanager
def safe_output() -> Iterator[None]:
    """Replace stdout and stderr for this block."""
    before = sys.stdout, sys.stderr
    sys.stdout, sys.stderr = (cast("TextIO", SafeOutput(raw(stream))) for stream in before)
    try:
        yield
    finally:
        sys.stdout, sys.stderr = before


def raw(stream: TextIO) -> TextIO:
    """The stream itself, for codes that move the cursor. Texts of others must have been made printable."""
    return cast("TextIO", getattr(stream, "raw_text", stream))
