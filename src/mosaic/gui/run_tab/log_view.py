"""Lines of a log: monospaced, with a narrow margin that names the stream of each line. Bounded, filled in portions."""

from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from PySide6.QtCore import QRect, QSize, Qt, QTimer, Signal
from PySide6.QtGui import QColor, QPainter, QPaintEvent, QResizeEvent, QTextCursor, QTextOption
from PySide6.QtWidgets import QPlainTextEdit, QTextEdit, QWidget

from mosaic.present.log_lines import LogLine

if TYPE_CHECKING:
    from mosaic.gui.theme import Theme

PORTION = 1500  # lines appended per tick: about 10 ms
TICK_MS = 33
MARKS = {"stdout": "out", "stderr": "err"}


class LogView(QPlainTextEdit):
    """1. At most `most` lines are shown. 2. It follows the end until the user scrolls up.

    `shown` has exactly the lines of the document, so that a search need not read the document.
    """

    follow_changed = Signal(bool)

    def __init__(self, theme: "Theme", most: int) -> None:
        super().__init__(readOnly=True)
        self.setProperty("kind", "mono")
        self.setObjectName("log.text")
        self.setAccessibleName("Output of the worker")
        self.setLineWrapMode(QPlainTextEdit.LineWrapMode.NoWrap)
        self.setWordWrapMode(QTextOption.WrapMode.NoWrap)
        self.setTextInteractionFlags(
            Qt.TextInteractionFlag.TextSelectableByMouse | Qt.TextInteractionFlag.TextSelectableByKeyboard
        )
        self.setUndoRedoEnabled(False)
        self.setMaximumBlockCount(most)
        self.shown: deque[LogLine] = deque(maxlen=most)
        self.is_following = True
        self._is_own_move = False
        self._theme = theme
        self._waiting: deque[LogLine] = deque(maxlen=most)
        self._margin = _Margin(self, theme)
        self._timer = QTimer(self, interval=TICK_MS)
        self._timer.timeout.connect(self._append_portion)
        self.updateRequest.connect(self._margin.scroll_with)
        self.verticalScrollBar().valueChanged.connect(self._scrolled)
        theme.changed.connect(self._margin.update)
        self._place_margin()

    @property
    def is_filling(self) -> bool:
        return bool(self._waiting)

    def add(self, lines: Iterable[LogLine]) -> None:
        self._waiting.extend(lines)
        if self._waiting and not self._timer.isActive():
            self._append_portion()
            self._timer.start()

    def set_lines(self, lines: Iterable[LogLine]) -> None:
        """Replace everything."""
        self._waiting.clear()
        self.shown.clear()
        with self._own_move():
            self.clear()
        self.add(lines)

    def pause(self) -> None:
        """Append nothing while nobody looks; what waits is kept."""
        self._timer.stop()

    def resume(self) -> None:
        if self._waiting:
            self._timer.start()

    def follow(self) -> None:
        self._set_following(True)
        self._go_to_end()

    def go_to(self, number: int) -> None:
        """Show and mark the line with this number, counted from the first shown."""
        block = self.document().findBlockByNumber(number)
        if block.isValid():
            self._set_following(False)
            self.setTextCursor(QTextCursor(block))
            self.centerCursor()

    def mark(self, number: int, text: str) -> None:
        """Mark the found text in this line."""
        cursor = QTextCursor(self.document().findBlockByNumber(number))
        place = cursor.block().text().lower().find(text.lower())
        chosen = QTextEdit.ExtraSelection()
        chosen.cursor = cursor
        if place >= 0:
            chosen.cursor.setPosition(cursor.position() + place)
            chosen.cursor.movePosition(QTextCursor.MoveOperation.Right, QTextCursor.MoveMode.KeepAnchor, len(text))
        chosen.format.setBackground(QColor(self._theme.colours.selection))
        chosen.format.setForeground(QColor(self._theme.colours.text))
        self.setExtraSelections([chosen])

    def clear_mark(self) -> None:
        self.setExtraSelections([])

    def resizeEvent(self, event: QResizeEvent) -> None:
        with self._own_move():
            super().resizeEvent(event)
            self._place_margin()
        if self.is_following:
            self._go_to_end()

    def _append_portion(self) -> None:
        portion = [self._waiting.popleft() for _ in range(min(PORTION, len(self._waiting)))]
        if not self._waiting:
            self._timer.stop()
        if not portion:
            return
        bar = self.verticalScrollBar()
        place = bar.value()
        pushed_out = max(0, len(self.shown) + len(portion) - (self.shown.maxlen or 0))
        self.shown.extend(portion)
        with self._own_move():
            self.appendPlainText("\n".join(line.text for line in portion))
            # Lines that were dropped at the top must not move what the user reads.
            bar.setValue(bar.maximum() if self.is_following else max(0, place - pushed_out))

    def _go_to_end(self) -> None:
        bar = self.verticalScrollBar()
        with self._own_move():
            bar.setValue(bar.maximum())

    @contextmanager
    def _own_move(self) -> Iterator[None]:
        """Scrolling in here is not the user's."""
        self._is_own_move = True
        try:
            yield
        finally:
            self._is_own_move = False

    def _scrolled(self, place: int) -> None:
        if not self._is_own_move:
            self._set_following(place >= self.verticalScrollBar().maximum())

    def _set_following(self, is_following: bool) -> None:
        if is_following != self.is_following:
            self.is_following = is_following
            self.follow_changed.emit(is_following)

    def _place_margin(self) -> None:
        width = self._margin.sizeHint().width()
        self.setViewportMargins(width, 0, 0, 0)
        area = self.contentsRect()
        self._margin.setGeometry(QRect(area.left(), area.top(), width, area.height()))


class _Margin(QWidget):
    """Names the stream of each visible line, so that colour is not the only sign."""

    def __init__(self, view: LogView, theme: "Theme") -> None:
        super().__init__(view)
        self._view = view
        self._theme = theme

    def sizeHint(self) -> QSize:
        return QSize(self._view.fontMetrics().horizontalAdvance("err!") + 12, 0)

    def scroll_with(self, area: QRect, moved: int) -> None:
        if moved:
            self.scroll(0, moved)
        else:
            self.update(0, area.y(), self.width(), area.height())

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.fillRect(event.rect(), QColor(self._theme.colours.surface))
        painter.setFont(self._view.font())
        block = self._view.firstVisibleBlock()
        top = round(self._view.blockBoundingGeometry(block).translated(self._view.contentOffset()).top())
        while block.isValid() and top <= event.rect().bottom():
            height = round(self._view.blockBoundingRect(block).height())
            if block.blockNumber() < len(self._view.shown):
                self._draw(painter, self._view.shown[block.blockNumber()], QRect(0, top, self.width() - 6, height))
            block, top = block.next(), top + height

    def _draw(self, painter: QPainter, line: LogLine, area: QRect) -> None:
        colours = self._theme.colours
        is_quiet = line.stream == "stdout" and not line.is_problem
        painter.setPen(QColor(colours.muted if is_quiet else colours.failed if line.is_problem else colours.warning))
        mark = MARKS.get(line.stream, "") + ("!" if line.is_problem else "")
        painter.drawText(area, Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignTop, mark)
