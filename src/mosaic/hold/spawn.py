"""Fork and exec, by hand: importing subprocess would take longer than all the rest of the holder's start."""

import os
import signal
from collections.abc import Callable
from typing import NamedTuple

from mosaic.model import procfs
from mosaic.model.errors import MosaicError


class SpawnFailed(MosaicError):
    """The program could not be started."""


class Command(NamedTuple):
    """A program to start, with the descriptors that become its stdout and stderr."""

    argv: "list[str]"
    env: "dict[str, str]"
    cwd: str
    stdout: int
    stderr: int
    keep: "tuple[int, ...]" = ()  # further descriptors it may see


def spawn(command: Command, prepare: "Callable[[], None]") -> int:
    """The pid of the running program, in a session of its own; SpawnFailed says why there is none."""
    problem, tell = os.pipe()
    try:
        # A signal between fork and exec waits, and then meets the program with its default action, not our handlers.
        with BlockedSignals():
            pid = os.fork()
            if pid == 0:
                _become(command, prepare, tell)
    finally:
        os.close(tell)
        text = _read_all(problem)  # ends when the exec closed the other side
    if text:
        os.waitpid(pid, 0)
        raise SpawnFailed(text.decode(errors="replace"))
    return pid


class BlockedSignals:
    """Signals that come inside wait until the end. (contextlib is not worth its import.)"""

    def __enter__(self) -> None:
        self._mask = signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())

    def __exit__(self, *_: object) -> None:
        signal.pthread_sigmask(signal.SIG_SETMASK, self._mask)


def _read_all(fd: int) -> bytes:
    with os.fdopen(fd, "rb") as file:
        return file.read()


def _become(command: Command, prepare: "Callable[[], None]", tell: int) -> None:
    try:
        os.setsid()
        prepare()
        _take_descriptors(command, tell)
        _go_to(command.cwd)
        _reset_signals()
        _exec(command)
    except BaseException as error:
        os.write(tell, (str(error) or repr(error)).encode(errors="replace")[:4000] or b"unknown")
    finally:
        os._exit(127)


def _take_descriptors(command: Command, tell: int) -> None:
    nothing = os.open(os.devnull, os.O_RDONLY)
    # Copies above 2 first: a source may itself be 0, 1 or 2.
    sources = [os.dup(fd) for fd in (nothing, command.stdout, command.stderr)]
    for target, source in enumerate(sources):
        os.dup2(source, target)
    for name in os.listdir("/proc/self/fd"):
        if int(name) > 2:
            _set_inherited(int(name), int(name) in command.keep)


def _set_inherited(fd: int, wanted: bool) -> None:
    try:
        os.set_inheritable(fd, wanted)
    except OSError:
        pass  # the descriptor of the listing itself, closed by now


def _go_to(cwd: str) -> None:
    try:
        os.chdir(cwd)
    except OSError as error:
        raise SpawnFailed(f"cannot enter the folder {cwd}: {error.strerror}") from None


def _reset_signals() -> None:
    # Handlers end with the exec by themselves; what is ignored (SIGPIPE by Python, SIGHUP by nohup) would stay so.
    # Under make 32 and 33 are ignored too: they are the C library's own, and nobody may set them.
    for number in signal.valid_signals().intersection(procfs.ignored_signals()):
        signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())


def _exec(command: Command) -> None:
    try:
        os.execvpe(command.argv[0], command.argv, command.env)
    except OSError as error:
        raise SpawnFailed(f"cannot start {command.argv[0]}: {error.strerror}") from None
