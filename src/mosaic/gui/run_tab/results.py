"""The results of an evaluation run: a row per operator, comparisons in sentences, warnings."""

from typing import TYPE_CHECKING, Any

from mosaic_sdk.results.wording import sentence

from mosaic.gui.run_tab.text_table import ROW_PX, TextTable
from mosaic.gui.widgets.card import Card
from mosaic.gui.widgets.labels import label
from mosaic.gui.widgets.problem import Problem
from mosaic.present.eval_columns import entry_columns
from mosaic.present.eval_results import Played, env_of, read_summary, rows_of, summarize
from mosaic.present.text import printable

if TYPE_CHECKING:
    from mosaic.client import AsyncTrainerClient, Run
    from mosaic.client.events import Event
    from mosaic.gui.context import Context

MOST_LINES = 6
MOST_ROWS = 8


class ResultsCard(Card):
    def __init__(self, context: "Context") -> None:
        super().__init__("Results")
        self._context = context
        self._seen = (0, "")
        self.table = TextTable((), name="run.results")
        self.table.setAccessibleName("Results of the evaluation")
        self.words = label("", wrap=True, name="run.results_words")
        self.problem = Problem()
        self.body.addWidget(self.problem)
        self.body.addWidget(self.table)
        self.body.addWidget(self.words)
        self.words.hide()
        self.table.hide()

    def show_run(self, run: "Run") -> None:
        """Read the episodes if there are new ones."""
        seen = (run.summary.episodes, str(run.state))
        if seen == self._seen:
            return
        self._seen = seen

        async def read(client: "AsyncTrainerClient") -> "list[Event]":
            until = None if run.state.is_over else run.summary.events
            if until == 0:
                return []
            batches = client.event_batches("episode", run.run_id, until_seq=until)
            return [event async for events in batches for event in events]

        self._context.hub.ask(read, lambda events: self._compute(run, events), self._fail, owner=self)

    def _compute(self, run: "Run", events: "list[Event]") -> None:
        is_remote = self._context.root is None

        def compute() -> dict[str, Any]:
            facts = {} if is_remote else read_summary(run)
            return summarize(Played(run, rows_of(events), env_of(run, facts), facts))

        if events:
            self._context.hub.compute(compute, self._show, self._fail, owner=self)

    def _show(self, summary: dict[str, Any]) -> None:
        self.problem.clear()
        columns = entry_columns("OPERATOR", summary["operators"])
        rows = [tuple(map(printable, cells)) for cells in zip(*(column.cells for column in columns), strict=True)]
        numbers = frozenset(index for index, column in enumerate(columns) if column.is_number)
        headings = [_heading(column.heading) for column in columns]
        self.table.rows.set_table(headings, rows, numbers)
        self.table.horizontalHeader().setStretchLastSection(False)
        self.table.resizeColumnsToContents()
        self.table.setFixedHeight((min(len(rows), MOST_ROWS) + 1) * ROW_PX + 12)
        self.table.setVisible(bool(rows))
        told = [sentence(pair) for pair in summary["comparisons"]]
        told += [f"Warning: {printable(text)}" for text in summary["warnings"]]
        left = len(told) - MOST_LINES
        self.words.setText("\n".join([*told[:MOST_LINES], *([f"… and {left} more"] if left > 0 else [])]))
        self.words.setVisible(bool(told))

    def _fail(self, error: Exception) -> None:
        self._seen = (0, "")
        self.problem.show_problem("The results cannot be read.", str(error))


def _heading(title: str) -> str:
    return title if title == "IQM" else title.capitalize()
