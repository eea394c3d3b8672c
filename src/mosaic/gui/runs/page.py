"""The runs page, the home of the window: the table of all runs above, the selected run below."""

from collections import Counter
from typing import TYPE_CHECKING

from PySide6.QtCore import QPoint, Qt, QTimer
from PySide6.QtGui import QHideEvent, QKeySequence, QResizeEvent, QShortcut, QShowEvent
from PySide6.QtWidgets import QHBoxLayout, QSizePolicy, QSplitter, QVBoxLayout, QWidget

from mosaic.gui.runs.action_bar import ActionBar
from mosaic.gui.runs.columns import ColumnChoice
from mosaic.gui.runs.commands import RunCommands
from mosaic.gui.runs.empty import TableOrWords
from mosaic.gui.runs.filter_field import FilterField
from mosaic.gui.runs.model import RunTableModel
from mosaic.gui.runs.size_meter import SizeMeter
from mosaic.gui.runs.table import KEYS, RunTable
from mosaic.gui.runs.view_menus import ColumnMenu, GroupButton
from mosaic.gui.widgets.labels import label
from mosaic.present.run_cells import COLUMNS, Surroundings
from mosaic.present.run_groups import GROUPINGS
from mosaic.present.run_rows import RunRows
from mosaic.present.scores import count
from mosaic.present.state_marks import KIND

if TYPE_CHECKING:
    from mosaic.gui.context import Context
    from mosaic.gui.hub.connection import Connection, RunsChange
    from mosaic.gui.run_tab.panel import RunPanel
    from mosaic.present.run_filter import RunFilter

SETTLE_MS = 150  # the selection may move on with the arrow keys before the run below is loaded
TICK_MS = 1000
TABLE_SHARE = 0.42
NARROW_PX = 640  # below, the buttons need the room of the counts


class RunsPage(QWidget):
    """`filter_field` may be moved into another bar; it keeps filtering this page."""

    def __init__(self, context: "Context") -> None:
        super().__init__()
        self.setObjectName("runs.page")
        self._context = context
        self._sizes: dict[str, int] = {}
        self._rows = RunRows(context.hub.runs, Surroundings(sizes=self._sizes))
        self._wanted = ""  # a run to select as soon as it is listed
        self.model = RunTableModel(self._rows)
        self._make_parts()
        self._lay_out()
        self._connect()
        self._remember()
        self.model.rearrange()
        self._show_connection(context.hub.connection)

    # Building

    def _make_parts(self) -> None:
        context = self._context
        self._columns = ColumnChoice(context.memory)
        self.table = RunTable(context, self.model, self._columns)
        self.filter_field = FilterField()
        self.panel: RunPanel | None = None  # made for the first run that is selected
        self._commands = RunCommands(context, self)
        self._meter = SizeMeter(context, self._sizes, self)
        elsewhere = context.host or ("" if context.root else "another machine")
        self.bar = ActionBar(self._carry_out, self.table, elsewhere)
        self._group = GroupButton(self.group_by, self)
        self._column_menu = ColumnMenu(self._columns, self.table.arrange_columns, self)
        self._stack = TableOrWords(context, self.table, self.clear_filter)
        self._wrong = label("", "problem", wrap=True, name="runs.filter_problem")
        self._lost = label("", "muted", wrap=True, name="runs.lost")
        self._count = label("", "muted", name="runs.count")
        self._count.setSizePolicy(QSizePolicy.Policy.Minimum, QSizePolicy.Policy.Preferred)
        self._settle = QTimer(self, interval=SETTLE_MS, singleShot=True)
        self._tick = QTimer(self, interval=TICK_MS)
        self._measure = QTimer(self, interval=SETTLE_MS, singleShot=True)
        self._recount = QTimer(self, interval=TICK_MS, singleShot=True)

    def _lay_out(self) -> None:
        self._top = top = QWidget()
        bar = QHBoxLayout()
        bar.setContentsMargins(8, 6, 12, 6)
        bar.setSpacing(0)
        for widget in (self._group.button, self._column_menu.button, self.bar):
            bar.addWidget(widget, 1 if widget is self.bar else 0)
        bar.addWidget(self._count)
        column = QVBoxLayout(top)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(0)
        self._field_row = QHBoxLayout()
        self._field_row.setContentsMargins(12, 8, 12, 0)
        self._field_row.addWidget(self.filter_field)
        column.addLayout(self._field_row)
        for words in (self._wrong, self._lost):
            words.setContentsMargins(14, 4, 12, 0)
            words.hide()
            column.addWidget(words)
        column.addLayout(bar)
        column.addWidget(self._stack, 1)
        self._splitter = QSplitter(Qt.Orientation.Vertical)
        self._splitter.setObjectName("runs.splitter")
        self._splitter.setHandleWidth(4)
        self._splitter.addWidget(top)
        self._splitter.setStretchFactor(0, 1)
        self._splitter.setCollapsible(0, False)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.addWidget(self._splitter)

    def _connect(self) -> None:
        hub = self._context.hub
        hub.runs_changed.connect(self._receive)
        hub.connection_changed.connect(self._show_connection)
        self.filter_field.understood.connect(self._filter)
        self.filter_field.wrong.connect(self._show_wrong)
        self.filter_field.left.connect(self._go_to_table)
        self.table.selected.connect(self._show_selection)
        self.table.opened.connect(lambda: self._carry_out("open"))
        self.table.sort_requested.connect(self.sort_by)
        self.table.looked.connect(self._measure.start)
        self.table.customContextMenuRequested.connect(self._open_menu)
        self.table.horizontalHeader().customContextMenuRequested.connect(self._open_column_menu)
        self._splitter.splitterMoved.connect(lambda *_: self._keep_splitter())
        self._settle.timeout.connect(self._show_run)
        self._measure.timeout.connect(self._measure_visible)
        self._recount.timeout.connect(self._show_counts)
        self._meter.measured.connect(self._show_sizes)
        self._tick.timeout.connect(self._pass_second)
        for keys, slot in (("Ctrl+F", self.focus_search), ("F5", self.refresh)):
            # Not of the whole page: the panel below has searches of its own, and two shortcuts would block each other.
            shortcut = QShortcut(QKeySequence(keys), self._top)
            shortcut.setContext(Qt.ShortcutContext.WidgetWithChildrenShortcut)
            shortcut.activated.connect(slot)

    def _remember(self) -> None:
        memory = self._context.memory
        key = memory.value("runs/sort", "age")
        self._rows.column = COLUMNS[KEYS.index(key if key in KEYS else "age")]
        self._rows.is_descending = memory.value("runs/is_descending", False)
        grouping = memory.value("runs/group", "")
        self._rows.grouping = grouping if grouping in GROUPINGS else ""
        self._group.show_choice(self._rows.grouping)

    # What the user does

    def sort_by(self, key: str) -> None:
        """Sort by a column; again: in the other direction."""
        column = COLUMNS[KEYS.index(key)]
        is_again = self._rows.column is column
        self._rows.is_descending = not self._rows.is_descending if is_again else column.is_high_first
        self._rows.column = column
        self._context.memory.remember("runs/sort", key)
        self._context.memory.remember("runs/is_descending", self._rows.is_descending)
        self.model.headerDataChanged.emit(Qt.Orientation.Horizontal, 0, len(KEYS) - 1)
        self.refresh()

    def group_by(self, key: str) -> None:
        """Divide the list; an empty key: no groups."""
        self._rows.grouping = key
        self._rows.closed.clear()
        self._context.memory.remember("runs/group", key)
        self._group.show_choice(key)
        self.refresh()
        self.table.to_top()

    def refresh(self) -> None:
        """Filter, sort and group again with what is known now."""
        self.model.rearrange()
        self._show_counts()

    def _filter(self, found: "RunFilter") -> None:
        self._rows.filter = found
        self.refresh()
        self.table.to_top()

    def clear_filter(self) -> None:
        self.filter_field.clear()
        self.filter_field.apply()

    def focus_search(self) -> None:
        self.filter_field.setFocus(Qt.FocusReason.ShortcutFocusReason)
        self.filter_field.selectAll()

    def select(self, run_id: str) -> None:
        """Select a run, also one that is listed only in a moment."""
        self._wanted = run_id if run_id not in self._rows.place else ""
        if run_id in self._rows.place:
            self.table.select([run_id], run_id)
            self.table.scrollTo(self.model.index(self._rows.place[run_id], 0))

    def _go_to_table(self) -> None:
        if self.model.rowCount():
            self.table.setFocus(Qt.FocusReason.OtherFocusReason)
            if not self.table.runs():
                self.table.selectRow(0)

    def _carry_out(self, key: str) -> None:
        if key == "copy":
            self.table.copy()
        else:
            self._commands.carry_out(key, self.table.runs())

    def _open_menu(self, at: QPoint) -> None:
        self.bar.menu.popup(self.table.viewport().mapToGlobal(at))

    def _open_column_menu(self, at: QPoint) -> None:
        self._column_menu.popup(self.table.horizontalHeader().mapToGlobal(at))

    # What the hub reports

    def _receive(self, change: "RunsChange") -> None:
        is_first = not self._rows.count
        self._rows.runs = self._context.hub.runs
        self.model.receive(change)
        if is_first:
            self.model.rearrange()  # there was nothing that could move: the remembered order holds from the start
        for run_id in change.deleted:
            self._sizes.pop(run_id, None)
        if self._wanted in self._rows.place:
            self.select(self._wanted)
        if any(run.run_id in self._selected_ids for run in change.runs):
            self.bar.show_actions(self.table.runs())
        if not self._measure.isActive():
            self._measure.start()  # a visible run may be over now
        self._show_state()
        if not self._recount.isActive():
            self._recount.start()

    def _show_connection(self, connection: "Connection") -> None:
        if connection.health:
            gpus = {gpu.uuid: f"{place}: {gpu.name}" for place, gpu in enumerate(connection.health.gpus)}
            self._rows.around.gpus = gpus
        is_lost = connection.state == "lost"
        if self.table.painter.is_stale != is_lost:
            self.table.painter.is_stale = is_lost
            self.table.viewport().update()
        self._lost.setText("Reconnecting… The list shows the last state that is known." if is_lost else "")
        self._lost.setVisible(is_lost and bool(self._context.hub.runs))
        self._show_counts()

    # What is shown around the table

    def _show_wrong(self, sentence: str) -> None:
        self._wrong.setText(sentence)
        self._wrong.setVisible(bool(sentence))

    def _show_counts(self) -> None:
        """Counting looks at every run: after a report of the daemon it is done a moment later, once for several."""
        self._show_state()
        self._count.setText(self._words_of_counts(len(self._rows.runs), self._rows.count))

    def _show_state(self) -> None:
        """Show the table, or words in place of it."""
        known, listed = len(self._rows.runs), self._rows.count
        connection = self._context.hub.connection
        self._stack.show_state(known, listed, self._rows.filter.text, connection.state, connection.problem)
        for widget in (self._group.button, self._column_menu.button, self.bar):
            widget.setVisible(bool(known))
        if self.panel and not listed:
            self.panel.hide()

    def _words_of_counts(self, known: int, listed: int) -> str:
        if self._rows.filter.conditions:
            words = f"{listed:,} of {count(known, 'run')}"
            stale = self._rows.stale()
            return f"{words} · {stale:,} no longer match{'es' if stale == 1 else ''}: F5" if stale else words
        kinds = Counter(KIND[run.state] for run in self._rows.runs.values() if not run.state.is_over)
        live = [f"{kinds[kind]:,} {kind}" for kind in ("running", "waiting") if kinds[kind]]
        return " · ".join(filter(None, (count(known, "run") if known else "", ", ".join(live))))

    def _show_selection(self) -> None:
        runs = self.table.runs()
        self._selected_ids = {run.run_id for run in runs}
        self.bar.show_actions(runs)
        self._settle.start()

    _selected_ids: set[str] = set()  # noqa: RUF012 - replaced, never changed

    def _show_run(self) -> None:
        run = self.table.current_run()
        if run is None:
            if self.panel:
                self.panel.set_run("")
                self.panel.hide()
            return
        panel = self.panel or self._make_panel()
        panel.set_run(run.run_id)
        if panel.isHidden():
            panel.show()
            self._split()
            # The panel may cover the selected row; the table has its new height only in the next turn.
            QTimer.singleShot(0, self, lambda: self.table.scrollTo(self.table.currentIndex()))

    def _make_panel(self) -> "RunPanel":
        """Made only now: the list itself must be up quickly."""
        from mosaic.gui.run_tab.panel import RunPanel

        self.panel = RunPanel(self._context)
        self.panel.hide()
        self._splitter.addWidget(self.panel)
        return self.panel

    def _split(self) -> None:
        share = self._context.memory.value("runs/table_share", TABLE_SHARE)
        height = self._splitter.height()
        self._splitter.setSizes([int(height * share), int(height * (1 - share))])

    def _keep_splitter(self) -> None:
        above, below = self._splitter.sizes()
        if above + below:
            self._context.memory.remember("runs/table_share", above / (above + below))

    def _pass_second(self) -> None:
        self.model.tick()

    def _measure_visible(self) -> None:
        if self.isVisible() and not self.table.isColumnHidden(KEYS.index("size")):
            self._meter.want(self.model.visible())

    def _show_sizes(self) -> None:
        self.model.announce_column("size")

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        if not self.isAncestorOf(self.filter_field):
            self._field_row.setContentsMargins(0, 0, 0, 0)  # the field is in the window's bar
        self._tick.start()
        self._pass_second()
        self._measure.start()

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._count.setVisible(self.width() >= NARROW_PX)

    def hideEvent(self, event: QHideEvent) -> None:
        super().hideEvent(event)
        self._tick.stop()
