"""The result of an evaluation on the terminal: a line per operator, a sentence per comparison, warnings.

OPERATOR  EPISODES  RETURN [95 %]           IQM  SUCCESS  LENGTH  LATENCY
ppo             20  0.922 [0.851, 0.987]  0.946    100 %    11.5   0.4 ms
chance    19 of 20  0.34 [0.256, 0.423]   0.362     40 %   180.2   0.1 ms

ppo beats chance by 0.582 [0.482, 0.678] on 20 seeds, better on 20, worse on 0, probability of improvement 0.99.
"""

import shutil
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from mosaic_sdk.results.wording import sentence

from mosaic.cli.table import clip, render_table
from mosaic.cli.terminal_text import paint
from mosaic.present.eval_columns import Column, Entry, entry_columns, ledger_columns, record_columns
from mosaic.present.text import printable

MOST_SENTENCES = 15
MOST_WARNINGS = 8
LONGEST_NAME = 24
NARROWEST = 80


def render(summary: Mapping[str, Any], width: int | None = None) -> str:
    """The result as text. `summary`: the content of eval_summary.json, version 2."""
    wide = max(NARROWEST, width or shutil.get_terminal_size((NARROWEST, 24)).columns)
    ratings, ledger = summary.get("ratings") or {}, summary.get("ledger") or {}
    sections = [
        "" if ratings else _entries("LANE", summary.get("lanes") or {}, wide),  # a game's returns add up to 0
        _entries("OPERATOR", summary["operators"], wide),
        _table([_clipped(column) for column in record_columns(ratings)]) if ratings else "",
        _sentences(summary["comparisons"], wide),
        _table([_clipped(column) for column in ledger_columns(ledger)]) if ledger else "",
        _warnings(summary["warnings"], wide),
    ]
    return "\n\n".join(section for section in sections if section)


def _entries(kind: str, entries: Mapping[str, Entry], width: int) -> str:
    """The columns that have something to say; the least important ones go first if the terminal is too narrow."""
    shown = [_clipped(column) for column in entry_columns(kind, entries)]
    if not shown:
        return ""
    while _width(shown) > width and min(shown, key=_importance).importance < 8:
        shown.remove(min(shown, key=_importance))
    return _table(shown)


def _clipped(column: Column) -> Column:
    """Names of operators are the only text of users."""
    if not column.is_name:
        return column
    return replace(column, cells=[clip(printable(cell), LONGEST_NAME) for cell in column.cells])


def _width(columns: Sequence[Column]) -> int:
    return sum(max(map(len, [column.heading, *column.cells])) + 2 for column in columns) - 2


def _importance(column: Column) -> int:
    return column.importance


def _table(columns: Sequence[Column]) -> str:
    right = frozenset(index for index, column in enumerate(columns) if column.is_number)
    rows = list(zip(*(column.cells for column in columns), strict=True))
    return render_table([column.heading for column in columns], rows, right)


def _sentences(comparisons: Sequence[Mapping[str, Any]], width: int) -> str:
    told = [_wrap(sentence(pair), width) for pair in comparisons[:MOST_SENTENCES]]
    if left := len(comparisons) - len(told):
        told.append(paint(f"… and {left} more comparisons in eval_summary.json", "dim"))
    return "\n".join(told)


def _warnings(warnings: Sequence[str], width: int) -> str:
    told = [paint(_wrap(f"warning: {printable(text)}", width), "yellow") for text in warnings[:MOST_WARNINGS]]
    if left := len(warnings) - len(told):
        told.append(paint(f"… and {left} more warnings in eval_summary.json", "dim"))
    return "\n".join(told)


def _wrap(text: str, width: int) -> str:
    return "\n".join(textwrap.wrap(text, width, subsequent_indent="  ", break_on_hyphens=False))
