"""The tables of an evaluation's results: operators, the record of a game, and what language models have used."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from mosaic_sdk.results.wording import bracket, number

Entry = Mapping[str, Any]
Cell = Callable[[str, Entry], str]
ALWAYS = 9  # the importance of a column that is never left out


@dataclass(frozen=True)
class Column:
    heading: str
    cells: list[str]
    importance: int = ALWAYS  # a narrow screen leaves out the least important ones
    is_number: bool = True  # aligned to the right
    is_name: bool = False


def entry_columns(kind: str, entries: Mapping[str, Entry]) -> list[Column]:
    """The results of operators or lanes, without columns that have nothing to say. `kind`: the first heading."""
    columns = [
        _column(entries, kind, lambda name, _: name, ALWAYS, is_name=True),
        _column(entries, "EPISODES", lambda _, entry: episodes(entry), 8),
        _column(entries, "RETURN [95 %]", lambda _, entry: _return(entry), ALWAYS, is_number=False),
        _column(entries, "IQM", lambda _, entry: number(entry["iqm"]), 6),
        _column(entries, "SUCCESS", lambda _, entry: percent(entry["success_rate"]), 7),
        _column(entries, "LENGTH", lambda _, entry: number(entry["mean_length"]), 4),
        _column(entries, "STEPS/S", lambda _, entry: number(entry["steps_per_s"]), 2),
        _column(entries, "LATENCY", lambda _, entry: duration(entry["decision_ms"]), 5),
    ]
    return [column for column in columns if entries and (column.importance == ALWAYS or _says_something(column))]


def record_columns(ratings: Mapping[str, Entry]) -> list[Column]:
    """Wins and losses of a game's operators, with their ratings."""
    return [
        _column(ratings, "OPERATOR", lambda name, _: name, is_name=True),
        *(_column(ratings, key.upper(), _value(name)) for key, name in RECORD.items()),
        _column(ratings, "RATING [95 %]", lambda _, entry: rating(entry), is_number=False),
    ]


def ledger_columns(ledger: Mapping[str, Entry]) -> list[Column]:
    """What language models have used, and how often their endpoint failed, which is not bad play."""
    return [
        _column(ledger, "LLM", lambda name, _: name, is_name=True),
        _column(ledger, "DECISIONS", _count("decisions")),
        _column(ledger, "TOKENS IN", _count("tokens_in")),
        _column(ledger, "OUT", _count("tokens_out")),
        _column(ledger, "COST", lambda _, entry: "–" if entry["cost"] is None else f"{entry['cost']:.4g}"),
        _column(ledger, "ILLEGAL", _count("illegal")),
        _column(ledger, "FALLBACKS", _count("fallbacks")),
        _column(ledger, "SERVER ERRORS", lambda _, entry: f"{sum(entry['infrastructure'].values()):,}"),
    ]


RECORD = {"games": "games", "won": "wins", "drawn": "draws", "lost": "losses"}


def episodes(entry: Entry) -> str:
    """`20`, or `19 of 20` if one has failed."""
    return (
        f"{entry['episodes']} of {entry['episodes'] + entry['failed']}" if entry["failed"] else str(entry["episodes"])
    )


def percent(value: float | None) -> str:
    return "" if value is None else f"{value:.0%}".replace("%", " %")


def duration(value_ms: float | None) -> str:
    """`0.4 ms`, `12 ms`, `1.3 s`; empty if it is not known."""
    if value_ms is None:
        return ""
    if value_ms >= 1000:
        return f"{value_ms / 1000:.3g} s"
    return f"{value_ms:.0f} ms" if value_ms >= 10 else f"{value_ms:.1f} ms"


def rating(it: Entry) -> str:
    """`1176 [1063, 1401]`; who won or lost every game has only a bound."""
    bound = {"lower": " or more", "upper": " or less"}.get(it["bound"], "")
    low, high = it["interval"] or (None, None)
    return f"{it['rating']:.0f}{bound}" + (f" [{low:.0f}, {high:.0f}]" if low is not None else "")


def _column(
    entries: Mapping[str, Entry],
    heading: str,
    cell: Cell,
    importance: int = ALWAYS,
    is_number: bool = True,
    is_name: bool = False,
) -> Column:
    cells = [cell(name, entry) for name, entry in entries.items()]
    return Column(heading, cells, importance, is_number and not is_name, is_name)


def _return(entry: Entry) -> str:
    return f"{number(entry['mean_return'])} {bracket(entry['interval'])}".rstrip()


def _value(key: str) -> Cell:
    return lambda _, entry: str(entry[key])


def _count(key: str) -> Cell:
    return lambda _, entry: f"{entry[key]:,.0f}"


def _says_something(column: Column) -> bool:
    return any(cell not in ("", "–") for cell in column.cells)
