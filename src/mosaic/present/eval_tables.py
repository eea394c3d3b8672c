"""The results of an evaluation as tables and sentences, for a screen that has room for all of them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from mosaic_sdk.results.wording import bracket, number, sentence

from mosaic.present.durations import format_duration
from mosaic.present.eval_columns import Column, entry_columns, ledger_columns, record_columns
from mosaic.present.text import number as short
from mosaic.present.text import printable

if TYPE_CHECKING:
    from mosaic.client.evaluation_state import EvaluationState
    from mosaic.client.lanes import LaneState

MOST_SENTENCES = 40
MOST_WARNINGS = 40
HEADINGS = {"RETURN [95 %]": "Mean return [95 %]", "IQM": "IQM", "STEPS/S": "Steps/s", "LLM": "LLM"}


@dataclass(frozen=True)
class Table:
    title: str
    headings: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    numbers: frozenset[int]  # columns that are aligned to the right

    def tsv(self) -> str:
        """Tab-separated, with the headings, as spreadsheets paste it."""
        lines = [self.headings, *self.rows]
        return "\n".join("\t".join(cell.replace("\t", " ") for cell in line) for line in lines)


@dataclass(frozen=True)
class Results:
    """What an evaluation found."""

    tables: tuple[Table, ...]
    sentences: tuple[str, ...]
    warnings: tuple[str, ...]

    def tsv(self) -> str:
        return "\n\n".join(table.tsv() for table in self.tables)


def results_of(summary: Mapping[str, Any]) -> Results:
    """`summary`: the content of eval_summary.json, version 2."""
    ratings = summary.get("ratings") or {}
    lanes = {} if ratings else summary.get("lanes") or {}  # a game's returns add up to 0
    tables = [
        _table("Lanes", entry_columns("LANE", lanes)),
        _table("Operators", entry_columns("OPERATOR", summary["operators"])),
        _table("Games", record_columns(ratings) if ratings else []),
        _table("Differences on equal seeds", pair_columns(summary["comparisons"])),
        _table("Language models", ledger_columns(summary.get("ledger") or {})),
    ]
    return Results(
        tuple(table for table in tables if table.rows),
        _first([sentence(pair) for pair in summary["comparisons"]], MOST_SENTENCES),
        _first([printable(text) for text in summary["warnings"]], MOST_WARNINGS),
    )


def pair_columns(pairs: Sequence[Mapping[str, Any]]) -> list[Column]:
    """Two operators on the seeds that both have played."""
    shown = [pair for pair in pairs if pair["n"]]
    return [
        Column("OPERATORS", [f"{pair['a']} – {pair['b']}" for pair in shown], is_number=False, is_name=True),
        Column("SEEDS", [f"{pair['n']:,}" for pair in shown]),
        Column("DIFFERENCE [95 %]", [_difference(pair) for pair in shown], is_number=False),
        Column("P(IMPROVEMENT)", [_fraction(pair["probability"]) for pair in shown]),
        Column("BETTER", [str(pair["wins"]) for pair in shown]),
        Column("EQUAL", [str(pair["ties"]) for pair in shown]),
        Column("WORSE", [str(pair["losses"]) for pair in shown]),
        Column("CLEAR", ["yes" if pair["clear"] else "no" for pair in shown], is_number=False),
    ]


def live_table(evaluation: "EvaluationState") -> Table:
    """The lanes while they play: progress, mean so far, and the episode at hand."""
    headings = ("Lane", "Episodes", "Mean return", "Failed", "Seed", "Step", "Return", "Time left")
    rows = tuple(_live_row(lane, evaluation) for lane in evaluation.lanes)
    return Table("Lanes", headings, rows, frozenset(range(1, len(headings))))


def lane_eta_s(lane: "LaneState", evaluation: "EvaluationState") -> float | None:
    """Seconds until the lane's last episode at the present rate; None if unknown."""
    begin, now = evaluation.started_at, evaluation.updated_at
    if begin is None or now is None or not lane.episodes_done or not lane.episodes_total:
        return None
    return (now - begin) / lane.episodes_done * max(0, lane.episodes_total - lane.episodes_done)


def _live_row(lane: "LaneState", evaluation: "EvaluationState") -> tuple[str, ...]:
    eta = lane_eta_s(lane, evaluation)
    return (
        printable(lane.name),
        f"{lane.episodes_done:,} of {lane.episodes_total:,}" if lane.episodes_total else f"{lane.episodes_done:,}",
        short(lane.mean_return),
        f"{lane.failures:,}" if lane.failures else "-",
        "-" if lane.seed is None else str(lane.seed),
        f"{lane.step_index + 1:,}",
        short(lane.episode_return),
        "-" if not eta else format_duration(eta),
    )


def _table(title: str, columns: Sequence[Column]) -> Table:
    rows = tuple(zip(*([printable(cell) for cell in column.cells] for column in columns), strict=True))
    numbers = frozenset(place for place, column in enumerate(columns) if column.is_number)
    return Table(title, tuple(_heading(column.heading) for column in columns), rows, numbers)


def _heading(text: str) -> str:
    return HEADINGS.get(text, text.capitalize())


def _difference(pair: Mapping[str, Any]) -> str:
    sign = "+" if (pair["difference"] or 0) > 0 else ""
    return f"{sign}{number(pair['difference'])} {bracket(pair['interval'])}".rstrip()


def _fraction(value: float | None) -> str:
    return "–" if value is None else f"{value:.2f}"


def _first(texts: Sequence[str], most: int) -> tuple[str, ...]:
    left = len(texts) - most
    return (*map(printable, texts[:most]), *([f"… and {left} more in eval_summary.json"] if left > 0 else []))
