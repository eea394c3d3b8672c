"""commands.jsonl, the commands of one run: one JSON object per line, {"seq": 1, "id": "…", "cmd": "pause", …}.

The daemon appends, the holder reads (hold/commands.py). Where no namespace hides it, a worker can write the file too,
so nothing in it is believed beyond its own run: see "Who can write what is read" in docs/reliability.md.
"""

import errno
import hashlib
import json
import os
import stat
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from mosaic.model.errors import BadCommand, CommandTaken, NoCommands, StoreUnavailable
from mosaic.model.failpoints import failpoint

MOST_COMMANDS = 100_000  # of one run
MOST_BYTES = 64 * 1024 * 1024  # of the file
MAX_COMMAND_BYTES = 64 * 1024
RESERVED = ("seq", "id")
_LONGEST_LINE = MAX_COMMAND_BYTES + 1024  # with its number and id
# Missing, a link, a folder, a file that we may not open, a socket: the worker did this to its own run.
_PLANTED = (errno.ENOENT, errno.ELOOP, errno.EISDIR, errno.EACCES, errno.ENXIO, errno.ENOTDIR)
_FLAGS = os.O_RDWR | os.O_APPEND | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


class Command(NamedTuple):
    """A command of a client, checked."""

    id: str
    values: Mapping[str, Any]

    @property
    def digest(self) -> bytes:
        return hashlib.blake2b(_text(self.values, sort_keys=True).encode(), digest_size=16).digest()


class _Known(NamedTuple):
    seq: int
    digest: bytes


class CommandLog:
    """The file of one run. One call at a time; the caller sees to that.

    1. A command whose number was returned is on disk, and is in the file once.
    2. The file has whole lines only: what a crash left of a line is cut off before the next one is appended.
    3. A file that something else replaced, shortened or wrote to is refused, never mended.
    """

    def __init__(self, path: Path, run_id: str) -> None:
        self._path = path
        self._run_id = run_id
        self._known: dict[str, _Known] = {}
        self._file: tuple[int, int] | None = None  # inode and size after our last write; None: not read yet
        self._is_synced = False

    def add(self, command: Command, refuse_new: Callable[[], None] = lambda: None) -> tuple[int, bool]:
        """The number of the command, and whether it was there already; `refuse_new` raises if it must not be added."""
        with _Opened(self._path, self._run_id) as fd:
            self._read_once(fd)
            known = self._known.get(command.id)
            if known is None:
                refuse_new()
                return self._append(fd, command), False
            if known.digest != command.digest:
                raise CommandTaken(self._run_id, command.id, known.seq)
            self._sync(fd)
            return known.seq, True

    def _append(self, fd: int, command: Command) -> int:
        seq = len(self._known) + 1
        line = _text({"seq": seq, "id": command.id, **command.values}).encode() + b"\n"
        self._refuse_more(len(line))
        failpoint("command.checked")
        self._write(fd, line)
        self._known[command.id] = _Known(seq, command.digest)
        failpoint("command.appended")
        self._sync(fd)
        return seq

    def _read_once(self, fd: int) -> None:
        found = os.fstat(fd)
        if self._file is None:
            self._read(fd, found.st_size)
            self._file = (found.st_ino, os.fstat(fd).st_size)
        elif self._file != (found.st_ino, found.st_size):
            raise self._damaged("was changed by another program")

    def _read(self, fd: int, size: int) -> None:
        if size > MOST_BYTES:
            raise self._damaged(f"has {size:,} bytes, which MOSAIC did not write")
        data = _read_all(fd, size)
        if data.count(b"\n") > MOST_COMMANDS:  # before they are split: a worker can write millions of lines
            raise self._damaged(f"has more than {MOST_COMMANDS:,} lines")
        *lines, torn = data.split(b"\n")
        known = dict(self._parsed(line, number) for number, line in enumerate(lines, 1))
        if len(known) != len(lines):
            raise self._damaged("has an id twice")
        if torn:
            os.ftruncate(fd, size - len(torn))
        self._known, self._is_synced = known, False

    def _parsed(self, line: bytes, seq: int) -> tuple[str, _Known]:
        try:
            values = json.loads(line) if len(line) <= _LONGEST_LINE else None
        except (ValueError, RecursionError):
            values = None
        if not isinstance(values, dict) or values.pop("seq", None) != seq:
            raise self._damaged(f"has a line {seq} that MOSAIC did not write")
        command = Command(str(values.pop("id", "")), values)
        return command.id, _Known(seq, command.digest)

    def _write(self, fd: int, line: bytes) -> None:
        assert self._file is not None
        inode, size = self._file
        self._file = None  # after an error it is read again, and what was written of the line is cut off
        if os.write(fd, line) != len(line):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        self._file, self._is_synced = (inode, size + len(line)), False

    def _sync(self, fd: int) -> None:
        if not self._is_synced:
            os.fsync(fd)
            self._is_synced = True
            failpoint("command.synced")

    def _refuse_more(self, length: int) -> None:
        assert self._file is not None
        if len(self._known) >= MOST_COMMANDS or self._file[1] + length > MOST_BYTES:
            most = f"{MOST_COMMANDS:,} commands or {MOST_BYTES >> 20} MiB"
            raise NoCommands(self._run_id, f"has received the most that a run takes ({most}).")

    def _damaged(self, what: str) -> NoCommands:
        return damaged(self._run_id, f"commands.jsonl in its control folder {what}")


class _Opened:
    """The open file, if it is a regular one of this user with a single name. A full disk is StoreUnavailable."""

    def __init__(self, path: Path, run_id: str) -> None:
        self._path = path
        self._run_id = run_id

    def __enter__(self) -> int:
        try:
            self._fd = os.open(self._path, _FLAGS)
        except OSError as error:
            raise self._translated(error) from None
        found = os.fstat(self._fd)
        # One name only: a link to the file of another run would deliver this run's commands to that one.
        if not stat.S_ISREG(found.st_mode) or found.st_uid != os.geteuid() or found.st_nlink != 1:
            os.close(self._fd)
            raise damaged(self._run_id, "commands.jsonl in its control folder is not the file that MOSAIC made")
        return self._fd

    def __exit__(self, kind: object, error: BaseException | None, _: object) -> None:
        os.close(self._fd)
        if isinstance(error, OSError):
            raise self._translated(error) from None

    def _translated(self, error: OSError) -> Exception:
        if error.errno in _PLANTED:
            return damaged(self._run_id, f"commands.jsonl in its control folder cannot be opened ({error.strerror})")
        return StoreUnavailable(
            f"The command for run {self._run_id} cannot be stored ({error.strerror}). Free some disk space, then send "
            "it again with the same id."
        )


def damaged(run_id: str, why: str) -> NoCommands:
    return NoCommands(run_id, f"can no longer be sent commands: {why}. End it with: mosaic cancel {run_id}")


def read_command(command_id: str, text: str) -> Command:
    """The command in a request, or BadCommand."""
    if not (1 <= len(command_id) <= 64 and command_id.isascii() and command_id.isprintable()):
        raise BadCommand("command_id: must have 1 to 64 printable ASCII characters.")
    if len(text) > MAX_COMMAND_BYTES:
        raise _too_large(len(text))
    values = _parse(text)
    if not isinstance(values, dict):
        raise BadCommand('The command must be a JSON object such as {"cmd": "pause"}.')
    if not isinstance(values.get("cmd"), str) or not values["cmd"]:
        raise BadCommand('cmd: missing, or not a string. It names what the worker is to do: {"cmd": "pause"}.')
    for name in RESERVED:
        if name in values:
            raise BadCommand(f"{name}: is set by MOSAIC and cannot be part of a command.")
    length = len(_text(values))
    if length > MAX_COMMAND_BYTES:
        raise _too_large(length)
    return Command(command_id, values)


def _too_large(length: int) -> BadCommand:
    return BadCommand(f"The command has {length:,} bytes; the maximum is {MAX_COMMAND_BYTES:,}.")


def _parse(text: str) -> Any:
    try:
        return json.loads(text, parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as error:
        raise BadCommand(f"The command is not valid JSON: {error}.") from None


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is not a JSON value")


def _text(values: Mapping[str, Any], sort_keys: bool = False) -> str:
    return json.dumps(values, sort_keys=sort_keys)  # ASCII, in one line


def _read_all(fd: int, size: int) -> bytes:
    parts, at = [], 0
    while at < size and (part := os.pread(fd, size - at, at)):
        parts.append(part)
        at += len(part)
    return b"".join(parts)
