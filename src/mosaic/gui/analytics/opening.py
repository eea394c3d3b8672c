"""Opens a file, a folder or an address with the program that this desktop uses for it."""

import os
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QUrl
from PySide6.QtGui import QDesktopServices

if TYPE_CHECKING:
    from mosaic.gui.context import Notices


def open_file(path: Path, notices: "Notices") -> None:
    if path.is_symlink() or not os.path.exists(path):
        notices.problem(f"{path.name} is no longer there.", str(path))
    elif not QDesktopServices.openUrl(QUrl.fromLocalFile(str(path))):
        notices.problem(f"No program on this desktop opens {path.name}.", str(path))


def open_address(url: str, notices: "Notices") -> None:
    if not QDesktopServices.openUrl(QUrl(url)):
        notices.problem(f"No browser could be opened. The address is {url}")
