"""The output of a worker as it came, piece by piece, safe for a terminal."""

import codecs
import re

from mosaic.model.visible import visible_log

# Colours, "erase to the end of the line" and backspaces: progress bars are full of them, and they say nothing.
_QUIET = re.compile(r"\x1b\[[0-9;:]*m|\x1b\[[0-2]?K|\x08+")
_UNFINISHED = re.compile(r"\x1b(?:\[[0-9;:]{0,32})?\Z")


class LogText:
    """One stream. Colours are left out, progress bars keep their carriage returns, all other controls become visible.

    A character or a sequence may be divided between two pieces.
    """

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")("backslashreplace")
        self._rest = ""

    def receive(self, piece: bytes) -> str:
        text = self._rest + self._decoder.decode(piece)
        end = found.start() if (found := _UNFINISHED.search(text)) else len(text)
        self._rest = text[end:]
        return visible_log(_QUIET.sub("", text[:end]))

    def finish(self) -> str:
        text, self._rest = self._rest + self._decoder.decode(b"", final=True), ""
        return visible_log(text)
