"""Commands for the worker: the lines of commands.jsonl, written to a pipe that is its stdin.

daemon ──appends──▶ commands.jsonl ──inotify──▶ CommandFeed ──pipe──▶ worker's stdin

The bytes in the pipe are those of the file, from its start. So the position in the file says what the worker received,
and no line has to be kept in memory.
"""

import errno
import fcntl
import os
import select
import stat
import sys
import termios
from collections.abc import Callable, Iterator

from mosaic.hold import kernel

CHUNK = 256 * 1024  # more than the longest line that the daemon writes
LOOK_AGAIN_S = 0.25  # without inotify
_MOST_COUNTED = 64 * 1024 * 1024  # the daemon's limit for the file
_CHUNKS_AT_ONCE = 16


class CommandFeed:
    """Passes each complete line to the worker once, in order.

    1. It never waits: not for a worker that reads nothing, and not for a file that is no file.
    2. It keeps at most one chunk in memory, however many commands wait.
    3. Without new commands it costs no CPU.
    """

    def __init__(self, path: "str | os.PathLike[str]", say: "Callable[[str], None]", is_watched: bool = True) -> None:
        self._say = say
        self._file = _open_to_read(path)
        self._watch = _watch(path) if is_watched else -1
        self.source, self._sink = os.pipe()  # the worker's end is `source`
        os.set_blocking(self._sink, False)
        self._position = 0  # in the file: up to here, all is in the pipe or pending
        self._pending = b""
        self._is_behind = True  # perhaps more could be written than was
        self._read_to = 0
        self.is_closed = False

    def waits_for(self) -> "tuple[int, int] | None":
        """The descriptor and the event to poll for; None when there is nothing to wait for."""
        if self.is_closed:
            return None
        # While the pipe is full, new commands change nothing: watching the file as well would only wake us up.
        if self._is_behind:
            return self._sink, select.POLLOUT
        return (self._watch, select.POLLIN) if self._watch >= 0 else None

    def next_at(self, now: float) -> "float | None":
        """When to look again, where the file cannot be watched."""
        return now + LOOK_AGAIN_S if self._watch < 0 and not self.is_closed and not self._is_behind else None

    def pump(self) -> None:
        """Write what the pipe takes, up to some chunks: a busy client must not delay the holder's deadlines."""
        if self.is_closed:
            return
        self._forget_events()
        try:
            self._is_behind = all(self._pump_chunk() for _ in range(_CHUNKS_AT_ONCE)) or bool(self._pending)
        except BrokenPipeError:
            self.close()  # the worker closed its stdin, or is gone
        except OSError as error:
            # The worker continues without commands: no reason to end it.
            self._say(f"commands.jsonl: {error.strerror}; no more commands are passed to the worker.")
            self.close()

    def close(self) -> None:
        """Close the pipe; the worker, if it lives, reads the end of its stdin."""
        if not self.is_closed:
            self._read_to = self._received()
            self.is_closed = True
            os.close(self._sink)

    def count_unread(self) -> int:
        """How many commands the worker has not read. Call after `close`."""
        try:
            return sum(part.count(b"\n") for part in _parts(self._file, self._read_to))
        except OSError:
            return 0

    def _received(self) -> int:
        """Up to where in the file the worker has read."""
        in_pipe = int.from_bytes(fcntl.ioctl(self._sink, termios.FIONREAD, bytes(4)), sys.byteorder)
        return self._position - len(self._pending) - in_pipe

    def _pump_chunk(self) -> bool:
        """Whether a chunk was written completely, so that there may be another."""
        if not self._pending:
            self._pending = self._next_lines()
            self._position += len(self._pending)
        if not self._pending:
            return False
        try:
            self._pending = self._pending[os.write(self._sink, self._pending) :]
        except BlockingIOError:
            return False
        return not self._pending

    def _next_lines(self) -> bytes:
        """The next complete lines. A part of a line stays in the file: the daemon cuts it off after a crash."""
        data = os.pread(self._file, CHUNK, self._position)
        lines = data[: data.rfind(b"\n") + 1]
        if len(data) == CHUNK and not lines:
            raise OSError(errno.EMSGSIZE, "it has a line that MOSAIC did not write")
        return lines

    def _forget_events(self) -> None:
        if self._watch < 0:
            return
        try:
            # Once, not until it is empty: a worker that writes to the file without a pause must not keep us here.
            os.read(self._watch, 65536)
        except BlockingIOError:
            pass


def _open_to_read(path: "str | os.PathLike[str]") -> int:
    """The file that the daemon made at the submit. Anything else in its place must neither block nor be read."""
    fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    found = os.fstat(fd)
    if stat.S_ISREG(found.st_mode) and found.st_uid == os.geteuid() and found.st_nlink == 1:
        return fd
    os.close(fd)
    raise OSError(errno.EINVAL, "is not the file that MOSAIC made", os.fspath(path))


def _watch(path: "str | os.PathLike[str]") -> int:
    try:
        return kernel.watch_writes([os.fspath(path)])
    except OSError:
        return -1  # this user has no inotify instance left


def _parts(fd: int, at: int) -> "Iterator[bytes]":
    """The file from `at` on, up to the limit."""
    while at < _MOST_COUNTED and (part := os.pread(fd, CHUNK, at)):
        yield part
        at += len(part)
