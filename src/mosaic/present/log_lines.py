"""The output of a worker as lines: assembled from pieces, bounded, and safe to show."""

import re
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from mosaic.present.text import printable

if TYPE_CHECKING:
    from mosaic.client.events import LogPiece

MOST_LINES = 50_000
LONGEST_LINE = 2_000  # characters shown of a line; a longer one is cut, and says so
LONGEST_PART = 256 * 1024  # bytes kept of a line whose end has not come yet
HEAD_BYTES = 200  # shown of a rejected line
STREAMS = ("stdout", "stderr")


@dataclass(frozen=True, slots=True)
class LogLine:
    stream: str  # stdout or stderr
    text: str
    is_problem: bool = False  # a line that was rejected or lost, and why


class LogLines:
    """1. A line is given once, when its end has come, even if its bytes arrive twice.

    2. At most `most` lines are kept; `dropped` counts the others.
    """

    def __init__(self, most: int = MOST_LINES) -> None:
        self.kept: deque[LogLine] = deque(maxlen=most)
        self.dropped = 0
        self._parts = dict.fromkeys(STREAMS, b"")
        self._ends = dict.fromkeys(STREAMS, 0)  # where the next byte is in the spool

    def receive(self, pieces: "Iterable[LogPiece]") -> list[LogLine]:
        """The lines that these pieces complete."""
        return self._keep([line for piece in pieces for line in self._lines(piece)])

    def finish(self) -> list[LogLine]:
        """The last line of each stream, if it has no end. Call it when nothing more will come."""
        return self._keep([line for stream in STREAMS for line in self._flush(stream)])

    def _keep(self, lines: list[LogLine]) -> list[LogLine]:
        self.dropped += max(0, len(self.kept) + len(lines) - (self.kept.maxlen or 0))
        self.kept.extend(lines)
        return lines

    def _lines(self, piece: "LogPiece") -> Iterator[LogLine]:
        known, self._ends[piece.stream] = self._ends[piece.stream], max(self._ends[piece.stream], piece.end)
        if piece.end <= known:
            return
        if piece.problem:
            yield from self._flush(piece.stream)
            yield LogLine(piece.stream, describe_problem(piece), is_problem=True)
            return
        *whole, rest = (self._parts[piece.stream] + piece.text[max(0, known - piece.offset) :]).split(b"\n")
        self._parts[piece.stream] = rest
        for line in whole:
            yield LogLine(piece.stream, clean(line))
        if len(rest) > LONGEST_PART:
            yield from self._flush(piece.stream)

    def _flush(self, stream: str) -> Iterator[LogLine]:
        part, self._parts[stream] = self._parts[stream], b""
        if part:
            yield LogLine(stream, clean(part))


def clean(line: bytes) -> str:
    """The text of a line without control characters. Of a progress bar that rewrote itself, the last version."""
    cut = line[: 4 * LONGEST_LINE] if len(line) > 4 * LONGEST_LINE and b"\r" not in line else line
    versions = cut.decode(errors="replace").rstrip("\r").rsplit("\r", 1)
    text = printable(versions[-1].expandtabs(8))
    if len(text) <= LONGEST_LINE and cut is line:
        return text
    return f"{text[:LONGEST_LINE]} … ({len(line):,} bytes in this line)"


def describe_problem(piece: "LogPiece") -> str:
    """`stdout at byte 120: rejected: not valid JSON: {"step": …`."""
    head = printable(piece.text[:HEAD_BYTES].decode(errors="replace").strip())
    words = f"{piece.stream} at byte {piece.offset:,}: {printable(piece.problem)}"
    return f"{words}: {head}" if head else words


def matches(lines: Iterable[str], wanted: str) -> list[int]:
    """The numbers of the lines that contain the text; capital letters matter only if it has some."""
    if not wanted:
        return []
    if wanted.lower() == wanted:
        # One compiled pattern is quicker than a lowered copy of every line.
        find = re.compile(re.escape(wanted), re.IGNORECASE).search
        return [number for number, line in enumerate(lines) if find(line)]
    return [number for number, line in enumerate(lines) if wanted in line]
