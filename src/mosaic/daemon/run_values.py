"""The values of a run that a question can name: fields of its row, figures of its summary, settings and metrics.

What is read for them comes in stages, cheapest first: columns of the registry, settings (JSON), summaries (the index).
"""

import json
from collections.abc import Callable
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

from mosaic.catalog.secrets import MASK
from mosaic.daemon.setting_columns import SettingColumn
from mosaic.engines.cluster import LOCAL
from mosaic.model.errors import BadQuery
from mosaic.model.run_fields import METRIC, SETTING
from mosaic.model.score import score_in
from mosaic.model.states import RunState
from mosaic.model.where_values import is_number
from mosaic.registry.queries import Row

LONGEST_SHOWN = 2000  # characters of one value in a listing
FIGURES = "figures"  # a key of a row, beside those of its columns, `setting.NAME` and `metric.NAME`


class Stage(IntEnum):
    COLUMNS = 0
    SETTINGS = 1
    FIGURES = 2
    METRICS = 3


@dataclass(frozen=True)
class Reader:
    """How a value is read. None: the run does not have it."""

    read: Callable[[Row], Any]
    columns: tuple[str, ...] = ()
    stage: Stage = Stage.COLUMNS
    show: Callable[[Row], Any] | None = None  # instead of `read`, where the value is only shown
    column: "SettingColumn | None" = None  # of a setting
    metric: str = ""


# ---- fields


def field_readers(now: float) -> dict[str, Reader]:
    """A reader for every name in `run_fields.FIELDS`."""

    def figure(read: Callable[[Row], Any], *columns: str) -> Reader:
        return Reader(read, columns, Stage.FIGURES)

    return {
        "state": _text("state"),
        "name": _text("name"),
        "worker": _text("worker_name"),
        "algo": _text("algo"),
        "env": _text("env_id"),
        "id": _text("id"),
        "experiment": _text("experiment"),
        "note": _text("note"),
        "reason": _text("reason"),
        "parent": _text("parent_run_id"),
        "origin": _text("origin"),
        "on": Reader(lambda row: row["runs_on"] or LOCAL if isinstance(row["runs_on"], str) else None, ("runs_on",)),
        "node": _text("node"),
        "tag": Reader(lambda row: _tags(row["tags"]), ("tags",)),
        "return": figure(lambda row: score_in(row["area"], row["relation"], row[FIGURES]), "relation"),
        "steps": figure(lambda row: row[FIGURES].env_steps),
        "episodes": figure(lambda row: row[FIGURES].episodes),
        "rate": figure(_rate, "state"),
        "progress": figure(_progress, "state", "total_steps"),
        "seed": _number("seed"),
        "gpus": _number("gpus"),
        "checkpoints": figure(lambda row: row[FIGURES].checkpoints),
        "age": Reader(lambda row: _seconds(row["created_at"], now), ("created_at",)),
        "duration": Reader(lambda row: _duration(row, now), ("created_at", "updated_at", "state")),
    }


def _text(column: str) -> Reader:
    # A damaged row may have a value of any type in any column.
    return Reader(lambda row: value if isinstance(value := row[column], str) and value else None, (column,))


def _number(column: str) -> Reader:
    return Reader(lambda row: value if is_number(value := row[column]) else None, (column,))


def _tags(text: object) -> list[str] | None:
    if not isinstance(text, str) or text == "[]":
        return None
    try:
        found = json.loads(text)
    except ValueError:
        return None
    return [tag for tag in found if isinstance(tag, str)] or None if isinstance(found, list) else None


def _rate(row: Row) -> float | None:
    rate: float = row[FIGURES].steps_per_s
    return rate if row["state"] == RunState.EXECUTING and rate > 0 else None


def _progress(row: Row) -> float | None:
    total = row[FIGURES].total_steps if row[FIGURES].total_steps > 0 else row["total_steps"]
    if not is_number(total) or total <= 0:
        return None
    return 100.0 if row["state"] == RunState.TERMINATED else min(100.0, 100.0 * row[FIGURES].env_steps / total)


def _seconds(since: object, until: object) -> float | None:
    return max(0.0, until - since) if is_number(since) and is_number(until) else None  # type: ignore[operator]


def _duration(row: Row, now: float) -> float | None:
    is_over = row["state"] in RunState.__members__ and RunState(row["state"]).is_over
    return _seconds(row["created_at"], row["updated_at"] if is_over else now)


# ---- settings and metrics


def setting_reader(column: "SettingColumn") -> Reader:
    """A setting by its dotted key, or by the last parts of it."""
    key = f"{SETTING}{column.name}"
    return Reader(
        lambda row: _asked(*row[key]),
        columns=("worker_name",),
        stage=Stage.SETTINGS,
        show=lambda row: row[key][1],
        column=column,
    )


def metric_reader(name: str) -> Reader:
    key = f"{METRIC}{name}"
    return Reader(lambda row: row[key], stage=Stage.METRICS, metric=name)


def _asked(key: str, value: Any) -> Any:
    """The value, unless it is a secret: conditions on it, or an order by it, would tell it bit by bit."""
    if isinstance(value, str) and value == MASK:
        raise BadQuery(f"'{key}' is a secret and cannot be asked for.")
    return value


def cut(value: Any) -> Any:
    """A value that fits into a listing."""
    if is_number(value) or value is None:
        return value
    text = value if isinstance(value, str) else json.dumps(value)
    return value if len(text) <= LONGEST_SHOWN else f"{text[: LONGEST_SHOWN - 1]}…"
