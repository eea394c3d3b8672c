"""Puts an evaluation together: the environment, who plays, and the seeds."""

from functools import partial
from typing import TYPE_CHECKING

from PySide6.QtCore import QTimer, Signal
from PySide6.QtGui import QShowEvent
from PySide6.QtWidgets import QComboBox, QGridLayout, QHBoxLayout, QLineEdit, QScrollArea, QVBoxLayout, QWidget

from mosaic.client.script_file import parse_script
from mosaic.gui.operators.operator_row import OperatorRow, Trained
from mosaic.gui.operators.submit import submit
from mosaic.gui.widgets.buttons import button
from mosaic.gui.widgets.copy_field import CopyField
from mosaic.gui.widgets.labels import label
from mosaic.gui.widgets.polish import set_property
from mosaic.gui.widgets.problem import Problem
from mosaic.model.errors import MosaicError
from mosaic.present.eval_draft import DEFAULT_SEEDS, EvaluationDraft, OperatorDraft, free_name, place_of
from mosaic.present.text import printable
from mosaic.present.trained_runs import known_envs, trained_runs

if TYPE_CHECKING:
    from mosaic.gui.context import Context

CHECK_MS = 200
ADDED = {"random": "+ Random player", "human": "+ Person", "rl": "+ Trained run", "llm": "+ Language model"}


class Composer(QWidget):
    """Submits only what a script of `mosaic eval` could say; errors stand at their field."""

    submitted = Signal(str)  # the run's id

    def __init__(self, context: "Context") -> None:
        super().__init__()
        self.setObjectName("operators.composer")
        self._context = context
        typed = QLineEdit()
        typed.setPlaceholderText("such as MiniGrid-Empty-5x5-v0")
        self.env = QComboBox(editable=True)
        self.env.setLineEdit(typed)
        self.env.setObjectName("operators.env")
        self.env.setAccessibleName("Environment")
        self.seeds = self._field("operators.seeds", "Seeds", "0-9 or 1,5,9")
        self.max_steps = self._field("operators.max_steps", "Longest episode in steps", "no limit")
        self.name = self._field("operators.name", "Name of the run", "optional")
        self.rows: list[OperatorRow] = []
        self._rows = QVBoxLayout()
        self._rows.setSpacing(8)
        self._problem = Problem()
        self._field_problem = label("", "problem", wrap=True, name="operators.field_problem")
        self._command = CopyField("", "The same on a command line")
        self._by_hand = button("Open and step by hand", partial(self._submit, True), "primary", name="operators.submit")
        self._whole = button("Play all seeds", partial(self._submit, False), name="operators.play_all")
        self._check = QTimer(self, singleShot=True, interval=CHECK_MS)
        self._check.timeout.connect(self.check)
        self._arrange()
        self.fill(EvaluationDraft(operators=(OperatorDraft("random"),)))
        self.env.editTextChanged.connect(lambda _: self._check.start())
        context.hub.runs_changed.connect(self._follow_runs)

    def _field(self, name: str, title: str, example: str) -> QLineEdit:
        made = QLineEdit()
        made.setObjectName(name)
        made.setAccessibleName(title)
        made.setPlaceholderText(example)
        made.textEdited.connect(lambda _: self._check.start())
        return made

    def _arrange(self) -> None:
        inside = QWidget()
        layout = QVBoxLayout(inside)
        layout.setContentsMargins(16, 12, 16, 12)
        layout.setSpacing(8)
        layout.addWidget(label("New evaluation", "title"))
        layout.addWidget(label("Operators play the same environment on the same seeds, side by side.", "muted"))
        layout.addSpacing(8)
        layout.addLayout(self._facts())
        layout.addWidget(self._field_problem)
        self._field_problem.hide()
        layout.addSpacing(8)
        layout.addWidget(label("Who plays", "heading"))
        layout.addLayout(self._rows)
        layout.addLayout(self._adders())
        teams = "Several agents and groups need a script file."
        layout.addWidget(label(teams, "caption"))
        layout.addSpacing(8)
        layout.addWidget(self._problem)
        layout.addLayout(self._ending())
        layout.addSpacing(8)
        layout.addWidget(label("The same on a command line", "caption"))
        layout.addWidget(self._command)
        layout.addStretch(1)
        scroll = QScrollArea(widgetResizable=True)
        scroll.setWidget(inside)
        whole = QVBoxLayout(self)
        whole.setContentsMargins(0, 0, 0, 0)
        whole.addWidget(scroll)

    def _facts(self) -> QGridLayout:
        grid = QGridLayout()
        grid.setHorizontalSpacing(8)
        grid.setVerticalSpacing(4)
        fields = (("Environment", self.env), ("Seeds", self.seeds), ("Steps", self.max_steps), ("Name", self.name))
        for column, (title, field) in enumerate(fields):
            caption = label(title, "caption")
            caption.setBuddy(field)
            grid.addWidget(caption, 0, column)
            grid.addWidget(field, 1, column)
            grid.setColumnStretch(column, 3 if column == 0 else 1)
        return grid

    def _adders(self) -> QHBoxLayout:
        row = QHBoxLayout()
        row.setSpacing(8)
        for kind, text in ADDED.items():
            row.addWidget(button(text, partial(self.add, kind), "flat", name=f"operators.add.{kind}"))
        row.addStretch(1)
        return row

    def _ending(self) -> QHBoxLayout:
        row = QHBoxLayout()
        row.setSpacing(8)
        row.addWidget(self._by_hand)
        row.addWidget(self._whole)
        row.addStretch(1)
        return row

    # ---- content

    @property
    def draft(self) -> EvaluationDraft:
        return EvaluationDraft(
            env=self.env.currentText(),
            operators=tuple(row.draft for row in self.rows),
            seeds=self.seeds.text(),
            max_steps=self.max_steps.text(),
            name=self.name.text(),
        )

    def fill(self, draft: EvaluationDraft) -> None:
        self._offer_runs()
        self.env.setCurrentText(draft.env)
        self.seeds.setText(draft.seeds or DEFAULT_SEEDS)
        self.max_steps.setText(draft.max_steps)
        self.name.setText(draft.name)
        for row in list(self.rows):
            self._drop(row)
        for operator in draft.operators:
            self._add_row(operator)
        self._problem.clear()
        self.check()

    def add(self, kind: str) -> None:
        taken = [row.draft.name for row in self.rows]
        self._add_row(OperatorDraft(free_name(kind, taken), kind))
        self.check()

    def _add_row(self, operator: OperatorDraft) -> None:
        row = OperatorRow(self._context, operator, self._trained())
        row.changed.connect(self._check.start)
        row.removed.connect(lambda: self._remove(row))
        self.rows.append(row)
        self._rows.addWidget(row)

    def _remove(self, row: OperatorRow) -> None:
        self._drop(row)
        self.check()

    def _drop(self, row: OperatorRow) -> None:
        self.rows.remove(row)
        self._rows.removeWidget(row)
        row.hide()
        row.deleteLater()

    def _trained(self) -> list[Trained]:
        return [Trained(run_id, title) for run_id, title in trained_runs(self._context.hub.runs.values())]

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        self._offer_runs()

    def _follow_runs(self, _: object) -> None:
        if self.isVisible():  # there may be ten thousand runs, and they change four times per second
            self._offer_runs()

    def _offer_runs(self) -> None:
        trained = self._trained()
        for row in self.rows:
            row.set_trained(trained)
        envs = known_envs(self._context.hub.runs.values())
        if envs != [self.env.itemText(place) for place in range(self.env.count())]:
            typed = self.env.currentText()
            self.env.blockSignals(True)
            self.env.clear()
            self.env.addItems(envs)
            self.env.setCurrentText(typed)
            self.env.blockSignals(False)

    # ---- checking and submitting

    def check(self) -> str:
        """What is wrong, shown at its field; empty if the evaluation can be submitted."""
        draft = self.draft
        problem = draft.problem() or self._script_problem(draft)
        self._place_problem(problem if draft.env.strip() else "", draft)
        for widget in (self._by_hand, self._whole):
            widget.setEnabled(not problem)
        self._command.set_text(draft.command_line(True, self._context.host))
        return problem

    def _script_problem(self, draft: EvaluationDraft) -> str:
        try:
            parse_script(draft.document(), "manual")
        except MosaicError as error:
            return str(error)
        return ""

    def _place_problem(self, problem: str, draft: EvaluationDraft) -> None:
        place = place_of(problem, [operator.name for operator in draft.operators])
        for row in self.rows:
            row.mark(printable(problem) if place == f"operators.{row.draft.name}" else "")
        fields = {"env": self.env, "seeds": self.seeds, "max_steps": self.max_steps, "name": self.name}
        for key, field in fields.items():
            set_property(field, "wrong", key == place)
        is_elsewhere = bool(problem) and not place.startswith("operators.")
        self._field_problem.setText(printable(problem) if is_elsewhere else "")
        self._field_problem.setVisible(is_elsewhere)

    def _submit(self, is_manual: bool) -> None:
        if self.check():
            return
        self._problem.clear()
        self._by_hand.setEnabled(False)
        self._whole.setEnabled(False)
        document = self.draft.document()
        self._context.hub.ask(
            lambda client: submit(client, document, is_manual), self._submitted, self._refused, owner=self
        )

    def _submitted(self, run_id: str) -> None:
        self.check()
        self.submitted.emit(run_id)

    def _refused(self, error: Exception) -> None:
        self.check()
        message = str(error)
        place = place_of(message, [row.draft.name for row in self.rows])
        self._problem.show_problem(printable(message) if not place else "")
        if place:
            self._place_problem(message, self.draft)
