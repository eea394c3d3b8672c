"""The environment of a lane: its frame, or its text where there is no frame."""

from typing import TYPE_CHECKING

from PySide6.QtCore import QSize
from PySide6.QtGui import QColor, QTextCharFormat, QTextCursor
from PySide6.QtWidgets import QPlainTextEdit, QStackedWidget

from mosaic.gui.frames.source import FrameSource
from mosaic.gui.frames.view import FrameView
from mosaic.present.lane_view import pieces_of

if TYPE_CHECKING:
    from mosaic_sdk.fastlane import Frame

    from mosaic.gui.context import Context

SMALLEST_PX = 72


class LanePicture(QStackedWidget):
    """Shows text until the first frame comes. `prefer_text` keeps the text."""

    def __init__(self, context: "Context", run_id: str, lane: int) -> None:
        super().__init__()
        self._theme = context.theme
        self._text = ""
        self._has_frame = self._prefers_text = False
        self.words = QPlainTextEdit(readOnly=True)
        self.words.setProperty("kind", "mono")
        self.words.setAccessibleName(f"Environment of lane {lane} as text")
        self.words.setLineWrapMode(QPlainTextEdit.LineWrapMode.WidgetWidth)
        self.frame = FrameView(context)
        self.frame.setMinimumSize(SMALLEST_PX, SMALLEST_PX)
        self.frame.setAccessibleName(f"Frame of lane {lane}")
        self.addWidget(self.words)
        self.addWidget(self.frame)
        self.setMinimumHeight(SMALLEST_PX)
        self._source = FrameSource(context, run_id, self, lane=lane)
        self._source.arrived.connect(self._show_frame)
        context.theme.changed.connect(self._write)

    def sizeHint(self) -> QSize:
        return QSize(160, 120)  # what the card can spare, not the size of the frame

    def minimumSizeHint(self) -> QSize:
        return QSize(96, SMALLEST_PX)

    @property
    def shows_frame(self) -> bool:
        return self.currentWidget() is self.frame

    def show_text(self, view: str) -> None:
        if view != self._text:
            self._text = view
            self._write()

    def prefer_text(self, is_text: bool) -> None:
        self._prefers_text = is_text
        self._choose()

    def _show_frame(self, frame: "Frame") -> None:
        self._has_frame = True
        self.frame.show_frame(frame.pixels)
        self._choose()

    def _choose(self) -> None:
        shows_frame = self._has_frame and not (self._prefers_text and self._text)
        self.setCurrentWidget(self.frame if shows_frame else self.words)

    def _write(self) -> None:
        """The text, with the player's mark. Not by appendHtml: text of a worker is never markup."""
        scroll = self.words.verticalScrollBar().value()
        marked = QTextCharFormat()
        marked.setBackground(QColor(self._theme.colours.accent))
        marked.setForeground(QColor(self._theme.colours.on_accent))
        self.words.clear()
        cursor = QTextCursor(self.words.document())
        for piece in pieces_of(self._text):
            cursor.insertText(piece.text, marked if piece.is_marked else QTextCharFormat())
        self.words.verticalScrollBar().setValue(scroll)
