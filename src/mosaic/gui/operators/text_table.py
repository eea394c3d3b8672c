"""A small table of texts, all rows visible; copied as tab-separated text."""

from typing import TYPE_CHECKING

from PySide6.QtCore import Qt
from PySide6.QtGui import QGuiApplication, QKeyEvent, QKeySequence
from PySide6.QtWidgets import QAbstractItemView, QHeaderView, QSizePolicy, QTableWidget, QTableWidgetItem

if TYPE_CHECKING:
    from mosaic.present.eval_tables import Table

ROW_PX = 28
MOST_ROWS = 14  # then it scrolls


class TextTable(QTableWidget):
    def __init__(self, name: str, title: str) -> None:
        super().__init__()
        self.setObjectName(name)
        self.setAccessibleName(title)
        self.setEditTriggers(QAbstractItemView.EditTrigger.NoEditTriggers)
        self.setSelectionBehavior(QAbstractItemView.SelectionBehavior.SelectRows)
        self.setShowGrid(False)
        self.setVerticalScrollMode(QAbstractItemView.ScrollMode.ScrollPerPixel)
        self.verticalHeader().hide()
        self.verticalHeader().setDefaultSectionSize(ROW_PX)
        self.horizontalHeader().setSectionResizeMode(QHeaderView.ResizeMode.ResizeToContents)
        self.horizontalHeader().setHighlightSections(False)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self._table: Table | None = None

    def show_table(self, table: "Table") -> None:
        """Rows keep their place; only cells that changed are written."""
        if table == self._table:
            return
        is_new = self._table is None or table.headings != self._table.headings
        self._table = table
        self.setRowCount(len(table.rows))
        if is_new:
            self._write_headings(table)
        for row, cells in enumerate(table.rows):
            for column, text in enumerate(cells):
                self._write(row, column, text, column in table.numbers)
        height = self.horizontalHeader().sizeHint().height() + min(len(table.rows), MOST_ROWS) * ROW_PX + 4
        self.setFixedHeight(height)

    def copy(self) -> None:
        if self._table:
            QGuiApplication.clipboard().setText(self._table.tsv())

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.matches(QKeySequence.StandardKey.Copy):
            self.copy()
        else:
            super().keyPressEvent(event)

    def _write_headings(self, table: "Table") -> None:
        self.setColumnCount(len(table.headings))
        for column, text in enumerate(table.headings):
            item = QTableWidgetItem(text)
            item.setTextAlignment(_side(column in table.numbers))
            self.setHorizontalHeaderItem(column, item)

    def _write(self, row: int, column: int, text: str, is_number: bool) -> None:
        item = self.item(row, column)
        if item is None:
            item = QTableWidgetItem()
            item.setTextAlignment(_side(is_number))
            self.setItem(row, column, item)
        if item.text() != text:
            item.setText(text)


def _side(is_number: bool) -> Qt.AlignmentFlag:
    side = Qt.AlignmentFlag.AlignRight if is_number else Qt.AlignmentFlag.AlignLeft
    return side | Qt.AlignmentFlag.AlignVCenter
