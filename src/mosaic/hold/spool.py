"""The spool: the two files that receive a worker's stdout and stderr.

worker ──fd 1──▶ worker.stdout.log        a plain append, with no process in between
worker ──pipe──▶ Drain ──▶ the same file  shell scripts, and where the file's mode cannot protect it
"""

import fcntl
import os

from mosaic.hold import kernel

RESERVE_BYTES = 8 << 20
RESERVE_PAUSE_S = 5.0
RETRY_S = 1.0
_PROTECTED_MODE = 0o400
_CHUNK = 1 << 20
_CHUNKS_AT_ONCE = 16


class SpoolFile:
    """An append-only file that cannot be opened for writing a second time, so `> /dev/stdout` cannot truncate it."""

    def __init__(self, path: "str | os.PathLike[str]") -> None:
        self.path = os.fspath(path)
        self.fd = _open_to_append(self.path)
        os.fchmod(self.fd, _PROTECTED_MODE)
        self._reserved_to = 0

    @property
    def size(self) -> int:
        return os.fstat(self.fd).st_size

    @property
    def is_protected(self) -> bool:
        """False where the file system has no modes, or where root's right to ignore them cannot be dropped."""
        mode = os.fstat(self.fd).st_mode & 0o777
        return mode == _PROTECTED_MODE and kernel.can_drop_dac_override()

    def reserve(self) -> None:
        """Allocate some MiB ahead of the end, so that a full disk does not cut the next line."""
        end = self.size
        if self._reserved_to - end > RESERVE_BYTES // 2:
            return
        try:
            kernel.reserve(self.fd, end, RESERVE_BYTES)
            self._reserved_to = end + RESERVE_BYTES
        except OSError:
            pass  # unsupported by the file system, or the disk is full; the worker writes without a reserve

    def release(self) -> None:
        """Free the unused reserve. Only when no writer is left: truncating to the size would race with an append."""
        if self._reserved_to:
            os.ftruncate(self.fd, self.size)


class Reserve:
    """Keeps the reserves of both files ahead of their ends; a silent run costs no CPU."""

    def __init__(self, files: "list[SpoolFile]") -> None:
        self._files = files
        self._next_at = 0.0
        self._top_up()  # before the watch, because allocating blocks counts as a write
        try:
            self._watch = kernel.watch_writes([file.path for file in files])
        except OSError:
            self._watch = -1  # this user has no inotify instance left: the first reserve is the only one

    def waits_for(self, now: float) -> "int | None":
        """The descriptor to poll; None shortly after a write, when the next check can wait."""
        return self._watch if self._watch >= 0 and now >= self._next_at else None

    def next_at(self, now: float) -> "float | None":
        return self._next_at if self._watch >= 0 and now < self._next_at else None

    def note_writes(self, now: float) -> None:
        """Call when the descriptor is readable."""
        os.read(self._watch, 4096)
        self._next_at = now + RESERVE_PAUSE_S
        self._top_up()

    def _top_up(self) -> None:
        for file in self._files:
            file.reserve()


class Drain:
    """Copies a pipe to a spool file; on a full disk it stops reading and loses nothing."""

    def __init__(self, file: SpoolFile) -> None:
        self.source, self.sink = os.pipe()  # the worker's end is `sink`
        os.set_blocking(self.source, False)
        _widen(self.sink)
        self._file = file
        self._pending = b""
        self.retry_at: float | None = None  # the disk is full until then
        self.is_empty = False  # the end was read and everything is written

    def pump(self, now: float) -> None:
        """Copy what is available, up to some MiB: endless output must not delay the holder's deadlines."""
        for _ in range(_CHUNKS_AT_ONCE):
            if self.is_empty or not self._write_pending(now) or not self._read():
                return
        self._write_pending(now)

    @property
    def wants_more(self) -> bool:
        return not self.is_empty and self.retry_at is None

    def _read(self) -> bool:
        try:
            self._pending = os.read(self.source, _CHUNK)
        except BlockingIOError:
            return False
        self.is_empty = not self._pending
        return not self.is_empty

    def _write_pending(self, now: float) -> bool:
        try:
            while self._pending:
                self._pending = self._pending[os.write(self._file.fd, self._pending) :]
        except OSError:
            # The disk is full, over quota or failing: the worker waits at its pipe, and no byte is lost.
            self.retry_at = now + RETRY_S
            return False
        self.retry_at = None
        return True


def _open_to_append(path: str) -> int:
    flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
    try:
        return os.open(path, flags, 0o600)
    except PermissionError:
        os.chmod(path, 0o600)  # protected by an earlier attempt
        return os.open(path, flags, 0o600)


def _widen(pipe: int) -> None:
    try:
        fcntl.fcntl(pipe, fcntl.F_SETPIPE_SZ, 1 << 20)
    except OSError:
        pass  # this user has reached the limit for pipes; a small one works too
