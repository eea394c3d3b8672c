"""What the window needs, checked without importing Qt: every gap is one sentence that says what to do."""

import ctypes
import importlib.metadata
import importlib.util
import os
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

from mosaic.model.errors import MosaicError

MODULES = ("PySide6", "pyqtgraph")
# The libraries that Qt's wheels do not bring, and the Debian packages that have them. requirements/gui-debian.txt lists
# the same packages for the Makefile.
LIBRARIES = {
    "libGL.so.1": "libgl1",
    "libEGL.so.1": "libegl1",
    "libxkbcommon.so.0": "libxkbcommon0",
    "libdbus-1.so.3": "libdbus-1-3",
    "libfontconfig.so.1": "libfontconfig1",
    "libfreetype.so.6": "libfreetype6",
    "libglib-2.0.so.0": "libglib2.0-0",
}
X11_LIBRARIES = {  # only for a window on an X display
    "libxcb-cursor.so.0": "libxcb-cursor0",
    "libxcb-icccm.so.4": "libxcb-icccm4",
    "libxcb-image.so.0": "libxcb-image0",
    "libxcb-keysyms.so.1": "libxcb-keysyms1",
    "libxcb-render-util.so.0": "libxcb-render-util0",
    "libxcb-render.so.0": "libxcb-render0",
    "libxcb-shape.so.0": "libxcb-shape0",
    "libxcb-xkb.so.1": "libxcb-xkb1",
    "libxkbcommon-x11.so.0": "libxkbcommon-x11-0",
}
# Qt platforms that draw on no screen.
SCREENLESS = ("offscreen", "minimal", "vnc", "linuxfb", "eglfs")


class NoWindow(MosaicError):
    """The window cannot open here."""


def check(environment: Mapping[str, str] = os.environ, can_load: "Callable[[str], bool] | None" = None) -> None:
    """Raise NoWindow with what is missing; return if the window can open."""
    for problem in (
        missing_extra(),
        unusable_qt(qt_version(), sys.version_info[:2]),
        missing_display(environment),
        missing_libraries(environment, can_load or is_loadable),
    ):
        if problem:
            raise NoWindow(problem)


def missing_extra(is_installed: "Callable[[str], bool] | None" = None, checkout: bool | None = None) -> str:
    found = is_installed or _is_installed
    missing = [name for name in MODULES if not found(name)]
    if not missing:
        return ""
    is_checkout = _is_checkout() if checkout is None else checkout
    how = "In this checkout, open it with: make gui" if is_checkout else "Install it with: pip install 'mosaic-rl[gui]'"
    verb = "is" if len(missing) == 1 else "are"
    return f"The window is an optional part; {' and '.join(missing)} {verb} not installed. {how}"


def unusable_qt(version: str, python: tuple[int, ...]) -> str:
    """PySide6 6.12 miscounts references to None on Python 3.11 and aborts after some thousand calls: docs/adr/0019."""
    if _numbers(version) < (6, 12) or python >= (3, 12):
        return ""
    return (
        f"PySide6 {version} crashes on Python {python[0]}.{python[1]}. "
        "Install an older one with: pip install 'PySide6-Essentials<6.12'"
    )


def missing_display(environment: Mapping[str, str]) -> str:
    if _platform(environment) in SCREENLESS or environment.get("DISPLAY") or environment.get("WAYLAND_DISPLAY"):
        return ""
    return (
        "There is no display: neither DISPLAY nor WAYLAND_DISPLAY is set. Use `mosaic watch` here, or see this "
        "machine's runs from your own with: mosaic --host USER@BOX gui"
    )


def missing_libraries(environment: Mapping[str, str], can_load: "Callable[[str], bool]") -> str:
    packages = [package for library, package in _needed(environment).items() if not can_load(library)]
    if not packages:
        return ""
    noun = "a Debian package that is" if len(packages) == 1 else "Debian packages that are"
    names = " ".join(packages)
    return f"The window needs {noun} not installed: {names}. Install with: apt-get install {names}"


def is_loadable(library: str) -> bool:
    try:
        ctypes.CDLL(library)
    except OSError:
        return False
    return True


def qt_version() -> str:
    """The version of PySide6; empty if it is not from a wheel, as in a distribution's own package."""
    for name in ("PySide6-Essentials", "PySide6"):
        try:
            return importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return ""


def _needed(environment: Mapping[str, str]) -> dict[str, str]:
    platform = _platform(environment)
    is_wayland = platform.startswith("wayland") or (not platform and bool(environment.get("WAYLAND_DISPLAY")))
    return LIBRARIES if is_wayland or platform in SCREENLESS else LIBRARIES | X11_LIBRARIES


def _platform(environment: Mapping[str, str]) -> str:
    """`offscreen` of QT_QPA_PLATFORM=offscreen:size=800x600."""
    return environment.get("QT_QPA_PLATFORM", "").split(":")[0].split(";")[0]


def _is_installed(name: str) -> bool:
    return importlib.util.find_spec(name) is not None


def _is_checkout() -> bool:
    return (Path(__file__).parents[3] / "Makefile").exists()


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split(".")[:2] if part.isdigit())
