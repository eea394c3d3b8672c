"""A table of plain text that can be read, selected and copied as tab-separated text."""

from collections.abc import Sequence
from typing import Any

from PySide6.QtCore import QAbstractTableModel, QModelIndex, QPersistentModelIndex, Qt
from PySide6.QtGui import QGuiApplication, QKeyEvent, QKeySequence
from PySide6.QtWidgets import QAbstractItemView, QHeaderView, QTableView

from mosaic.gui.widgets.tip import plain_tip

Index = QModelIndex | QPersistentModelIndex
Row = tuple[str, ...]
ROW_PX = 26
RIGHT = Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter
LEFT = Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter


class TextRows(QAbstractTableModel):
    def __init__(self, headings: Sequence[str], numbers: frozenset[int]) -> None:
        super().__init__()
        self.headings = list(headings)
        self.numbers = numbers  # columns aligned to the right
        self.rows: list[Row] = []
        self.strong: set[int] = set()  # rows in bold

    def set_rows(self, rows: Sequence[Row], strong: set[int] | None = None) -> None:
        """Replace all rows. Equal rows change nothing, so that a selection and the place stay."""
        strong = strong or set()
        if list(rows) == self.rows and strong == self.strong:
            return
        is_same_size = len(rows) == len(self.rows)
        if not is_same_size:
            self.beginResetModel()
        self.rows, self.strong = list(rows), strong
        if not is_same_size:
            self.endResetModel()
        elif rows:
            self.dataChanged.emit(self.index(0, 0), self.index(len(rows) - 1, len(self.headings) - 1))

    def set_table(self, headings: Sequence[str], rows: Sequence[Row], numbers: frozenset[int]) -> None:
        self.beginResetModel()
        self.headings, self.rows, self.numbers = list(headings), list(rows), numbers
        self.endResetModel()

    def push(self, rows: Sequence[Row], most: int) -> None:
        """Put rows on top and drop the oldest beyond `most`."""
        fresh = list(rows)[:most]
        if not fresh:
            return
        self.beginInsertRows(QModelIndex(), 0, len(fresh) - 1)
        self.rows[:0] = fresh
        self.endInsertRows()
        if len(self.rows) > most:
            self.beginRemoveRows(QModelIndex(), most, len(self.rows) - 1)
            del self.rows[most:]
            self.endRemoveRows()

    def rowCount(self, parent: Index = QModelIndex()) -> int:  # noqa: B008 - Qt's own signature
        return 0 if parent.isValid() else len(self.rows)

    def columnCount(self, parent: Index = QModelIndex()) -> int:  # noqa: B008
        return 0 if parent.isValid() else len(self.headings)

    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        text = self.rows[index.row()][index.column()]
        if role == Qt.ItemDataRole.DisplayRole:
            return text
        if role == Qt.ItemDataRole.ToolTipRole:
            return plain_tip(text)
        if role == Qt.ItemDataRole.TextAlignmentRole:
            return RIGHT if index.column() in self.numbers else LEFT
        if role == Qt.ItemDataRole.FontRole and index.row() in self.strong:
            font = QGuiApplication.font()
            font.setBold(True)
            return font
        return None

    def headerData(self, section: int, orientation: Qt.Orientation, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        if orientation == Qt.Orientation.Horizontal and section < len(self.headings):
            if role == Qt.ItemDataRole.DisplayRole:
                return self.headings[section]
            if role == Qt.ItemDataRole.TextAlignmentRole:
                return RIGHT if section in self.numbers else LEFT
        return None

    def as_text(self, rows: Sequence[int]) -> str:
        """Tab-separated, with the headings."""
        lines = [self.headings, *(self.rows[row] for row in rows)]
        return "\n".join("\t".join(cells) for cells in lines)


class TextTable(QTableView):
    """`stretch`: the column that takes the space that is left."""

    def __init__(self, headings: Sequence[str], numbers: Sequence[int] = (), stretch: int = -1, name: str = "") -> None:
        super().__init__()
        self.rows = TextRows(headings, frozenset(numbers))
        self.setModel(self.rows)
        self.setObjectName(name)
        self.setShowGrid(False)
        self.setWordWrap(False)
        self.setSelectionBehavior(QAbstractItemView.SelectionBehavior.SelectRows)
        self.setEditTriggers(QAbstractItemView.EditTrigger.NoEditTriggers)
        self.setVerticalScrollMode(QAbstractItemView.ScrollMode.ScrollPerPixel)
        self.setHorizontalScrollMode(QAbstractItemView.ScrollMode.ScrollPerPixel)
        self.setTabKeyNavigation(False)
        self.verticalHeader().hide()
        self.verticalHeader().setDefaultSectionSize(ROW_PX)
        header = self.horizontalHeader()
        header.setHighlightSections(False)
        header.setStretchLastSection(stretch == -1)
        if stretch >= 0:
            header.setSectionResizeMode(stretch, QHeaderView.ResizeMode.Stretch)

    def copy_rows(self) -> None:
        """Copy the selected rows, or all of them."""
        chosen = sorted({index.row() for index in self.selectionModel().selectedRows()})
        QGuiApplication.clipboard().setText(self.rows.as_text(chosen or range(len(self.rows.rows))))

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.matches(QKeySequence.StandardKey.Copy):
            self.copy_rows()
        else:
            super().keyPressEvent(event)
