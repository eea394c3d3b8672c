"""What the window remembers: layout and settings, in gui.ini of the state root."""

import os
import stat
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

from PySide6.QtCore import QSettings

LOCK_S = 10.0  # a lock this old belongs to nobody


class Memory:
    """Values by key, such as `runs/columns`. A damaged file is an empty one; a full disk only forgets."""

    def __init__(self, path: Path) -> None:
        _make_private(path)
        _remove_old_lock(path)
        self._settings = QSettings(str(_readable(path)), QSettings.Format.IniFormat)

    def value(self, key: str, default: Any = None) -> Any:
        """The remembered value if it has the type of the default, else the default."""
        if default is None:
            return self._settings.value(key)
        try:
            found = self._settings.value(key, default, type(default))
        except (TypeError, ValueError, SystemError, OverflowError):
            return default
        return found if isinstance(found, type(default)) else default

    def remember(self, key: str, value: Any) -> None:
        self._settings.setValue(key, value)

    def reset(self) -> None:
        self._settings.clear()

    def save(self) -> None:
        """Write to the disk now; Qt does it by itself from time to time."""
        self._settings.sync()


def _make_private(path: Path) -> None:
    """Create the file with mode 0600: Qt keeps the mode of a file that exists."""
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        # Not blocking: a FIFO of this name would wait for a reader forever.
        handle = os.open(path, os.O_CREAT | os.O_WRONLY | os.O_NONBLOCK, 0o600)
    except OSError:
        return  # nothing will be remembered
    with suppress(OSError):
        if stat.S_ISREG(os.fstat(handle).st_mode):  # a link may lead to a device, which belongs to everybody
            os.fchmod(handle, 0o600)
    os.close(handle)


def _remove_old_lock(path: Path) -> None:
    """Qt holds its lock for milliseconds, and waits forever for one that a crash or a full disk has left behind."""
    lock = path.with_name(f"{path.name}.lock")
    with suppress(OSError):
        if time.time() - lock.lstat().st_mtime > LOCK_S or not lock.lstat().st_size:
            lock.unlink()


def _readable(path: Path) -> Path:
    """The file itself; for a FIFO or a device, which Qt would wait for, a path that cannot exist: nothing is kept."""
    try:
        mode = path.stat().st_mode
    except OSError:
        return path
    return path if stat.S_ISREG(mode) or stat.S_ISDIR(mode) else path / "none"
