"""Saves pictures and clips: asks for the file without blocking, writes it in another thread, says where it is."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QFileDialog, QWidget

from mosaic.present.frame_files import file_name, picture_folder

if TYPE_CHECKING:
    from mosaic.gui.context import Context

FOLDER = "frames/folder"


class Saving:
    """`write` gets the chosen path, in another thread; an OSError or MosaicError in it is shown in words."""

    def __init__(self, context: "Context", owner: QWidget, run_id: str) -> None:
        self._context = context
        self._owner = owner
        self._run_id = run_id

    def ask(self, kind: str, extension: str, write: Callable[[Path], str]) -> QFileDialog:
        """Ask where to save. `write` returns the sentence that is shown afterwards."""
        dialog = QFileDialog(self._owner, f"Save {kind}")
        dialog.setObjectName("frames.save")
        dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        dialog.setAcceptMode(QFileDialog.AcceptMode.AcceptSave)
        dialog.setNameFilter(f"{extension[1:].upper()} (*{extension})")
        dialog.setDefaultSuffix(extension[1:])
        folder = picture_folder(str(self._context.memory.value(FOLDER, "")))
        dialog.setDirectory(str(folder))
        dialog.selectFile(self._suggestion(extension))
        dialog.fileSelected.connect(lambda name: self._save(Path(name), write))
        dialog.open()
        return dialog

    def _suggestion(self, extension: str) -> str:
        run = self._context.hub.runs.get(self._run_id)
        return file_name(run.name if run else "", self._run_id, time.strftime("%Y%m%d-%H%M%S"), extension)

    def _save(self, path: Path, write: Callable[[Path], str]) -> None:
        self._context.memory.remember(FOLDER, str(path.parent))
        notices = self._context.notices
        self._context.hub.compute(
            lambda: write(path), notices.say, lambda error: notices.problem(str(error)), owner=self._owner
        )
