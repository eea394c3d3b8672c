"""The two lines above the sections of a run: what it is and does, how far it is, and what can be done with it."""

from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QHBoxLayout, QProgressBar, QPushButton, QSizePolicy, QTabBar, QVBoxLayout, QWidget

from mosaic.gui.runs.commands import RunCommands
from mosaic.gui.widgets.buttons import button
from mosaic.gui.widgets.elided import ElidedLabel
from mosaic.gui.widgets.state_badge import StateBadge
from mosaic.gui.widgets.tip import set_tip
from mosaic.model.states import RunState
from mosaic.present.durations import format_duration
from mosaic.present.run_cells import name_of
from mosaic.present.scores import describe_score, env_steps, is_evaluation, is_rate_known, score_cell
from mosaic.present.state_marks import GLYPH, KIND, state_word
from mosaic.present.states import explain
from mosaic.present.text import number

if TYPE_CHECKING:
    from mosaic.client import Run
    from mosaic.gui.context import Context

PROGRESS_PX = 120


class RunHeader(QWidget):
    section_chosen = Signal(int)

    def __init__(self, context: "Context", sections: "list[str]") -> None:
        super().__init__()
        self._run: Run | None = None
        self._commands = RunCommands(context, self)
        self.name = ElidedLabel("", "heading")
        self.name.setObjectName("run.name")
        self.badge = StateBadge(context.theme)
        self.badge.setObjectName("run.state")
        self.explanation = ElidedLabel("", "muted")
        self.explanation.setObjectName("run.explanation")
        self.progress = QProgressBar(textVisible=False)
        self.progress.setRange(0, 1000)
        self.progress.setFixedWidth(PROGRESS_PX)
        self.progress.setAccessibleName("Progress")
        self.numbers = ElidedLabel("", "muted")
        self.numbers.setObjectName("run.numbers")
        self.numbers.setAlignment(Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter)
        self.tabs = QTabBar()
        self.tabs.setObjectName("run.sections")
        self.tabs.setAccessibleName("Sections of the run")
        self.tabs.setDrawBase(False)
        self.tabs.setExpanding(False)
        for title in sections:
            self.tabs.addTab(title)
        self.tabs.currentChanged.connect(self.section_chosen)
        self.buttons = self._make_buttons()
        self._lay_out()

    def show_run(self, run: "Run") -> None:
        self._run = run
        self.name.setText(name_of(run))
        self.badge.show_state(GLYPH[KIND[run.state]], state_word(run), KIND[run.state])
        # The badge has said "running" already.
        self.explanation.setText(explain(run).partition(": ")[2].removeprefix(f"{state_word(run)}, "))
        self._show_progress(run)
        self._show_buttons(run)

    def _show_progress(self, run: "Run") -> None:
        self.progress.setVisible(run.progress is not None)
        if run.progress is not None:
            self.progress.setValue(round(run.progress * 1000))
        self.numbers.setText(" · ".join(progress_parts(run)))
        set_tip(self.numbers, describe_score(run))

    def _make_buttons(self) -> dict[str, QPushButton]:
        titles = {
            "cancel": ("Cancel…", "End the run; what it has stored is kept"),
            "resume": ("Resume…", "Continue from a checkpoint in a new run"),
            "evaluate": ("Evaluate…", "Evaluate a checkpoint of the run"),
            "operators": ("Open in Operators", "See the lanes and the results of this evaluation"),
        }
        return {
            key: button(title, partial(self._carry_out, key), "flat", tip, name=f"run.{key}")
            for key, (title, tip) in titles.items()
        }

    def _show_buttons(self, run: "Run") -> None:
        is_eval = is_evaluation(run)
        applies = {
            "cancel": not run.state.is_over,
            "resume": run.state.is_over and not is_eval,
            "evaluate": not is_eval and run.area == "runs" and run.state is not RunState.INIT,
            "operators": is_eval,
        }
        for key, made in self.buttons.items():
            made.setVisible(applies[key])
        self.buttons["cancel"].setEnabled(not run.cancel_requested)

    def _carry_out(self, key: str) -> None:
        if self._run:
            self._commands.carry_out(key, [self._run])

    def _lay_out(self) -> None:
        first = QHBoxLayout()
        first.setSpacing(8)
        self.name.setSizePolicy(self.name.sizePolicy().Policy.Maximum, self.name.sizePolicy().Policy.Preferred)
        first.addWidget(self.name)
        first.addWidget(self.badge)
        first.addWidget(self.explanation, 1)
        for made in self.buttons.values():
            first.addWidget(made)
        second = QHBoxLayout()
        second.setSpacing(8)
        second.addWidget(self.tabs, 0, Qt.AlignmentFlag.AlignBottom)
        second.addStretch(1)
        second.addWidget(self.progress)
        second.addWidget(self.numbers)
        # In a narrow page the numbers are shortened, never the names of the sections.
        self.numbers.setSizePolicy(QSizePolicy.Policy.Maximum, QSizePolicy.Policy.Preferred)
        self.tabs.setSizePolicy(QSizePolicy.Policy.Minimum, QSizePolicy.Policy.Fixed)
        self.tabs.setUsesScrollButtons(False)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(16, 6, 16, 0)
        layout.setSpacing(2)
        layout.addLayout(first)
        layout.addLayout(second)
        # The sections come first: a key pressed in a new tab must not cancel the run.
        for before, after in pairwise((self.tabs, *self.buttons.values())):
            QWidget.setTabOrder(before, after)


def progress_parts(run: "Run") -> list[str]:
    """`62 %`, `2m13s left`, `4,310 steps/s`, `return 212`: only what is known."""
    parts = []
    if run.progress is not None:
        parts.append(f"{run.progress:.0%}".replace("%", " %"))
    elif env_steps(run):
        parts.append(f"{env_steps(run):,} steps")
    if run.eta_s is not None:
        parts.append(f"{format_duration(run.eta_s)} left")
    elif run.state.is_over:
        parts.append(format_duration(run.duration_s))
    if is_rate_known(run):
        rate = run.summary.steps_per_s
        parts.append(f"{rate:,.0f} steps/s" if rate >= 10 else f"{number(rate)} steps/s")
    if shown := score_cell(run):
        parts.append(f"return {shown}")
    return parts
