"""Fork and exec by hand: importing subprocess would take longer than the rest of the holder's start."""

import os
import signal
from collections.abc import Callable
from typing import NamedTuple

from mosaic.model import procfs
from mosaic.model.errors import MosaicError


class SpawnFailed(MosaicError):
    """The program could not be started."""


class Command(NamedTuple):
    """A program to start, with the descriptors that become its stdin, stdout and stderr."""

    argv: "list[str]"
    env: "dict[str, str]"
    cwd: str
    stdout: int
    stderr: int
    keep: "tuple[int, ...]" = ()  # further descriptors that it inherits
    stdin: "int | None" = None  # None: /dev/null

    @property
    def streams(self) -> "set[int]":
        """The descriptors that are open for it."""
        return {fd for fd in (self.stdin, self.stdout, self.stderr) if fd is not None}


def spawn(command: Command, prepare: "Callable[[], None]") -> int:
    """Start the program in a new session and return its pid; SpawnFailed contains the reason when it fails."""
    problem, problem_to_write = os.pipe()
    try:
        # A signal between fork and exec waits, and then gets the program's default action, not our handlers.
        with BlockedSignals():
            pid = os.fork()
            if pid == 0:
                _exec_child(command, prepare, problem_to_write)
    finally:
        os.close(problem_to_write)
        text = _read_all(problem)  # ends when the exec has closed the other side
    if text:
        os.waitpid(pid, 0)
        raise SpawnFailed(text.decode(errors="replace"))
    return pid


class BlockedSignals:
    """Delays signals until the end of the block. (contextlib is not worth its import.)"""

    def __enter__(self) -> None:
        self._mask = signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())

    def __exit__(self, *_: object) -> None:
        signal.pthread_sigmask(signal.SIG_SETMASK, self._mask)


def _read_all(fd: int) -> bytes:
    with os.fdopen(fd, "rb") as file:
        return file.read()


def _exec_child(command: Command, prepare: "Callable[[], None]", problem: int) -> None:
    try:
        os.setsid()
        prepare()
        _set_descriptors(command)
        _enter(command.cwd)
        _reset_signals()
        _exec(command)
    except BaseException as error:  # noqa: BLE001 - the child must not return from here: the parent reads the reason
        os.write(problem, (str(error) or repr(error)).encode(errors="replace")[:4000] or b"unknown")
    finally:
        os._exit(127)


def _set_descriptors(command: Command) -> None:
    stdin = os.open(os.devnull, os.O_RDONLY) if command.stdin is None else command.stdin
    # Copied above 2 first, because a source may itself be 0, 1 or 2.
    sources = [os.dup(fd) for fd in (stdin, command.stdout, command.stderr)]
    for target, source in enumerate(sources):
        os.dup2(source, target)
    for name in os.listdir("/proc/self/fd"):
        if int(name) > 2:
            _set_inherited(int(name), int(name) in command.keep)


def _set_inherited(fd: int, wanted: bool) -> None:
    try:
        os.set_inheritable(fd, wanted)
    except OSError:
        pass  # the descriptor of the listing itself, already closed


def _enter(cwd: str) -> None:
    try:
        os.chdir(cwd)
    except OSError as error:
        raise SpawnFailed(f"cannot enter the folder {cwd}: {error.strerror}") from None


def _reset_signals() -> None:
    # The exec resets handlers; ignored signals (SIGPIPE by Python, SIGHUP by nohup) would stay ignored.
    # Under make, 32 and 33 are ignored too: they belong to the C library, and setting them is an error.
    for number in signal.valid_signals().intersection(procfs.ignored_signals()):
        signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())


def _exec(command: Command) -> None:
    try:
        os.execvpe(command.argv[0], command.argv, command.env)
    except OSError as error:
        raise SpawnFailed(f"cannot start {command.argv[0]}: {error.strerror}") from None
