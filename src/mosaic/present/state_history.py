"""The states that a run has been in, newest first, with durations and reasons."""

import time
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise
from typing import TYPE_CHECKING

from mosaic.present.durations import format_duration
from mosaic.present.state_marks import GLYPH, KIND
from mosaic.present.states import MEANING
from mosaic.present.text import printable

if TYPE_CHECKING:
    from mosaic.client import Run


@dataclass(frozen=True)
class HistoryRow:
    state: str  # `▶ EXECUTING`
    at: str  # the time of day
    lasted: str  # how long it was in this state; empty for the last state of a run that is over
    reason: str


def history_rows(run: "Run", now: float | None = None) -> list[HistoryRow]:
    """Empty before the details of the run are known."""
    moves = run.history
    ends = [after.at for _, after in pairwise(moves)]
    last = [] if run.state.is_over else [time.time() if now is None else now]
    lasted = [format_duration(end - move.at) for move, end in zip(moves, [*ends, *last], strict=False)]
    rows = [
        HistoryRow(
            f"{GLYPH[KIND[move.new]]} {move.new}",
            datetime.fromtimestamp(move.at).strftime("%H:%M:%S"),
            took,
            printable(move.reason.strip().split("\n")[0]) or MEANING[move.new],
        )
        for move, took in zip(moves, [*lasted, ""], strict=False)
    ]
    return rows[::-1]
