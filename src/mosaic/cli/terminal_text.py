"""Colours of the terminal. They are used only on a terminal and never with NO_COLOR."""

import os
import sys
from typing import TextIO

from mosaic.model.states import RunState

CODES = {"bold": "1", "dim": "2", "red": "31", "green": "32", "yellow": "33", "blue": "34", "cyan": "36"}

STATE_STYLE = {
    RunState.INIT: "yellow",
    RunState.HANDSHAKE: "yellow",
    RunState.READY: "cyan",
    RunState.EXECUTING: "green",
    RunState.TERMINATED: "blue",
    RunState.FAULTED: "red",
    RunState.CANCELLED: "dim",
}


def is_screen(stream: TextIO) -> bool:
    """Whether text on the stream can be overwritten, which TERM=dumb rules out."""
    return stream.isatty() and os.environ.get("TERM") != "dumb"


def is_colourful(stream: TextIO) -> bool:
    return is_screen(stream) and not os.environ.get("NO_COLOR")


def paint(text: str, style: str, stream: TextIO | None = None) -> str:
    if not style or not is_colourful(stream or sys.stdout):
        return text
    return f"\x1b[{CODES[style]}m{text}\x1b[0m"
