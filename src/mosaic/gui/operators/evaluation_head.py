"""The first line of an evaluation: its name, what it plays, how far it is, and what can be done with the run."""

from typing import TYPE_CHECKING

from PySide6.QtWidgets import QHBoxLayout, QProgressBar, QVBoxLayout, QWidget

from mosaic.gui.widgets.buttons import button
from mosaic.gui.widgets.confirm import ask_to_confirm
from mosaic.gui.widgets.elided import ElidedLabel
from mosaic.gui.widgets.state_badge import StateBadge
from mosaic.model.states import RunState
from mosaic.present.durations import format_duration
from mosaic.present.lane_cards import episodes, progress_line
from mosaic.present.states import explain
from mosaic.present.text import printable

if TYPE_CHECKING:
    from mosaic.client import Run
    from mosaic.gui.context import Context
    from mosaic.gui.operators.session import EvaluationSession

BADGES = {
    RunState.TERMINATED: ("✓", "done", "done"),
    RunState.FAULTED: ("✕", "failed", "failed"),
    RunState.CANCELLED: ("⊘", "cancelled", "cancelled"),
    RunState.EXECUTING: ("▶", "running", "running"),
}


class EvaluationHead(QWidget):
    def __init__(self, context: "Context", run_id: str) -> None:
        super().__init__()
        self._context, self._run_id = context, run_id
        self._name = ElidedLabel("", "title")
        self._badge = StateBadge(context.theme)
        self._about = ElidedLabel("", "muted")
        self._about.setObjectName("operators.about")
        self._progress = QProgressBar(textVisible=False, maximum=1000)
        self._progress.setAccessibleName("Episodes that are over")
        self._cancel = button("Cancel run…", self._ask_to_cancel, name="operators.cancel")
        self._open = button("Open run", lambda: context.go.open_run(run_id), name="operators.open_run")
        row = QHBoxLayout()
        row.setSpacing(8)
        row.addWidget(self._name, 1)
        row.addWidget(self._badge)
        row.addWidget(self._cancel)
        row.addWidget(self._open)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(4)
        layout.addLayout(row)
        layout.addWidget(self._about)
        layout.addWidget(self._progress)

    def show_evaluation(self, session: "EvaluationSession") -> None:
        run, evaluation = session.run, session.evaluation
        if run is None:
            self._name.setText(self._run_id)
            return
        self._name.setText(printable(run.name) or run.run_id)
        # A run is READY until its first step; its lanes may play already.
        state = RunState.EXECUTING if evaluation.lanes and not run.state.is_over else run.state
        self._badge.show_state(*BADGES.get(state, ("◌", "starting", "waiting")))
        self._about.setText(_about(session, run))
        done, total = episodes(evaluation)
        self._progress.setValue(round(1000 * done / total) if total else 0)
        self._progress.setVisible(not run.state.is_over and not session.desk.is_manual)
        self._cancel.setVisible(not run.state.is_over)

    def _ask_to_cancel(self) -> None:
        sentence = "Cancel this evaluation? Episodes that are over stay; `mosaic resume` continues it."
        ask_to_confirm(self, sentence, "Cancel run", self._cancel_run)

    def _cancel_run(self) -> None:
        hub, problem = self._context.hub, self._context.notices.problem
        run_id = self._run_id
        hub.ask(lambda client: client.cancel_run(run_id), None, lambda error: problem(str(error)), owner=self)


def _about(session: "EvaluationSession", run: "Run") -> str:
    evaluation = session.evaluation
    parts = [printable(evaluation.env_id), "by hand" if session.desk.is_manual else "by script"]
    if not evaluation.lanes:
        return explain(run)
    parts.append(progress_line(evaluation))
    if run.state.is_over:
        parts = [*parts, *([] if run.state is RunState.TERMINATED else [explain(run)])]
    else:
        eta = evaluation.eta_s
        show_eta = eta and not session.desk.is_manual
        parts = [*parts, *([f"{format_duration(eta)} left"] if show_eta and eta else []), evaluation.state]
    warned = f"{len(evaluation.warnings)} warnings" if len(evaluation.warnings) > 1 else "".join(evaluation.warnings)
    return " · ".join(filter(None, [*parts, warned]))
