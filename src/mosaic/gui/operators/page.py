"""Evaluations by hand and by script: a list on the left, the chosen one or a new one on the right."""

from dataclasses import replace
from typing import TYPE_CHECKING

from PySide6.QtGui import QShowEvent
from PySide6.QtWidgets import QFrame, QHBoxLayout, QStackedWidget, QWidget

from mosaic.catalog.evaluation import EVAL_WORKER
from mosaic.gui.operators.composer import Composer
from mosaic.gui.operators.evaluation_list import EvaluationList
from mosaic.gui.operators.evaluation_view import EvaluationView
from mosaic.gui.operators.script_sheet import ScriptSheet
from mosaic.gui.widgets.empty import EmptyState
from mosaic.model.errors import MosaicError
from mosaic.present.eval_draft import EvaluationDraft, OperatorDraft
from mosaic.present.scores import is_evaluation
from mosaic.present.text import printable
from mosaic.present.trained_runs import last_finished

if TYPE_CHECKING:
    from mosaic.client import Run
    from mosaic.gui.context import Context
    from mosaic.model.rundir import StateRoot

TEACH = "Evaluate a trained run beside a random player"
TEACH_TEXT = (
    "Policies, language models, people and chance play the same environment on the same seeds, side by side. Step them "
    "by hand, play yourself, or compare them on all seeds."
)
MISSING = "The worker 'eval' is not installed"
MISSING_TEXT = "It plays the episodes of evaluations. Installing it takes a few minutes."


class OperatorsPage(QWidget):
    def __init__(self, context: "Context") -> None:
        super().__init__()
        self.setObjectName("operators.page")
        self._context = context
        self.evaluation: EvaluationView | None = None
        self.list = EvaluationList(context)
        self.composer = Composer(context)
        self.script = ScriptSheet(context)
        self.empty = EmptyState(TEACH, TEACH_TEXT, "Set it up", self._begin)
        self.empty.button.setObjectName("operators.begin")
        self.missing = EmptyState(MISSING, MISSING_TEXT, "Go to the worker", self._show_worker)
        self.missing.button.setObjectName("operators.install")
        self._stack = QStackedWidget()
        for page in (self.empty, self.missing, self.composer, self.script):
            self._stack.addWidget(page)
        line = QFrame()
        line.setProperty("kind", "line")
        line.setFixedWidth(1)
        layout = QHBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(0)
        layout.addWidget(self.list)
        layout.addWidget(line)
        layout.addWidget(self._stack, 1)
        self._connect()

    def _connect(self) -> None:
        self.list.chosen.connect(self.show_evaluation)
        self.list.composed.connect(self.compose)
        self.list.scripted.connect(lambda: self._turn_to(self.script))
        self.composer.submitted.connect(self.show_evaluation)
        self.script.submitted.connect(self.show_evaluation)

    @property
    def shown(self) -> QWidget | None:
        return self._stack.currentWidget()

    def show_run(self, run_id: str) -> None:
        """An evaluation is shown; the policy of any other run is put into a new one, beside a random player."""
        run = self._context.hub.runs.get(run_id)
        if run is not None:
            self._show(run)
            return
        problem = self._context.notices.problem
        self._context.hub.ask(
            lambda client: client.get_run(run_id), self._show, lambda error: problem(str(error)), owner=self
        )

    def show_evaluation(self, run_id: str) -> None:
        if self.evaluation is None or self.evaluation.session.run_id != run_id:
            self._close_evaluation()
            self.evaluation = EvaluationView(self._context, run_id)
            self._stack.addWidget(self.evaluation)
        self._turn_to(self.evaluation)
        self.list.select(run_id)

    def compose(self) -> None:
        self._turn_to(self.composer)
        self.composer.env.setFocus()

    def _show(self, run: "Run") -> None:
        if is_evaluation(run):
            self.show_evaluation(run.run_id)
        else:
            self._compose_for(run)

    def _compose_for(self, run: "Run") -> None:
        policy = OperatorDraft("policy", "rl", run=run.run_id)
        self.composer.fill(EvaluationDraft(printable(run.env_id), (policy, OperatorDraft("random"))))
        self._turn_to(self.composer)

    def _begin(self) -> None:
        run = last_finished(self._context.hub.runs.values())
        if run is not None:
            self._compose_for(run)
            return
        players = (OperatorDraft("random"), OperatorDraft("me", "human"))
        self.composer.fill(replace(self.composer.draft, env="MiniGrid-Empty-5x5-v0", operators=players))
        self._turn_to(self.composer)

    def _turn_to(self, page: QWidget) -> None:
        if page is not self.evaluation:
            self.list.select("")
        self._stack.setCurrentWidget(page)

    def _close_evaluation(self) -> None:
        if self.evaluation is not None:
            self._stack.removeWidget(self.evaluation)
            self.evaluation.session.rest()
            self.evaluation.deleteLater()
            self.evaluation = None

    def _show_worker(self) -> None:
        self._context.go.show_workers(EVAL_WORKER)

    # ---- whether evaluations are possible

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        root = self._context.root
        if root is not None and self.shown in (self.empty, self.missing):
            self._context.hub.compute(lambda: _is_installed(root), self._take_installed, owner=self)

    def _take_installed(self, is_installed: bool) -> None:
        if self.shown in (self.empty, self.missing):
            self._stack.setCurrentWidget(self.empty if is_installed else self.missing)


def _is_installed(root: "StateRoot") -> bool:
    from mosaic.catalog.workers import Catalog

    try:
        Catalog(root).find(EVAL_WORKER)
    except MosaicError:
        return False
    return True
