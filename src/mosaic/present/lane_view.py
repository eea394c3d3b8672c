"""The environment of a lane as text. Gymnasium's text worlds mark the player with a colour: the mark stays."""

import re
from typing import NamedTuple

from mosaic.present.text import printable

COLOUR = re.compile(r"\x1b\[([0-9;]*)m")
MOST_LINES = 400


class Piece(NamedTuple):
    text: str
    is_marked: bool


def pieces_of(view: str) -> list[Piece]:
    """The text in order; a piece that had a colour is marked."""
    found: list[Piece] = []
    is_marked = False
    parts = COLOUR.split("\n".join(view.strip("\n").split("\n")[:MOST_LINES]))
    for place, part in enumerate(parts):
        if place % 2:
            is_marked = any(code not in ("", "0") for code in part.split(";"))
        elif part:
            found.append(Piece("\n".join(printable(line) for line in part.split("\n")), is_marked))
    return found
