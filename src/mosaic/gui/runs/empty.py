"""What the runs page shows in place of the table when there is nothing to list."""

from typing import TYPE_CHECKING

from PySide6.QtCore import QSize, Qt
from PySide6.QtWidgets import QBoxLayout, QStackedWidget, QWidget

from mosaic.gui.widgets.buttons import button
from mosaic.gui.widgets.empty import EmptyState
from mosaic.present.text import printable

if TYPE_CHECKING:
    from collections.abc import Callable

    from mosaic.gui.context import Context

# What a beginner's first run is: short, and long enough for its curve to rise.
FIRST_RUN = {"algo": "ppo", "env_id": "CartPole-v1", "total_timesteps": 60_000}
FIRST_TOY = {"steps": 500, "rate": 50, "paint": True}
LONGEST = 40  # letters of a filter


class TableOrWords(QStackedWidget):
    def __init__(self, context: "Context", table: QWidget, clear_filter: "Callable[[], None]") -> None:
        super().__init__()
        self.setObjectName("runs.stack")
        self._table = table
        self._none = _no_runs(context)
        self._no_match = EmptyState("No run matches", "", "Clear the filter", clear_filter)
        self._no_match.button.setObjectName("runs.clear")
        self._waiting = EmptyState("Connecting…", "The list of runs comes from the daemon.")
        for page in (table, self._none, self._no_match, self._waiting):
            self.addWidget(page)

    def show_state(self, known: int, listed: int, filter_text: str, connection: str, problem: str) -> None:
        """`known`: how many runs there are. `listed`: how many of them match."""
        if listed:
            self.setCurrentWidget(self._table)
        elif known:
            short = printable(filter_text[:LONGEST]) + ("…" if len(filter_text) > LONGEST else "")
            self._no_match.set_text(f"No run matches {short}")
            self.setCurrentWidget(self._no_match)
        elif connection == "ok":
            self.setCurrentWidget(self._none)
        else:
            self._show_waiting(connection, problem)

    def minimumSizeHint(self) -> QSize:
        return QSize(240, 120)  # words that are not shown must not keep the table wide

    def _show_waiting(self, connection: str, problem: str) -> None:
        if connection == "lost":
            self._waiting.set_text("Reconnecting…", printable(problem))
        else:
            self._waiting.set_text("Connecting…", "The list of runs comes from the daemon.")
        self.setCurrentWidget(self._waiting)


def _no_runs(context: "Context") -> EmptyState:
    made = EmptyState(
        "No runs yet",
        "The curves, frames and log of a run appear here.",
        "Start PPO on CartPole (30 s)",
        lambda: context.go.new_run("train", worker="cleanrl", settings=FIRST_RUN),
    )
    made.button.setObjectName("runs.first")
    toy = button(
        "Try the toy worker (10 s)",
        lambda: context.go.new_run("train", worker="toy", settings=FIRST_TOY),
        "plain",
        name="runs.first_toy",
    )
    layout = made.layout()
    assert isinstance(layout, QBoxLayout)
    layout.insertWidget(layout.count() - 1, toy, 0, Qt.AlignmentFlag.AlignHCenter)
    return made
