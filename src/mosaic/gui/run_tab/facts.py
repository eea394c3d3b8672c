"""The facts of a run, name and value, and the runs that it belongs to."""

from typing import TYPE_CHECKING

from PySide6.QtCore import Qt, QUrl
from PySide6.QtGui import QDesktopServices, QGuiApplication
from PySide6.QtWidgets import QFormLayout, QHBoxLayout, QLabel, QScrollArea, QWidget

from mosaic.gui.widgets.buttons import button
from mosaic.gui.widgets.card import Card
from mosaic.gui.widgets.elided import ElidedLabel
from mosaic.gui.widgets.labels import label
from mosaic.gui.widgets.tip import set_tip
from mosaic.present import run_facts
from mosaic.present.best_checkpoint import Best, read_best
from mosaic.present.durations import format_duration
from mosaic.present.run_cells import name_of
from mosaic.present.scores import step_word
from mosaic.present.text import printable

if TYPE_CHECKING:
    from mosaic.client import Run
    from mosaic.gui.context import Context

MOST_CHILDREN = 6
CHILD = {"resume": "Resumed as", "eval": "Evaluation run"}


class FactsCard(Card):
    """A row appears with its first value."""

    def __init__(self, context: "Context") -> None:
        super().__init__("Facts")
        self._context = context
        self._best: Best | None = None
        self._run: Run | None = None
        self._values: dict[str, QLabel] = {}
        self._links: tuple[tuple[str, str], ...] = ()
        self._form = QFormLayout()
        self._form.setContentsMargins(0, 0, 8, 0)
        self._form.setHorizontalSpacing(16)
        self._form.setVerticalSpacing(6)
        self._form.setLabelAlignment(Qt.AlignmentFlag.AlignLeft)
        self._relatives = QFormLayout()
        self._relatives.setContentsMargins(0, 0, 8, 0)
        self._relatives.setHorizontalSpacing(16)
        self._lay_out()

    def show_run(self, run: "Run") -> None:
        self._run = run
        for name, value in facts_of(run, self._best).items():
            self._set(name, value)
        self.folder.setText(run.run_dir)

    def show_details(self, run: "Run") -> None:
        self.show_run(run)
        self._show_relatives(run)
        if self._context.root is not None and run.run_dir:
            self._context.hub.compute(lambda: read_best(run.run_dir), self._take_best, owner=self)

    def _take_best(self, best: Best | None) -> None:
        self._best = best
        if self._run:
            self.show_run(self._run)

    def _set(self, name: str, value: str) -> None:
        shown = self._values.get(name)
        if shown is None and value:
            shown = self._values[name] = _value_label(name)
            self._form.addRow(label(name.capitalize() if name.islower() else name, "muted"), shown)
        if shown is not None:
            shown.setText(value)
            self._form.setRowVisible(shown, bool(value))

    def _show_relatives(self, run: "Run") -> None:
        links = tuple(self._relatives_of(run))
        if links == self._links:
            return
        self._links = links
        while self._relatives.rowCount():
            self._relatives.removeRow(0)
        for title, run_id in links:
            self._relatives.addRow(label(title, "muted"), self._link(run_id))

    def _link(self, run_id: str) -> QWidget:
        known = self._context.hub.runs.get(run_id)
        made = button(
            self._name_of(run_id).replace("&", "&&"),
            lambda: self._context.go.open_run(run_id),
            "flat",
            f"Open {run_id}",
            name=f"relative.{run_id}",
        )
        made.setEnabled(known is not None)
        holder = QWidget()
        row = QHBoxLayout(holder)
        row.setContentsMargins(0, 0, 0, 0)
        row.addWidget(made)
        row.addStretch(1)
        return holder

    def _relatives_of(self, run: "Run") -> list[tuple[str, str]]:
        """The parent and the newest children: what each is, and its id."""
        found = []
        if run.parent_run_id:
            found.append(((run_facts.how_derived(run.relation) or "made from").capitalize(), run.parent_run_id))
        for child in run.children[-MOST_CHILDREN:]:
            known = self._context.hub.runs.get(child)
            found.append((CHILD.get(known.relation if known else "", "Child"), child))
        return found

    def _name_of(self, run_id: str) -> str:
        run = self._context.hub.runs.get(run_id)
        return name_of(run) if run else "deleted"

    def _lay_out(self) -> None:
        content = QWidget()
        column = QFormLayout(content)
        column.setContentsMargins(0, 0, 0, 0)
        column.setVerticalSpacing(6)
        column.addRow(self._form)
        column.addRow(self._relatives)
        area = QScrollArea(widgetResizable=True)
        area.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        area.setWidget(content)
        self.body.addWidget(area, 1)
        self.folder = ElidedLabel("", "mono", Qt.TextElideMode.ElideMiddle)
        self.folder.setObjectName("fact.folder")
        row = QHBoxLayout()
        row.setSpacing(4)
        row.addWidget(self.folder, 1)
        opener = button("Open", self._open_folder, "flat", "Show the run's files", name="run.open_folder")
        if self._context.root is None:
            opener.setEnabled(False)
            set_tip(opener, f"The folder is on {self._context.host or 'another machine'}")
        row.addWidget(opener)
        row.addWidget(button("Copy", self._copy_folder, "flat", "Copy the path of the folder", name="run.copy_folder"))
        self.body.addLayout(row)

    def _open_folder(self) -> None:
        if self._run and not QDesktopServices.openUrl(QUrl.fromLocalFile(self._run.run_dir)):
            self._context.notices.problem("No program on this machine opens folders.", self._run.run_dir)

    def _copy_folder(self) -> None:
        if self._run:
            QGuiApplication.clipboard().setText(self._run.run_dir)
            self._context.notices.say("Copied the path of the folder.")


def facts_of(run: "Run", best: Best | None = None) -> dict[str, str]:
    """Names and values in the order in which they are read."""
    time_name, took = run_facts.duration(run)
    times = dict.fromkeys(("waiting", "running", "duration"), "") | {time_name: took}
    return {
        "state": printable(run.waiting or run.life or run.telemetry),
        "worker": printable(run.worker_name),
        "algorithm": printable(run.algo),
        "environment": printable(run.env_id),
        "seed": "" if run.seed is None else str(run.seed),
        f"{step_word(run)}s": run_facts.env_steps(run),
        "returns": run_facts.returns(run),
        "evaluation": run_facts.evaluation(run),
        "best checkpoint": run_facts.best(best),
        **times,
        "created": run_facts.clock(run.created_at)[:-4],
        "ended": run_facts.clock(run.updated_at)[:-4] if run.state.is_over else "",
        "GPUs": run_facts.gpus(run),
        "requests": run_facts.requests(run),
        "ran on" if run.state.is_over else "runs on": run_facts.place(run),
        "held by": run.held_by,
        "time limit": format_duration(run.time_limit_s) if run.time_limit_s else "",
        "stored": run_facts.stored(run),
        "rejected": f"{run.summary.rejects:,} lines; the log says why" if run.summary.rejects else "",
        "settings": run_facts.unchecked(run),
        "attempt": str(run.attempt) if run.attempt > 1 else "",
        "tags": printable(" ".join(run.tags)),
        "run id": run.run_id,
    }


def _value_label(name: str) -> QLabel:
    """An id has no place where a line could break."""
    if name != "run id":
        return label("", wrap=True, name=f"fact.{name}")
    made = ElidedLabel("", "mono", Qt.TextElideMode.ElideMiddle)
    made.setObjectName(f"fact.{name}")
    return made
