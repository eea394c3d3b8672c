"""The list of evaluations: live ones first, then the newest."""

from collections.abc import Iterable
from typing import TYPE_CHECKING

from mosaic.model.states import RunState
from mosaic.present.scores import count, is_evaluation, score_cell
from mosaic.present.text import printable

if TYPE_CHECKING:
    from mosaic.client import Run

MOST = 300
WORDS = {
    RunState.TERMINATED: "✓ done",
    RunState.FAULTED: "✕ failed",
    RunState.CANCELLED: "⊘ cancelled",
    RunState.EXECUTING: "▶ running",
}


def listing(runs: "Iterable[Run]") -> list[tuple[str, str, str]]:
    """Id, title and a line about each evaluation."""
    found = [run for run in runs if is_evaluation(run)]
    found.sort(key=lambda run: (not run.state.is_over, run.created_at), reverse=True)
    return [(run.run_id, printable(run.name) or run.run_id[:13], _about(run)) for run in found[:MOST]]


def _about(run: "Run") -> str:
    score = score_cell(run)
    played = count(run.summary.episodes, "episode") if run.summary.episodes else ""
    parts = (WORDS.get(run.state, "◌ starting"), f"return {score}" if score else "", played)
    return " · ".join(filter(None, parts))
