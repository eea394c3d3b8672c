"""Videos or reports of a run: name, size, and a button to open each; an animation plays in place."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QSize, Qt
from PySide6.QtGui import QHideEvent, QMovie, QShowEvent
from PySide6.QtWidgets import QGridLayout, QLabel

from mosaic.gui.analytics.opening import open_file
from mosaic.gui.widgets.buttons import button
from mosaic.gui.widgets.card import Card
from mosaic.gui.widgets.elided import ElidedLabel
from mosaic.gui.widgets.labels import label
from mosaic.present.text import printable, size

if TYPE_CHECKING:
    from mosaic.gui.context import Context
    from mosaic.present.analytics import ResultFile

SHOWN = 20  # the newest; the folder has the others
PLAYER_PX = 240


class FileList(Card):
    def __init__(self, context: "Context", title: str, name: str) -> None:
        super().__init__(title)
        self.setObjectName(name)
        self._context = context
        self._files: tuple[ResultFile, ...] = ()
        self._rows = QGridLayout()
        self._rows.setHorizontalSpacing(12)
        self._rows.setColumnStretch(0, 1)
        self.player = Player()
        self.more = label("", "muted")
        self.body.addLayout(self._rows)
        self.body.addWidget(self.player)
        self.body.addWidget(self.more)

    def show_files(self, files: "Sequence[ResultFile]") -> None:
        """The newest first."""
        newest = tuple(reversed(files))
        self.setVisible(bool(newest))
        if newest == self._files:
            return
        self._files = newest
        self._clear()
        for row, file in enumerate(newest[:SHOWN]):
            self._add(row, file)
        hidden = len(newest) - SHOWN
        self.more.setText(f"{hidden:,} older ones are in the run's folder." if hidden > 0 else "")
        self.more.setVisible(hidden > 0)

    def _add(self, row: int, file: "ResultFile") -> None:
        name = printable(file.name)
        self._rows.addWidget(ElidedLabel(name), row, 0)
        self._rows.addWidget(label(size(file.bytes), "number"), row, 1)
        if file.is_animation:
            play = button("Play", partial(self.player.play, file.path), "flat", name=f"{self.objectName()}.play.{row}")
            play.setAccessibleName(f"Play {name}")
            self._rows.addWidget(play, row, 2)
        opened = button("Open", partial(open_file, file.path, self._context.notices), "plain")
        opened.setObjectName(f"{self.objectName()}.open.{row}")
        opened.setAccessibleName(f"Open {name}")
        self._rows.addWidget(opened, row, 3)

    def _clear(self) -> None:
        self.player.stop()
        while item := self._rows.takeAt(0):
            widget = item.widget()
            if widget:
                widget.deleteLater()


class Player(QLabel):
    """Plays one animation, and only while it is on the screen."""

    def __init__(self) -> None:
        super().__init__()
        self.setObjectName("analytics.player")
        self.setAccessibleName("Animation")
        self.setAlignment(Qt.AlignmentFlag.AlignCenter)
        self.hide()
        self._movie: QMovie | None = None
        self._path: Path | None = None

    def play(self, path: Path) -> None:
        """Play it; a second call for the same file stops it."""
        if path == self._path:
            self.stop()
            return
        self.stop()
        movie = QMovie(str(path), parent=self)
        if not movie.isValid() or not movie.jumpToFrame(0):
            self.setText("This file is not an animation that can be played here.")
            self.show()
            return
        movie.setScaledSize(movie.currentPixmap().size().scaled(_ROOM, Qt.AspectRatioMode.KeepAspectRatio))
        self._path, self._movie = path, movie
        self.setMovie(movie)
        self.show()
        movie.start()

    def stop(self) -> None:
        if self._movie:
            self._movie.stop()
            self._movie.deleteLater()
        self._movie = self._path = None
        self.clear()
        self.hide()

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        if self._movie:
            self._movie.setPaused(False)

    def hideEvent(self, event: QHideEvent) -> None:
        super().hideEvent(event)
        if self._movie:
            self._movie.setPaused(True)


_ROOM = QSize(2 * PLAYER_PX, PLAYER_PX)
