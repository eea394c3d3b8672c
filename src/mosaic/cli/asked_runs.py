"""Columns that the user chose for `mosaic runs`: as a table, as CSV, as JSON."""

import argparse
import csv
import io
import json
import sys
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from mosaic.cli.table import clip, render_table
from mosaic.cli.terminal_text import STATE_STYLE, paint
from mosaic.model.run_fields import field_of
from mosaic.model.states import RunState
from mosaic.model.where_values import is_number, plain_text
from mosaic.present.durations import format_duration
from mosaic.present.text import number, printable

if TYPE_CHECKING:
    from mosaic.client import Run

WIDEST = 40
CSV_COLUMNS = ("name", "worker", "algo", "env", "seed", "state", "return", "steps", "episodes", "duration", "tags")


def parse_columns(text: str) -> tuple[str, ...]:
    """Names with commas between them; a name with a comma is written in double quotes."""
    names = tuple(name.strip() for name in next(csv.reader([text], skipinitialspace=True), []))
    if not all(names) or not names:
        raise argparse.ArgumentTypeError(f"'{text}' is not a list of names, such as learning_rate,seed,return")
    return tuple(dict.fromkeys(names))


def columns_table(runs: "Sequence[Run]", names: Sequence[str], run_ids: Iterable[str]) -> str:
    rows = [
        (run_id, *(_cell(name, run.chosen.get(name)) for name in names))
        for run, run_id in zip(runs, run_ids, strict=True)
    ]
    right = frozenset(n for n, name in enumerate(names, 1) if all(_is_figure(run.chosen.get(name)) for run in runs))
    return render_table(("RUN", *(printable(name).upper() for name in names)), rows, right)


def columns_json(runs: "Sequence[Run]", names: Sequence[str]) -> str:
    return json.dumps(
        [{"run_id": run.run_id, **{name: run.chosen.get(name) for name in names}} for run in runs], indent=1
    )


def columns_csv(runs: "Sequence[Run]", names: Sequence[str]) -> str:
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(("run_id", *names))
    for run in runs:
        writer.writerow((run.run_id, *(_plain(run.chosen.get(name)) for name in names)))
    text = file.getvalue()
    # Exact in a file or a pipe; on a terminal a text must not move the cursor.
    return "\n".join(map(printable, text.split("\n"))) if sys.stdout.isatty() else text


def tell_left_out(total: int, shown: int) -> None:
    """A program that reads the output must not take the newest runs for all of them."""
    if total > shown:
        print(f"mosaic: {shown:,} of {total:,} runs. Add --all for the others.", file=sys.stderr)


def _plain(value: Any) -> Any:
    """Numbers as they are, a missing value as an empty cell, tags with blanks between them."""
    if isinstance(value, list) and all(isinstance(item, str) for item in value):
        return " ".join(value)
    return "" if value is None else value if is_number(value) else plain_text(value)


def _is_figure(value: Any) -> bool:
    return value is None or is_number(value)


def _cell(name: str, value: Any) -> str:
    if value is None:
        return "-"
    field = field_of(name)
    if field == "state" and value in RunState.__members__:
        return paint(value, STATE_STYLE[RunState(value)])
    if field in ("age", "duration"):
        return format_duration(value)
    if field == "progress":
        return f"{value:.0f}%"
    if isinstance(value, float):
        return number(value)
    return clip(printable(str(_plain(value))), WIDEST)
