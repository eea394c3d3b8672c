"""Reads single keys and the mouse from a terminal, without waiting for Enter."""

import os
import re
import select
import signal
import sys
import termios
import tty
from collections.abc import Callable
from types import FrameType, TracebackType
from typing import Any

from mosaic.cli.safe_output import raw

# One key: a mouse report, an escape sequence or a UTF-8 character.
KEY = re.compile(
    rb"\x1b\[<(?P<button>\d+);\d+;(?P<row>\d+)(?P<press>[Mm])"
    rb"|\x1b[\[O][0-9;]*[A-Za-z~]"
    rb"|[\x00-\x7f]"
    rb"|[\xc0-\xff][\x80-\xbf]+"
    rb"|[\x80-\xff]"
)
# An incomplete key at the end of what was read: the rest comes with the next read.
BEGINNING = re.compile(rb"(?:\x1b(?:[\[O][<0-9;]*)?|[\xc0-\xdf]|[\xe0-\xef][\x80-\xbf]?|[\xf0-\xf7][\x80-\xbf]{0,2})\Z")
REST_WITHIN_S = 0.05  # a terminal sends a sequence in one piece; only a slow connection splits it

NAMES = {
    **{b"\x1b[A": "up", b"\x1b[B": "down", b"\x1b[C": "right", b"\x1b[D": "left", b"\x1b[H": "home", b"\x1b[F": "end"},
    **{b"\x1b[5~": "pgup", b"\x1b[6~": "pgdn", b"\x1b[1~": "home", b"\x1b[4~": "end", b"\x1b[7~": "home"},
    **{b"\x1b[8~": "end", b"\r": "enter", b"\n": "enter", b"\x1b": "escape", b"\x7f": "back", b"\b": "back"},
}
WHEEL = {64: "wheel up", 65: "wheel down"}
MOUSE_ON, MOUSE_OFF = "\x1b[?1000h\x1b[?1006h", "\x1b[?1006l\x1b[?1000l"


class Keyboard:
    """Makes the terminal deliver each key immediately, and restores it afterwards.

    The terminal is also restored after SIGTERM or SIGHUP, and while the view is stopped by Ctrl-Z; `leave` and `enter`
    are called before and after such a stop.
    """

    def __init__(
        self, mouse: bool = False, leave: Callable[[], None] = lambda: None, enter: Callable[[], None] = lambda: None
    ) -> None:
        self._mouse = mouse
        self._leave, self._enter = leave, enter
        self._typed = b""

    def __enter__(self) -> "Keyboard":
        self._fd = sys.stdin.fileno()
        self._before = termios.tcgetattr(self._fd)
        handlers = {signal.SIGTERM: _end, signal.SIGHUP: _end, signal.SIGTSTP: self._pause}
        self._handlers = {number: signal.signal(number, handler) for number, handler in handlers.items()}
        try:
            self._take()
        except BaseException:
            self.__exit__(None, None, None)  # Ctrl-C at this moment must not leave the terminal without echo
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        try:
            self._give_back()
        finally:
            for number, handler in self._handlers.items():
                signal.signal(number, handler)

    def _take(self) -> None:
        tty.setcbreak(self._fd)
        self._send(MOUSE_ON)

    def _give_back(self) -> None:
        try:
            self._send(MOUSE_OFF)
        except OSError:
            pass  # the terminal is gone
        finally:
            termios.tcsetattr(self._fd, termios.TCSADRAIN, self._before)

    def _pause(self, number: int, _: FrameType | None) -> None:
        """Restore the terminal for the shell at Ctrl-Z, and take it again when the shell continues this process."""
        self._leave()
        self._give_back()
        handler = signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)  # this process stops here
        signal.signal(number, handler)
        self._take()
        self._enter()

    def fileno(self) -> int:
        return self._fd

    def keys(self, timeout_s: float) -> list[str]:
        """The names or characters of the keys pressed since the last call; empty after the timeout."""
        if not self._is_ready(timeout_s):
            return []
        if not self._read():
            return ["closed"]
        while BEGINNING.search(self._typed) and self._is_ready(REST_WITHIN_S) and self._read():
            pass
        typed, self._typed = self._typed, b""
        return names_of(typed)

    def _is_ready(self, timeout_s: float) -> bool:
        return bool(select.select([self._fd], [], [], timeout_s)[0])

    def _read(self) -> bool:
        try:
            read = os.read(self._fd, 1024)
        except OSError:
            read = b""  # the terminal was closed
        self._typed += read
        return bool(read)

    def _send(self, codes: str) -> None:
        if self._mouse:
            raw(sys.stdout).write(codes)
            sys.stdout.flush()


def names_of(typed: bytes) -> list[str]:
    names = [_name(found) for found in KEY.finditer(typed)]
    return [name for name in names if name]


def _name(found: "re.Match[bytes]") -> str:
    key = found.group()
    if found["button"]:
        button = int(found["button"])
        return WHEEL.get(button) or (f"click {found['row'].decode()}" if button == 0 and found["press"] == b"M" else "")
    if key in NAMES:
        return NAMES[key]
    if key.startswith(b"\x1b"):
        # Application mode sends O instead of [, and Shift or Ctrl add "1;5" before the last character.
        plain = re.sub(rb"^\x1b[\[O](?:1;\d+)?", b"\x1b[", re.sub(rb";\d+~$", b"~", key))
        return NAMES.get(plain, "")
    return key.decode(errors="ignore")


def _end(number: int, _: FrameType | None) -> Any:
    """Exit with an exception, so that the terminal is restored on the way out."""
    raise SystemExit(128 + number)
