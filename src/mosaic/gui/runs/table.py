"""The table of runs: it keeps selection and scroll position whatever arrives, and fits its columns to its width."""

from typing import TYPE_CHECKING

from PySide6.QtCore import QItemSelection, QItemSelectionModel, QModelIndex, Qt, Signal
from PySide6.QtGui import QColor, QFont, QGuiApplication, QKeyEvent, QPainter, QPaintEvent, QResizeEvent
from PySide6.QtWidgets import QAbstractItemView, QHeaderView, QTableView

from mosaic.gui.runs.cell_painter import PAD_PX, ROW_PX, CellPainter
from mosaic.gui.runs.columns import ColumnChoice
from mosaic.gui.runs.model import RunTableModel
from mosaic.present.run_cells import COLUMNS
from mosaic.present.run_rows import Heading

if TYPE_CHECKING:
    from mosaic.client import Run
    from mosaic.gui.context import Context

KEYS = [column.key for column in COLUMNS]


class RunTable(QTableView):
    selected = Signal()  # the selection has changed, or the selected runs have
    opened = Signal()  # Enter or a double click on a run
    sort_requested = Signal(str)  # the key of a column
    looked = Signal()  # other rows have become visible

    def __init__(self, context: "Context", model: RunTableModel, columns: ColumnChoice) -> None:
        super().__init__()
        self._context = context
        self._model = model
        self._columns = columns
        self._is_fitting = False
        self._anchor: tuple[str, int] | None = None  # the run at the upper edge, and how much of it is hidden
        self._kept: tuple[list[str], str] = ([], "")  # selected and current run while the rows are replaced
        self.setObjectName("runs.table")
        self.setAccessibleName("Runs")
        self.setModel(model)
        self.painter = CellPainter(context.theme, self)
        self.setItemDelegate(self.painter)
        self._set_up_view()
        self._set_up_headers()
        self._connect()

    def _set_up_view(self) -> None:
        self.setShowGrid(False)
        self.setWordWrap(False)
        self.setTabKeyNavigation(False)
        self.setMouseTracking(False)
        self.setSelectionBehavior(QAbstractItemView.SelectionBehavior.SelectRows)
        self.setSelectionMode(QAbstractItemView.SelectionMode.ExtendedSelection)
        self.setEditTriggers(QAbstractItemView.EditTrigger.NoEditTriggers)
        self.setVerticalScrollMode(QAbstractItemView.ScrollMode.ScrollPerPixel)
        self.setHorizontalScrollMode(QAbstractItemView.ScrollMode.ScrollPerPixel)
        self.setContextMenuPolicy(Qt.ContextMenuPolicy.CustomContextMenu)

    def _set_up_headers(self) -> None:
        rows = self.verticalHeader()
        rows.hide()
        rows.setSectionResizeMode(QHeaderView.ResizeMode.Fixed)
        rows.setDefaultSectionSize(ROW_PX)
        header = self.horizontalHeader()
        header.setObjectName("runs.header")
        header.setSectionsMovable(True)
        header.setSectionsClickable(True)
        header.setHighlightSections(False)
        header.setMinimumSectionSize(24)
        header.setContextMenuPolicy(Qt.ContextMenuPolicy.CustomContextMenu)
        for place, key in enumerate(self._columns.order):
            header.moveSection(header.visualIndex(KEYS.index(key)), place)

    def _connect(self) -> None:
        header = self.horizontalHeader()
        header.sectionClicked.connect(lambda section: self.sort_requested.emit(KEYS[section]))
        header.sectionResized.connect(self._resized)
        header.sectionMoved.connect(self._moved)
        self.doubleClicked.connect(self._activate)
        self.verticalScrollBar().valueChanged.connect(self._look)
        self._context.theme.changed.connect(self.viewport().update)
        for before in (self._model.modelAboutToBeReset, self._model.rowsAboutToBeInserted):
            before.connect(self._keep)
        self._model.rowsAboutToBeRemoved.connect(self._keep)
        self._model.modelReset.connect(self._restore_all)
        self._model.rowsInserted.connect(self._restore_scroll)
        self._model.rowsRemoved.connect(self._restore_scroll)
        self.selectionModel().selectionChanged.connect(lambda *_: self.selected.emit())

    # Selection

    def runs(self) -> "list[Run]":
        """The selected runs, in the order of their rows."""
        rows = sorted(index.row() for index in self.selectionModel().selectedRows())
        return [run for row in rows if (run := self._model.run_at(row))]

    def current_run(self) -> "Run | None":
        """The run that was selected last."""
        chosen = self.runs()
        current = self._model.run_at(self.currentIndex().row())
        return current if current in chosen else (chosen[-1] if chosen else None)

    def select(self, run_ids: list[str], current: str = "") -> None:
        """Select these runs as far as they are listed."""
        selection = QItemSelection()
        for run_id in run_ids:
            if (row := self._model.rows.place.get(run_id)) is not None:
                selection.select(self._model.index(row, 0), self._model.index(row, len(KEYS) - 1))
        place = self._model.rows.place.get(current)
        if place is not None:
            self.selectionModel().setCurrentIndex(
                self._model.index(place, 0), QItemSelectionModel.SelectionFlag.NoUpdate
            )
        self.selectionModel().select(selection, QItemSelectionModel.SelectionFlag.ClearAndSelect)

    def as_text(self) -> str:
        """The selected rows with the visible columns in their order, separated by tabs, below a line of headings."""
        header = self.horizontalHeader()
        shown = sorted((c for c in range(len(KEYS)) if not self.isColumnHidden(c)), key=header.visualIndex)
        lines = [[COLUMNS[place].title for place in shown]]
        around = self._model.rows.around
        lines += [[COLUMNS[place].text(run, around) for place in shown] for run in self.runs()]
        return "\n".join("\t".join(cells) for cells in lines) + "\n"

    def copy(self) -> None:
        QGuiApplication.clipboard().setText(self.as_text())

    # Keeping the place

    def _keep(self, *_: object) -> None:
        top = self.verticalScrollBar().value()
        row = self._model.row_at(top // ROW_PX)
        self._anchor = (row, top % ROW_PX) if top and isinstance(row, str) else None
        current = self._model.run_at(self.currentIndex().row())
        self._kept = ([run.run_id for run in self.runs()], current.run_id if current else "")

    def _restore_all(self) -> None:
        self.select(*self._kept)
        self._restore_scroll()
        self.selected.emit()

    def _restore_scroll(self, *_: object) -> None:
        self.updateGeometries()  # Qt does this later; the scroll bar must have its new range now
        if self._anchor and (place := self._model.rows.place.get(self._anchor[0])) is not None:
            self.verticalScrollBar().setValue(place * ROW_PX + self._anchor[1])
        self._look()

    def to_top(self) -> None:
        self._anchor = None
        self.verticalScrollBar().setValue(0)

    def _look(self) -> None:
        """Tell the model which rows can be seen."""
        top = self.verticalScrollBar().value()
        last = (top + self.viewport().height()) // ROW_PX
        self._model.set_visible(top // ROW_PX, min(last, self._model.rowCount() - 1))
        self.looked.emit()

    # Columns

    def fit_columns(self) -> None:
        """Show the columns that there is room for."""
        # As if there were a scroll bar: columns must not come and go with it.
        shown = self._columns.fit(self.width() - self.verticalScrollBar().sizeHint().width())
        self._is_fitting = True
        for place, key in enumerate(KEYS):
            self.setColumnHidden(place, key not in shown)
            if key in shown:
                self.setColumnWidth(place, shown[key])
        self._is_fitting = False
        self.looked.emit()

    def arrange_columns(self) -> None:
        header = self.horizontalHeader()
        self._is_fitting = True
        for place, key in enumerate(self._columns.order):
            header.moveSection(header.visualIndex(KEYS.index(key)), place)
        self._is_fitting = False
        self.fit_columns()

    def _resized(self, section: int, _: int, width: int) -> None:
        if not self._is_fitting and width:
            self._columns.set_width(KEYS[section], width)

    def _moved(self, *_: object) -> None:
        if not self._is_fitting:
            header = self.horizontalHeader()
            self._columns.set_order([KEYS[header.logicalIndex(place)] for place in range(len(KEYS))])

    # Qt's events

    def _activate(self, index: QModelIndex) -> None:
        row = self._model.row_at(index.row())
        if isinstance(row, Heading):
            self._model.beginResetModel()
            self._model.rows.toggle(row)
            self._model.endResetModel()
            self.selectRow(index.row())  # what is above the heading has not changed
        elif row:
            self.opened.emit()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter) and not event.modifiers():
            self._activate(self.currentIndex())
        else:
            super().keyPressEvent(event)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self.fit_columns()
        self._look()

    def paintEvent(self, event: QPaintEvent) -> None:
        super().paintEvent(event)
        painter = QPainter(self.viewport())
        first = self.verticalScrollBar().value() // ROW_PX
        last = min(self._model.rowCount() - 1, first + self.viewport().height() // ROW_PX + 1)
        for row in range(first, last + 1):
            self._paint_lines(painter, row)

    def _paint_lines(self, painter: QPainter, row: int) -> None:
        """The hairline below a row, the mark of the current row, and the heading of a group over all columns."""
        colours = self._context.theme.colours
        top = self.rowViewportPosition(row)
        width = self.viewport().width()
        found = self._model.row_at(row)
        if isinstance(found, Heading):
            is_chosen = self.selectionModel().isRowSelected(row)
            painter.fillRect(0, top, width, ROW_PX, QColor(colours.selection if is_chosen else colours.surface))
            painter.setFont(_bold(painter.font()))
            painter.setPen(QColor(colours.text))
            text = f"{'▾' if found.is_open else '▸'}  {found}"
            painter.drawText(PAD_PX, top, width - 2 * PAD_PX, ROW_PX, Qt.AlignmentFlag.AlignVCenter, text)
        painter.fillRect(0, top + ROW_PX - 1, width, 1, QColor(colours.line))
        if row == self.currentIndex().row() and self.hasFocus():
            painter.fillRect(0, top, 2, ROW_PX - 1, QColor(colours.accent))


def _bold(font: QFont) -> QFont:
    made = QFont(font)
    made.setWeight(QFont.Weight.DemiBold)
    return made
