"""Rows of the table `runs`: built from a config, read as a record."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, fields, replace
from functools import lru_cache
from types import MappingProxyType
from typing import Any

from mosaic.model.run import GpuRequest, Limits, Lineage, Membership, Move, ResourceRequest, RunConfig, RunRecord
from mosaic.model.rundir import AREAS
from mosaic.model.states import RunState
from mosaic.model.task import Task

COLUMNS = (
    "id, name, area, worker_name, state, reason, attempt, created_at, updated_at, gpus_requested, gpus_mandatory, "
    "limits, tags, total_steps, cancel_requested, waiting_for, held_by, telemetry, revision, "
    "cpus, memory_mb, parent_run_id, relation, settings_note, algo, env_id, seed, number, "
    "experiment, axes, note, origin, runs_on, job, node"
)

RESTORE = "Restore it with: mosaic daemon stop && mosaic registry rebuild"
_LATEST = 1e11  # unix seconds; later times cannot be shown
_INT32, _INT64 = 1 << 31, 1 << 63


def new_row(config: RunConfig, now: float, revision: int) -> dict[str, object]:
    """The columns of a newly submitted run; all other columns have defaults."""
    task = Task.of(config.settings.values)
    return {
        "id": config.run_id,
        "name": config.name,
        "area": config.area,
        "worker_name": config.worker_name,
        "state": RunState.INIT.value,
        "created_at": now,
        "updated_at": now,
        "gpus_requested": config.gpus.requested,
        "gpus_mandatory": config.gpus.mandatory,
        "limits": json.dumps(asdict(config.limits)),
        "tags": json.dumps(config.tags),
        "total_steps": config.total_steps,
        "idempotency_key": config.idempotency_key,
        "config_hash": config.config_hash,
        "cpus": config.resources.cpus,
        "memory_mb": config.resources.memory_mb,
        "parent_run_id": config.lineage.parent_run_id,
        "relation": config.lineage.relation,
        "settings": json.dumps(config.settings.values),
        "settings_note": config.settings.note,
        "algo": task.algo,
        "env_id": task.env_id,
        "seed": task.seed,
        "experiment": config.membership.experiment,
        "axes": json.dumps(dict(config.membership.axes)),
        "origin": config.origin,
        "runs_on": config.on,
        "revision": revision,
    }


def to_record(row: Sequence[Any], granted: tuple[str, ...]) -> RunRecord:
    """A record from the values of `COLUMNS`. A damaged row gives one that says what is wrong with it."""
    # One look-up for a row like those before: a listing of 10,000 runs must not check every value on its own.
    if tuple(map(type, row)) in _GOOD_TYPES and not _odd_values(row):
        return _record(row, granted)
    odd = [COLUMNS.split(", ")[n] for n in range(len(row)) if not _is_good(n, row[n])]
    if not odd:
        _GOOD_TYPES.add(tuple(map(type, row)))
        return _record(row, granted)
    mended = [value if _is_good(n, value) else _INSTEAD[n] for n, value in enumerate(row)]
    return _damaged(_record(mended, granted), odd)


def _damaged(record: RunRecord, odd: list[str]) -> RunRecord:
    words = f"its registry row is damaged ({', '.join(odd)}). {RESTORE}"
    reason = record.reason if record.state.is_over and "state" not in odd else words
    return replace(record, reason=reason, telemetry=words, damage=words)


def _record(row: Sequence[Any], granted: tuple[str, ...]) -> RunRecord:
    return RunRecord(
        run_id=row[0],
        name=row[1],
        area=row[2],
        worker_name=row[3],
        state=RunState(row[4]),
        reason=row[5],
        attempt=row[6],
        created_at=row[7],
        updated_at=row[8],
        gpus=GpuRequest(row[9], bool(row[10])),
        granted=granted,
        limits=_limits(row[11]),
        tags=_tags(row[12]),
        total_steps=row[13],
        cancel_requested=bool(row[14]),
        waiting_for=row[15],
        held_by=row[16],
        telemetry=row[17],
        revision=row[18],
        resources=ResourceRequest(row[19], row[20]),
        lineage=Lineage(row[21], row[22]),
        settings_note=row[23],
        task=Task(row[24], row[25], row[26]),
        number=row[27],
        membership=Membership(row[28], _axes(row[29])),
        note=row[30],
        origin=row[31],
        on=row[32],
        job=row[33],
        node=row[34],
    )


def to_move(row: Sequence[Any]) -> Move | None:
    """A line of history; None for a damaged one."""
    old, new, at, reason = row
    if new not in _STATES or (old is not None and old not in _STATES) or not (is_time(at) and _text(reason)):
        return None
    return Move(RunState(old) if old else None, RunState(new), at, reason)


def read_object(text: object) -> dict[str, Any]:
    """The JSON object in a column; empty for a damaged one."""
    try:
        found = json.loads(text) if isinstance(text, str) else None
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


# Most runs have the same few limits and tags, so a listing of 10,000 runs parses each text once.
@lru_cache(maxsize=1024)
def _limits(text: str) -> Limits:
    return Limits(**json.loads(text))


@lru_cache(maxsize=1024)
def _tags(text: str) -> tuple[str, ...]:
    return tuple(json.loads(text))


@lru_cache(maxsize=1024)
def _axes(text: str) -> Mapping[str, Any]:
    return MappingProxyType(json.loads(text))


# Checks of damaged rows. SQLite keeps a value of any type in any column, and a flipped bit changes type or value.

_GOOD_TYPES: set[tuple[type, ...]] = set()
_UNREADABLE = (TypeError, ValueError, RecursionError)  # of JSON; the last if it is nested a thousand times
_STATES = frozenset(state.value for state in RunState)


def _odd_values(row: Sequence[Any]) -> bool:
    """Values of the right type that cannot be used; what `_is_good` says of them, in one expression."""
    return not (
        row[4] in _STATES
        and row[2] in AREAS
        and row[0].isalnum()
        and 0 <= row[6] < _INT32
        and 0 <= row[7] < _LATEST
        and 0 <= row[8] < _LATEST
        and 0 <= row[9] < _INT32
        and row[18] >= 0
        and 0 <= row[19] < _INT32
        and 0 <= row[20] < _INT64
        and _is_limits(row[11])
        and _is_tags(row[12])
        and _is_axes(row[29])
    )


def _text(value: object) -> bool:
    return isinstance(value, str)


def _whole(limit: int) -> Callable[[object], bool]:
    return lambda value: isinstance(value, int) and 0 <= value < limit


def is_time(value: object) -> bool:
    """Whether it is a time that can be shown, in unix seconds."""
    return isinstance(value, int | float) and 0 <= value < _LATEST


@lru_cache(maxsize=1024)
def _is_limits(text: str) -> bool:
    try:
        limits = _limits(text)
    except _UNREADABLE:
        return False
    values = [getattr(limits, field.name) for field in fields(Limits)]
    return all(value is None or (isinstance(value, int | float) and value >= 0) for value in values)


@lru_cache(maxsize=1024)
def _is_tags(text: str) -> bool:
    try:
        return isinstance(json.loads(text), list) and all(isinstance(tag, str) for tag in _tags(text))
    except _UNREADABLE:
        return False


@lru_cache(maxsize=1024)
def _is_axes(text: str) -> bool:
    try:
        return isinstance(json.loads(text), dict)
    except _UNREADABLE:
        return False


def _or_none(check: Callable[[object], bool]) -> Callable[[object], bool]:
    return lambda value: value is None or check(value)


# In the order of COLUMNS: whether a value can be used, and what is shown instead.
_RULES: tuple[tuple[Callable[[Any], bool], Any], ...] = (
    (lambda value: _text(value) and value.isalnum(), ""),
    (_text, ""),
    (lambda value: _text(value) and value in AREAS, AREAS[0]),
    (_text, ""),
    (lambda value: _text(value) and value in _STATES, RunState.FAULTED.value),
    (_text, ""),
    (_whole(_INT32), 0),
    (is_time, 0.0),
    (is_time, 0.0),
    (_whole(_INT32), 0),
    (_whole(2), 0),
    (lambda value: _text(value) and _is_limits(value), "{}"),
    (lambda value: _text(value) and _is_tags(value), "[]"),
    (_or_none(lambda value: isinstance(value, int)), None),
    (_whole(2), 0),
    *(((_text, ""),) * 3),
    (_whole(_INT64), 0),
    (lambda value: isinstance(value, int | float) and 0 <= value < _INT32, 1.0),
    (_whole(_INT64), 0),
    *(((_text, ""),) * 5),
    (_or_none(lambda value: isinstance(value, int)), None),
    (_whole(_INT64), 0),
    (_text, ""),
    (lambda value: _text(value) and _is_axes(value), "{}"),
    *(((_text, ""),) * 5),
)
_INSTEAD = tuple(instead for _, instead in _RULES)


def _is_good(column: int, value: object) -> bool:
    return _RULES[column][0](value)
