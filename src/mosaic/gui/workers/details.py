"""One worker: what it is, what it can do, and what can be done with it."""

from typing import TYPE_CHECKING

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QComboBox, QFormLayout, QHBoxLayout, QScrollArea, QVBoxLayout, QWidget

from mosaic.gui.charts.flow_layout import FlowLayout
from mosaic.gui.widgets.buttons import button
from mosaic.gui.widgets.labels import label
from mosaic.gui.widgets.polish import repolish
from mosaic.gui.widgets.problem import Problem
from mosaic.gui.widgets.state_badge import StateBadge
from mosaic.gui.widgets.tip import set_tip
from mosaic.gui.workers.progress_card import ProgressCard
from mosaic.present.text import printable
from mosaic.present.worker_rows import AVAILABLE, BROKEN, INSTALLED, WorkerRow

if TYPE_CHECKING:
    from mosaic.gui.context import Context
    from mosaic.gui.workers.task import WorkerTask

BADGES = {
    INSTALLED: ("✓", "installed", "done"),
    BROKEN: ("✕", "broken", "failed"),
    AVAILABLE: ("◌", "available", "waiting"),
}
BUSY = {"install": ("▶", "installing", "running"), "test": ("▶", "testing", "running")}
TORCH = ("torch: default", "torch: CPU only", "torch: CUDA")
TORCH_TIP = "Which build of PyTorch to install. CPU only is much smaller; CUDA needs an NVIDIA GPU."
TORCH_WORDS = ("", "cpu", "cuda")
UNUSED = "This copy is not used: the worker has an environment of its own, which takes precedence."


class WorkerDetails(QScrollArea):
    install_asked = Signal(str, str, bool)  # name, build of torch, whether an installed one is rebuilt
    remove_asked = Signal(str)
    test_asked = Signal(str)
    run_asked = Signal(str)

    def __init__(self, context: "Context") -> None:
        super().__init__()
        self.row: WorkerRow | None = None
        self.setWidgetResizable(True)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.name = label("", "title", wrap=True, name="workers.name")
        self.badge = StateBadge(context.theme)
        self.about = label("", "muted", wrap=True)
        self.note = label("", "muted", wrap=True)
        self.problem = Problem()
        self.card = ProgressCard()
        self.run = button("New run", lambda: self._send(self.run_asked), "primary", name="workers.run")
        self.install = button("Install", self._install, "primary", name="workers.install")
        self.test = button(
            "Test", lambda: self._send(self.test_asked), tip="Check it against the contract", name="workers.test"
        )
        self.remove = button("Remove…", lambda: self._send(self.remove_asked), "danger", name="workers.remove")
        self.torch = QComboBox()
        self.torch.setObjectName("workers.torch")
        self.torch.setAccessibleName("Build of torch")
        self.torch.addItems(list(TORCH))
        set_tip(self.torch, TORCH_TIP)
        self._facts = QFormLayout()
        self._lay_out()

    def _lay_out(self) -> None:
        inside = QWidget()
        layout = QVBoxLayout(inside)
        layout.setContentsMargins(24, 16, 24, 16)
        layout.setSpacing(8)
        head = QHBoxLayout()
        head.addWidget(self.name, 1)
        head.addWidget(self.badge, 0, Qt.AlignmentFlag.AlignTop)
        actions = FlowLayout(spacing=8)
        for control in (self.run, self.torch, self.install, self.test, self.remove):
            actions.addWidget(control)
        self._facts.setHorizontalSpacing(24)
        self._facts.setVerticalSpacing(8)
        layout.addLayout(head)
        for widget in (self.about, self.note, self.problem):
            layout.addWidget(widget)
        layout.addSpacing(8)
        layout.addLayout(actions)
        layout.addWidget(self.card)
        layout.addSpacing(8)
        layout.addLayout(self._facts)
        layout.addStretch(1)
        self.setWidget(inside)

    def show_worker(self, row: WorkerRow, task: "WorkerTask | None") -> None:
        if row != self.row:
            self._write_facts(row)
        self.row = row
        self.name.setText(printable(row.name))
        is_busy = task is not None and task.is_running
        self.badge.show_state(*(BUSY[task.words[0]] if task and is_busy else BADGES[row.status]))
        self.about.setText(printable(row.description))
        self.about.setVisible(bool(row.description))
        self.note.setText(UNUSED if row.is_shadowed else "")
        self.note.setVisible(row.is_shadowed)
        broken = f"{printable(row.name)} cannot run: {printable(row.problem)}." if row.problem else ""
        self.problem.show_problem(broken, row.remedy)
        self.card.show_task(task)
        self.show_buttons(is_busy)

    def show_buttons(self, is_busy: bool) -> None:
        row = self.row
        if row is None:
            return
        is_new = row.status == AVAILABLE
        self.run.setVisible(row.can_run)
        self.test.setVisible(row.can_run)
        self.install.setText("Install" if is_new else "Repair" if row.status == BROKEN else "Reinstall")
        self.install.setVisible(is_new or not row.is_own)
        self.install.setProperty("kind", "plain" if row.status == INSTALLED else "primary")
        repolish(self.install)
        self.torch.setVisible(row.has_torch and not row.is_own)
        self.remove.setVisible(not is_new and not row.is_own)
        for widget in (self.install, self.torch, self.test, self.remove):
            widget.setEnabled(not is_busy)

    def _write_facts(self, row: WorkerRow) -> None:
        while self._facts.rowCount():
            self._facts.removeRow(0)
        size = (("Size", row.size),) if row.size else ()
        version = (("Version", row.version),) if row.version else ()
        python = (("Python", row.python),) if row.python else ()
        for name, text in (*version, *python, *size, *row.facts):
            lines = "\n".join(printable(line) for line in text.split("\n"))
            title, value = label(name, "muted"), label(lines, wrap=True)
            for shown in (title, value):
                shown.setAlignment(Qt.AlignmentFlag.AlignTop)
            self._facts.addRow(title, value)

    def _install(self) -> None:
        if self.row:
            torch = TORCH_WORDS[self.torch.currentIndex()] if self.row.has_torch else ""
            self.install_asked.emit(self.row.name, torch, self.row.status != AVAILABLE)

    def _send(self, signal: "object") -> None:
        if self.row:
            signal.emit(self.row.name)  # type: ignore[attr-defined]
