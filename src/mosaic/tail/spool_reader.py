"""Reads the file of one stream of a worker, from a cursor on, in pieces that end where a line ends.

    Lines      whole lines; only at the very end, or before a hole, may the last one have no newline
    LongLine   a line over 8 MiB: its offset, its length and its first 4 kB
    Hole       NUL bytes that the worker did not print: a sparse or punched range
    Shrunk     the file ends before the cursor: something truncated it

Offsets only grow, because the store's cursor does. A file that shrank is reported once and grown back to its old size
(a hole below the cursor), so that what the worker appends next is at the cursor again. Without a write descriptor this
is impossible: bytes below the cursor then count as read, and reading continues when the file has grown past it.
"""

import errno
import logging
import os
import stat
from dataclasses import dataclass

from mosaic.model import durable
from mosaic.model.failpoints import failpoint
from mosaic.tail.parse import HEAD_BYTES
from mosaic.tail.punch import grow, punch

CHUNK_BYTES = 256 << 10
LINE_BYTES = 8 << 20
KEPT_BYTES = 64 << 20  # at the end of the file, never punched
PUNCH_BYTES = 1 << 20  # the least that is punched at once
NULS = bytes(16)  # a run of at least this length is a hole; a shorter one is the worker's own output
_PAGE = 4096

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Lines:
    start: int
    data: bytes

    @property
    def end(self) -> int:
        return self.start + len(self.data)

    def halves(self) -> "tuple[Lines, Lines] | None":
        """Two parts of whole lines each; None for a single line."""
        middle = len(self.data) // 2
        cut = self.data.rfind(b"\n", 0, middle) + 1 or self.data.find(b"\n", middle) + 1
        if not 0 < cut < len(self.data):
            return None
        return Lines(self.start, self.data[:cut]), Lines(self.start + cut, self.data[cut:])


@dataclass(frozen=True)
class LongLine:
    start: int
    end: int
    head: bytes


@dataclass(frozen=True)
class Hole:
    start: int
    end: int


@dataclass(frozen=True)
class Shrunk:
    start: int  # the cursor, = end: it covers no bytes of the range
    end: int
    size: int


Piece = Lines | LongLine | Hole | Shrunk


class Spool:
    """The file of one stream. Buffers at most one unfinished line, and of a line over the limit only its head."""

    def __init__(self, path: "str | os.PathLike[str]", breaks: bytes = b"\n", write_fd: int | None = None) -> None:
        self._fd = _open(path, write_fd)
        self._breaks = breaks
        self._write_fd = write_fd
        self._punched = 0
        self._shrunk_to: int | None = None
        self._seen_to = 0
        self.seek(0)

    def seek(self, offset: int) -> None:
        """Continue at `offset`, the start of a line."""
        self.offset = self._read_to = offset
        self._seen_to = max(self._seen_to, offset)
        self._held = bytearray()  # the unfinished line
        self._head: bytes | None = None  # set while a line over the limit is skipped

    def close(self) -> None:
        os.close(self._fd)

    @property
    def own_path(self) -> str:
        """A path of the open file, whatever has its name now."""
        return f"/proc/self/fd/{self._fd}"

    @property
    def size(self) -> int:
        return os.fstat(self._fd).st_size

    @property
    def behind(self) -> int:
        # Not counted from `offset`: an unfinished line (a progress bar) has been read, even if it never ends.
        return max(0, self.size - self._seen_to)

    def read(self, final: bool = False) -> Piece | None:
        """The next piece; None when there is none yet. `final`: no process writes any more, a cut line counts too."""
        while data := os.pread(self._fd, CHUNK_BYTES, self._read_to):
            self._read_to += len(data)
            self._seen_to = max(self._seen_to, self._read_to)
            if piece := self._skip(data) if self._head is not None else self._gather(data):
                return self._take(piece)
        if self.size < self._read_to:
            return self._notice_shrinking(final)
        return self._take(self._unfinished()) if final else None

    def punch(self, durable: int) -> None:
        """Free the bytes that are durably stored, except the newest 64 MiB."""
        end = min(durable, self.size - KEPT_BYTES) // _PAGE * _PAGE
        if self._write_fd is None or end - self._punched < PUNCH_BYTES:
            return
        try:
            failpoint("punch.open")
            punch(self._write_fd, self._punched, end)
            failpoint("punch.done")
            self._punched = end
        except OSError as error:
            log.warning("Acknowledged bytes of the spool cannot be freed: %s", error)
            self._write_fd = None

    def _take(self, piece: Piece | None) -> Piece | None:
        if piece:
            self.seek(piece.end)
        return piece

    def _gather(self, data: bytes) -> Piece | None:
        known = len(self._held)
        self._held += data
        hole = self._held.find(NULS, max(0, known - len(NULS)))
        if hole == 0:
            return self._hole()
        # A hole ends the line before it: that line will not grow any more.
        end = hole if hole > 0 else max(self._held.rfind(mark, known) for mark in self._breaks) + 1
        if len(self._held) > LINE_BYTES:
            return self._long_line(end)
        return self._lines(end) if end else None

    def _lines(self, end: int) -> Lines:
        with memoryview(self._held) as held:
            return Lines(self.offset, bytes(held[:end]))

    def _long_line(self, end: int) -> Piece | None:
        """The buffer exceeds the limit: is it its first line, or only the last few bytes?"""
        first = min(self._held.find(mark, 0, end) + 1 or end for mark in self._breaks)
        if 0 < first <= LINE_BYTES + 1:
            return self._lines(first)
        self._head = bytes(self._held[:HEAD_BYTES])
        if first:
            return LongLine(self.offset, self.offset + first, self._head)
        self._held = bytearray()
        return None

    def _skip(self, data: bytes) -> LongLine | None:
        ends = [at for mark in self._breaks if (at := data.find(mark)) >= 0]
        if not ends:
            return None
        return LongLine(self.offset, self._read_to - len(data) + min(ends) + 1, self._head or b"")

    def _hole(self) -> Hole:
        end = self.offset + _leading_nuls(self._held)
        while end == self._read_to:
            end = self._read_to = max(end, self._next_data(end))  # a sparse file may have terabytes
            data = os.pread(self._fd, CHUNK_BYTES, end)
            if not data:
                break
            self._read_to += len(data)
            end += _leading_nuls(data)
        return Hole(self.offset, end)

    def _next_data(self, offset: int) -> int:
        """Where the file has bytes again, as far as the file system knows; its end if there are none."""
        size = self.size  # first: what is appended meanwhile is data
        try:
            return os.lseek(self._fd, offset, os.SEEK_DATA)
        except OSError as error:
            return size if error.errno == errno.ENXIO else offset

    def _unfinished(self) -> Piece | None:
        if self._head is not None:
            return LongLine(self.offset, self._read_to, self._head)
        return Lines(self.offset, bytes(self._held)) if self._held else None

    def _notice_shrinking(self, final: bool) -> Piece | None:
        size = self.size
        self.seek(self.offset)  # the buffered part of an unfinished line is no longer in the file
        if size >= self.offset:
            return self.read(final)
        if self._shrunk_to == size:
            return None
        self._shrunk_to = size
        self._grow_back()
        return Shrunk(self.offset, self.offset, size)

    def _grow_back(self) -> None:
        if self._write_fd is None:
            return
        try:
            grow(self._write_fd, self.offset)
            self._shrunk_to = None
        except OSError as error:
            log.warning("The spool shrank and cannot be grown back: %s", error)


def _open(path: "str | os.PathLike[str]", write_fd: int | None) -> int:
    if write_fd is not None and stat.S_ISREG(os.fstat(write_fd).st_mode):
        # The holder's own file: the worker may have renamed it, and put a link or a FIFO in its place.
        os.fchmod(write_fd, os.fstat(write_fd).st_mode & 0o777 | 0o400)
        return os.open(f"/proc/self/fd/{write_fd}", os.O_RDONLY | os.O_CLOEXEC)
    try:
        # A run whose holder died early may have no spool; treat it as empty.
        folder = os.path.dirname(os.path.dirname(path))
        return durable.open_regular(path, os.O_RDONLY | os.O_CREAT, below=folder)
    except OSError as error:
        log.warning("The spool cannot be read, so it counts as empty: %s", error)
        return os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)


def _leading_nuls(data: "bytes | bytearray") -> int:
    return len(data) - len(data.lstrip(b"\0"))
