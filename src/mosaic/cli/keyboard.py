"""Single keys from a terminal, without waiting for Enter."""

import os
import re
import select
import sys
import termios
import tty
from types import TracebackType

KEY = re.compile(rb"\x1b[\[O][A-Z]|[\x00-\x7f]|[^\x00-\x7f]+")
NAMES = {b"\x1b[A": "up", b"\x1b[B": "down", b"\x1bOA": "up", b"\x1bOB": "down", b"k": "up", b"j": "down"}
NAMES |= {b"\r": "enter", b"\n": "enter", b"\x1b": "escape", b"\x7f": "back"}


class Keyboard:
    """The terminal gives each key at once while this is open, and is as before afterwards."""

    def __enter__(self) -> "Keyboard":
        self._fd = sys.stdin.fileno()
        self._before = termios.tcgetattr(self._fd)
        tty.setcbreak(self._fd)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        termios.tcsetattr(self._fd, termios.TCSADRAIN, self._before)

    def keys(self, timeout_s: float) -> list[str]:
        """Names or letters of the keys typed since the last call; none when none came in time."""
        if not select.select([self._fd], [], [], timeout_s)[0]:
            return []
        return names_of(os.read(self._fd, 1024))


def names_of(typed: bytes) -> list[str]:
    return [NAMES.get(key) or key.decode(errors="ignore") for key in KEY.findall(typed)]
