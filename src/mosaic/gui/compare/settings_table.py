"""The settings of the compared runs that differ."""

from collections.abc import Sequence
from typing import Any

from PySide6.QtCore import QAbstractTableModel, QModelIndex, QPersistentModelIndex, Qt
from PySide6.QtGui import QGuiApplication, QKeyEvent, QKeySequence
from PySide6.QtWidgets import QAbstractItemView, QTableView

from mosaic.gui.widgets.tip import plain_tip
from mosaic.present.settings_diff import SettingRow, as_tsv

Index = QModelIndex | QPersistentModelIndex


class SettingsModel(QAbstractTableModel):
    def __init__(self, first: str) -> None:
        super().__init__()
        self.first = first
        self.rows: list[SettingRow] = []
        self.names: list[str] = []

    def show_rows(self, rows: Sequence[SettingRow], names: Sequence[str]) -> None:
        self.beginResetModel()
        self.rows, self.names = list(rows), list(names)
        self.endResetModel()

    def rowCount(self, parent: Index = QModelIndex()) -> int:  # noqa: B008 - Qt's signature
        return 0 if parent.isValid() else len(self.rows)

    def columnCount(self, parent: Index = QModelIndex()) -> int:  # noqa: B008 - Qt's signature
        return 0 if parent.isValid() else len(self.names) + 1

    def headerData(self, section: int, orientation: Qt.Orientation, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        if orientation is not Qt.Orientation.Horizontal:
            return None
        title = self.names[section - 1] if section else self.first
        if role == Qt.ItemDataRole.DisplayRole:
            return title
        if role == Qt.ItemDataRole.ToolTipRole:
            return plain_tip(title)
        if role == Qt.ItemDataRole.TextAlignmentRole:
            return Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter
        return None

    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        row = self.rows[index.row()]
        text = row.values[index.column() - 1] if index.column() else row.key
        if role == Qt.ItemDataRole.DisplayRole:
            return text
        return plain_tip(text) if role == Qt.ItemDataRole.ToolTipRole else None


class SettingsTable(QTableView):
    """Ctrl+C copies the whole table as tab-separated text."""

    def __init__(
        self, first: str = "setting", name: str = "compare.settings", about: str = "Settings of the compared runs"
    ) -> None:
        """`first`: the heading of the first column."""
        super().__init__()
        self.settings = SettingsModel(first)
        self.setModel(self.settings)
        self.setObjectName(name)
        self.setAccessibleName(about)
        self.setShowGrid(False)
        self.setAlternatingRowColors(True)
        self.setWordWrap(False)
        self.setSelectionBehavior(QAbstractItemView.SelectionBehavior.SelectRows)
        self.setHorizontalScrollMode(QAbstractItemView.ScrollMode.ScrollPerPixel)
        self.verticalHeader().hide()
        self.verticalHeader().setDefaultSectionSize(26)
        self.horizontalHeader().setDefaultSectionSize(160)
        self.horizontalHeader().setHighlightSections(False)

    def show_rows(self, rows: Sequence[SettingRow], names: Sequence[str]) -> None:
        self.settings.show_rows(rows, names)
        self.setColumnWidth(0, 220)

    def copy(self) -> None:
        QGuiApplication.clipboard().setText(as_tsv(self.settings.rows, self.settings.names, self.settings.first))

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.matches(QKeySequence.StandardKey.Copy):
            self.copy()
        else:
            super().keyPressEvent(event)
