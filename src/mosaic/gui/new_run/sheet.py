"""The sheet that starts a run: a worker and a mode on top, a form made from the worker's schema, the command line."""

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QHideEvent, QKeyEvent, QKeySequence, QShortcut
from PySide6.QtWidgets import QAbstractButton, QFrame, QHBoxLayout, QScrollArea, QVBoxLayout, QWidget

from mosaic.catalog.descriptor import Descriptor
from mosaic.gui.new_run.derived_page import DerivedPage, EvaluatePage, ResumePage
from mosaic.gui.new_run.field_row import FieldRow
from mosaic.gui.new_run.footer import WRONG, Footer
from mosaic.gui.new_run.mode_bar import ModeBar
from mosaic.gui.new_run.page import CONFIG, Page
from mosaic.gui.new_run.script_page import ScriptPage
from mosaic.gui.new_run.starter import Starter
from mosaic.gui.new_run.train_page import TrainPage
from mosaic.gui.new_run.worker_box import WorkerBox
from mosaic.gui.widgets.buttons import button
from mosaic.gui.widgets.empty import EmptyState
from mosaic.gui.widgets.labels import label
from mosaic.gui.widgets.problem import Problem
from mosaic.model.errors import BadConfig
from mosaic.present.command_line import command_line
from mosaic.present.run_request import EVALUATE, MODES, RESUMED, SCRIPT, TRAIN
from mosaic.present.worker_choice import WorkerEntry, why_not

if TYPE_CHECKING:
    from mosaic.client import Run
    from mosaic.gui.context import Context

WIDTH = 440


class NewRunSheet(QWidget):
    closed = Signal()

    def __init__(self, context: "Context") -> None:
        super().__init__()
        self._context = context
        self._run_id = ""  # the run to copy, resume or evaluate
        self.setObjectName("new_run")
        self.setMinimumWidth(WIDTH - 40)
        self.title = label("New run", "title")
        self.close_button = button("✕", self.close_sheet, "flat", tip="Close (Esc)", name="new_run.close")
        self.close_button.setAccessibleName("Close")
        self.worker = WorkerBox(context)
        self.worker_row = FieldRow("Worker", self.worker, name="new_run.worker")
        self.modes = ModeBar()
        self.problem = Problem()
        self.problem.setObjectName("new_run.problem")
        self.missing = EmptyState("", "", "Install it…", self._install)
        self.missing.text.setFixedWidth(WIDTH - 64)
        self.missing.button.setObjectName("new_run.install")
        self.pages: dict[str, Page] = {
            TRAIN: TrainPage(context),
            SCRIPT: ScriptPage(context),
            RESUMED: ResumePage(context),
            EVALUATE: EvaluatePage(context),
        }
        self.footer = Footer()
        self.starter = Starter(context)
        self._arrange()
        self._connect()

    @property
    def mode(self) -> str:
        return self.modes.mode

    @property
    def page(self) -> Page:
        return self.pages[self.mode]

    def open(
        self, mode: str = TRAIN, worker: str = "", run_id: str = "", settings: Mapping[str, Any] | None = None
    ) -> None:
        """`mode`: train, script, resume, evaluate. `run_id`: the run to copy, to resume or to evaluate.

        `settings`: those of a training, by their dotted keys; the others are the worker's defaults.
        """
        self._run_id = run_id
        self.modes.choose(mode if mode in MODES else TRAIN)
        self.problem.clear()
        self.starter.begin()
        self.footer.show_idle()
        self._show_page(False)  # what is typed before the worker has answered would be lost
        self.show()
        if run_id:
            ask = self._context.hub.ask
            ask(lambda client: client.get_run(run_id), self._show_run, self._no_run, owner=self)
        else:
            self.worker.load(worker, partial(self._preset, settings) if settings else None)

    def close_sheet(self) -> None:
        self.hide()
        self.closed.emit()

    def hideEvent(self, event: QHideEvent) -> None:
        """However the sheet disappears, what was typed is remembered."""
        self.starter.forget_check()
        self._train.remember()
        super().hideEvent(event)

    def start(self) -> None:
        if self.starter.is_starting or not self.footer.start.isEnabled():
            return
        self.problem.clear()
        self.page.refresh()
        if self.page.problem()[1]:
            self.page.show_first_problem()
            return
        self.footer.show_starting()
        self.starter.start(self.page.request())

    def keyPressEvent(self, event: QKeyEvent) -> None:
        focus = self.focusWidget()
        if event.key() == Qt.Key.Key_Escape:
            self.close_sheet()
        elif event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter):
            # On a button, Enter means that button.
            focus.click() if isinstance(focus, QAbstractButton) and focus.isEnabled() else self.start()
        else:
            super().keyPressEvent(event)

    # Layout

    @property
    def _train(self) -> TrainPage:
        page = self.pages[TRAIN]
        assert isinstance(page, TrainPage)
        return page

    def _arrange(self) -> None:
        head = QHBoxLayout()
        head.addWidget(self.title, 1)
        head.addWidget(self.close_button)
        top = QVBoxLayout()
        top.setContentsMargins(16, 12, 16, 8)
        top.setSpacing(10)
        top.addLayout(head)
        for widget in (self.worker_row, self.modes, self.problem):
            top.addWidget(widget)
        content = QWidget()
        column = QVBoxLayout(content)
        column.setContentsMargins(0, 0, 0, 0)
        column.addWidget(self.missing)
        for page in self.pages.values():
            column.addWidget(page)
        self.area = QScrollArea()
        self.area.setWidgetResizable(True)
        self.area.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.area.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self.area.setWidget(content)
        whole = QVBoxLayout(self)
        whole.setContentsMargins(0, 0, 0, 0)
        whole.setSpacing(0)
        whole.addLayout(top)
        for part, stretch in ((_line(), 0), (self.area, 1), (_line(), 0), (self.footer, 0)):
            whole.addWidget(part, stretch)
        self._show_page(False)

    def _connect(self) -> None:
        self.modes.chosen.connect(self._choose_mode)
        self.worker.described.connect(self._show_worker)
        self.worker.asking.connect(self._show_asking)
        self.worker.failed.connect(self.problem.show_problem)
        for page in self.pages.values():
            page.changed.connect(self._changed)
        self.footer.start.clicked.connect(lambda: self.start())
        self.starter.checked.connect(self.footer.show_checked)
        self.starter.started.connect(self._started)
        self.starter.refused.connect(self._refused)
        shortcut = QShortcut(QKeySequence("Ctrl+Return"), self)
        shortcut.setContext(Qt.ShortcutContext.WidgetWithChildrenShortcut)
        shortcut.activated.connect(self.start)

    # What happens

    def _show_run(self, run: "Run") -> None:
        """The sheet was opened for a run: its worker, and for a copy its settings."""
        worker = ((run.config or {}).get("metadata") or {}).get("worker") or {}
        if worker.get("script") and self.mode == TRAIN:
            self.modes.choose(SCRIPT)
        name, variant = str(worker.get("name") or run.worker_name), str(worker.get("variant") or "")
        wanted = variant if worker.get("script") else f"{name}@{variant}" if variant else name
        self.worker.load(wanted, partial(self._fill, run))

    def _preset(self, settings: Mapping[str, Any]) -> None:
        if self.missing.isHidden():  # a worker that is not installed has no form
            self._train.preset(settings)

    def _no_run(self, error: Exception) -> None:
        self.problem.show_problem(str(error))

    def _fill(self, run: "Run") -> None:
        page = self.page
        if isinstance(page, TrainPage | ScriptPage):
            page.fill(run)

    def _show_asking(self, entry: WorkerEntry) -> None:
        self._show_page(False)
        self.missing.hide()
        self.footer.show_note(f"Asking {entry.name} for its settings…")

    def _show_worker(self, entry: WorkerEntry, descriptor: Descriptor) -> None:
        if not entry.is_installed:
            self._show_missing(entry)
            return
        schema, is_here = descriptor.schema, self._context.root is not None
        reasons = {mode: why_not(mode, schema, entry.name) if is_here else "" for mode in MODES}
        if not is_here:
            reasons[SCRIPT] = "A script must be on the machine of the daemon."
        self.modes.disable(reasons)
        for page in self.pages.values():
            page.show_worker(entry.name, descriptor)
        if reasons[self.mode]:
            self.problem.show_problem(reasons[self.mode])
            self.modes.choose(TRAIN)
        self._choose_mode(self.mode)

    def _show_missing(self, entry: WorkerEntry) -> None:
        self._show_page(False)
        self.missing.set_text(
            f"{entry.name} is not installed", "It comes with MOSAIC and gets an environment of its own."
        )
        self.missing.show()
        self.footer.show_note("")
        self.footer.show_command(f"mosaic worker install {entry.name}")
        self.missing.button.setFocus()

    def _install(self) -> None:
        self._context.go.show_workers(self.worker.text())
        self.close_sheet()

    def _choose_mode(self, mode: str) -> None:
        self.worker_row.title.setText("Environment of" if mode == SCRIPT else "Worker")
        self._show_page(True)
        if isinstance(self.page, DerivedPage):
            self.page.choose_run(self._run_id)
        self.footer.show_idle()
        self._changed()
        self.area.verticalScrollBar().setValue(0)
        self.page.first_control().setFocus()

    def _show_page(self, is_shown: bool) -> None:
        self.missing.hide()
        for mode, page in self.pages.items():
            page.setVisible(is_shown and mode == self.mode)
        self.footer.start.setEnabled(is_shown)

    def _changed(self) -> None:
        request = self.page.request()
        self.footer.show_command(command_line(request, self._context.host) if request.is_complete else "")
        self.problem.clear()
        if sentence := self.page.problem()[1]:
            self.starter.forget_check()
            # What is still to be chosen is no mistake yet.
            self.footer.show_note(WRONG if request.is_complete else sentence, is_problem=request.is_complete)
        else:
            self.footer.show_note("")
            self.starter.check_soon(request)

    def _started(self, run: "Run") -> None:
        self.footer.show_idle()
        self.close_sheet()
        # The numbers of an evaluation are points, not curves: its results are on the overview.
        self._context.go.open_run(run.run_id, "overview" if self.mode == EVALUATE else "curves")

    def _refused(self, error: Exception) -> None:
        self.footer.show_idle()
        sentence = str(error)
        field = error.field if isinstance(error, BadConfig) else ""
        if not (field and self.page.place_refusal(field, sentence)):
            self.problem.show_problem(sentence.removeprefix(CONFIG))


def _line() -> QFrame:
    made = QFrame()
    made.setProperty("kind", "line")
    made.setFixedHeight(1)
    return made
