"""The runs as a table for Qt. What it shows, and in which rows, is decided in `present`."""

import itertools
import time
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from PySide6.QtCore import QAbstractTableModel, QModelIndex, QPersistentModelIndex, Qt

from mosaic.gui.widgets.tip import plain_tip
from mosaic.present.run_cells import COLUMNS, Column
from mosaic.present.run_rows import Heading, Row, RunRows

if TYPE_CHECKING:
    from mosaic.client import Run
    from mosaic.gui.hub.connection import RunsChange

Index = QModelIndex | QPersistentModelIndex
Role = Qt.ItemDataRole
RUN = Role.UserRole  # the Run of a cell, for the painter
MANY = 16  # rows; more are replaced at once
RIGHT = Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter
LEFT = Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter


class RunTableModel(QAbstractTableModel):
    """1. Only visible rows are announced as changed. 2. Rows keep their places, see RunRows."""

    def __init__(self, rows: RunRows) -> None:
        super().__init__()
        self.rows = rows
        self._first, self._last = 0, -1  # visible rows

    def set_visible(self, first: int, last: int) -> None:
        """Tell which rows can be seen. Others are read when they are scrolled to."""
        self._first, self._last = first, last

    def visible(self) -> "list[Run]":
        return [run for row in range(self._first, self._last + 1) if (run := self.run_at(row))]

    def run_at(self, row: int) -> "Run | None":
        found = self.row_at(row)
        return self.rows.runs.get(found) if isinstance(found, str) else None

    def row_at(self, row: int) -> Row | None:
        return self.rows.rows[row] if 0 <= row < len(self.rows.rows) else None

    # What changes

    def rearrange(self) -> None:
        """Filter, sort and group again."""
        self.beginResetModel()
        self.rows.arrange()
        self.endResetModel()

    def receive(self, change: "RunsChange") -> None:
        """Take over a report of the hub, which has already updated its runs."""
        plan = self.rows.plan(change.runs, change.deleted, change.is_whole)
        self._announce(row for row in plan.changed if self._first <= row <= self._last)
        if not plan.removed and not plan.inserted:
            return
        if self.rows.grouping or len(plan.removed) + len(plan.inserted) > MANY:
            self.beginResetModel()
            self.rows.apply(plan)
            self.endResetModel()
            return
        for place in plan.removed:
            self.beginRemoveRows(QModelIndex(), place, place)
            self.rows.remove(place)
            self.endRemoveRows()
        if plan.inserted:
            self.beginInsertRows(QModelIndex(), 0, len(plan.inserted) - 1)
            self.rows.insert(0, plan.inserted)
            self.endInsertRows()

    def tick(self) -> None:
        """Ages grow every second, even if nothing is reported."""
        self.rows.around.now = time.time()
        if self._first <= self._last:
            self._announce_block(self._first, self._last, _place("age"), _place("age"))

    def announce_column(self, key: str) -> None:
        """A column of the visible rows has changed: sizes were measured."""
        if self._first <= self._last:
            self._announce_block(self._first, self._last, _place(key), _place(key))

    def _announce(self, changed: Iterable[int]) -> None:
        for first, last in _blocks(changed):
            self._announce_block(first, last, 0, len(COLUMNS) - 1)

    def _announce_block(self, top: int, bottom: int, left: int, right: int) -> None:
        bottom = min(bottom, len(self.rows.rows) - 1)
        if top <= bottom:
            self.dataChanged.emit(self.index(top, left), self.index(bottom, right))

    # What Qt asks for

    def rowCount(self, parent: Index = QModelIndex()) -> int:  # noqa: B008 - Qt's signature
        return 0 if parent.isValid() else len(self.rows.rows)

    def columnCount(self, parent: Index = QModelIndex()) -> int:  # noqa: B008
        return 0 if parent.isValid() else len(COLUMNS)

    def flags(self, index: Index) -> Qt.ItemFlag:
        return Qt.ItemFlag.ItemIsEnabled | Qt.ItemFlag.ItemIsSelectable

    def data(self, index: Index, role: int = Role.DisplayRole) -> Any:
        row = self.row_at(index.row())
        if isinstance(row, Heading):
            return str(row) if index.column() == 0 and role in (Role.DisplayRole, Role.AccessibleTextRole) else None
        run = self.rows.runs.get(row) if row else None
        return None if run is None else self._cell(run, COLUMNS[index.column()], role)

    def _cell(self, run: "Run", column: Column, role: int) -> Any:
        if role == Role.DisplayRole:
            return column.text(run, self.rows.around)
        if role == RUN:
            return run
        if role == Role.ToolTipRole:
            return plain_tip(column.tip(run, self.rows.around))
        if role == Role.AccessibleTextRole:
            return column.spoken(run, self.rows.around)
        if role == Role.TextAlignmentRole:
            return RIGHT if column.is_number else LEFT
        return None

    def headerData(self, section: int, orientation: Qt.Orientation, role: int = Role.DisplayRole) -> Any:
        if orientation is Qt.Orientation.Vertical:
            return None
        column = COLUMNS[section]
        if role == Role.DisplayRole:
            return column.title + self._mark(column)
        if role == Role.AccessibleTextRole:
            return column.title
        if role == Role.ToolTipRole:
            return plain_tip(column.about or f"Sort by {column.title.lower()}")
        if role == Role.TextAlignmentRole:
            return RIGHT if column.is_number else LEFT
        return None

    def _mark(self, column: Column) -> str:
        """Qt's own arrow would cover a right-aligned heading."""
        if self.rows.column is not column:
            return ""
        return " ▾" if self.rows.is_descending else " ▴"


def _place(key: str) -> int:
    return next(place for place, column in enumerate(COLUMNS) if column.key == key)


def _blocks(numbers: Iterable[int]) -> Iterator[tuple[int, int]]:
    """Runs of consecutive numbers, given in order, as pairs of first and last."""
    for _, block in itertools.groupby(enumerate(numbers), lambda pair: pair[1] - pair[0]):
        places = [number for _, number in block]
        yield places[0], places[-1]
