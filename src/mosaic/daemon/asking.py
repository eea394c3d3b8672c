"""ListRuns with a condition, an order or chosen values: what is asked is evaluated here, over columns of all runs.

A condition is split at its outermost `and`: the cheap parts choose the runs whose settings and summaries are read.
"""

import json
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from mosaic.daemon.run_values import (
    FIGURES,
    Reader,
    Stage,
    cut,
    field_readers,
    metric_reader,
    setting_reader,
)
from mosaic.daemon.setting_columns import SettingColumn
from mosaic.model.errors import BadQuery
from mosaic.model.nearest import did_you_mean
from mosaic.model.ordering import ordered, sort_names
from mosaic.model.run_fields import FIELDS, METRIC, SETTING, field_of
from mosaic.model.states import RunState
from mosaic.model.where import All, Comparison, Condition, Either, Missing, Not, names_in, parse_where
from mosaic.registry.queries import Row
from mosaic.registry.registry import Registry

if TYPE_CHECKING:
    from mosaic.daemon.trainer import Trainer

CHUNK = 1000  # rows that are read and tested at once; other calls are answered in between
SETTINGS_CHUNK = 500
NEWEST = 500  # runs whose settings and metrics are suggested
MOST_NAMES = 100  # in one question

Test = Callable[[Row], bool]


@dataclass
class Question:
    """A condition, an order and names, with a reader for each name."""

    condition: Condition | None
    sort: Sequence[tuple[str, bool]]
    shown: Sequence[str]
    readers: dict[str, Reader] = field(default_factory=dict)

    @classmethod
    async def of(cls, trainer: "Trainer", where: str, sort: str, shown: Sequence[str]) -> "Question":
        """Understand a question. BadQuery if it does not parse, or names what no run has."""
        question = cls(parse_where(where) if where else None, sort_names(sort), tuple(dict.fromkeys(shown)))
        names = dict.fromkeys((*question._tested, *question._sorting, *question.shown))
        if len(names) > MOST_NAMES:
            raise BadQuery(f"A question may name {MOST_NAMES} fields, settings and metrics, not {len(names)}.")
        fields = field_readers(time.time())
        for name in names:
            question.readers[name] = fields[field_of(name)] if field_of(name) else await _find(trainer, name)
        return question

    @property
    def _tested(self) -> list[str]:
        return list(names_in(self.condition)) if self.condition else []

    @property
    def _sorting(self) -> list[str]:
        return [name for name, _ in self.sort]

    @property
    def columns(self) -> set[str]:
        return {column for reader in self.readers.values() for column in reader.columns}

    async def matches(
        self, trainer: "Trainer", states: Sequence[RunState], before: int = 0, enough: int = 0, experiment: str = ""
    ) -> list[Row]:
        """The matching runs, newest first. With `enough`, not many more than that."""
        tests = self._tests()
        found: list[Row] = []
        while not enough or len(found) < enough:
            rows = await self._rows(trainer, states, before, experiment)
            if not rows:
                break
            before = rows[-1]["number"]
            cheap = [test for stage, test in tests if stage is Stage.COLUMNS]
            chosen = [row for row in rows if all(test(row) for test in cheap)] if cheap else rows
            found += await self._choose(trainer, chosen, tests) if enough else chosen
        return found if enough else await self._choose(trainer, found, tests)

    async def order(self, trainer: "Trainer", rows: Sequence[Row]) -> list[Row]:
        await self.load(trainer, rows, self._sorting)
        return ordered(rows, self.sort, lambda row, name: self.readers[name].read(row))

    async def values(self, trainer: "Trainer", rows: Sequence[Row]) -> dict[str, str]:
        """The values of the names in `shown`, as a JSON object for each run."""
        await self.load(trainer, rows, self.shown)
        return {row["id"]: json.dumps({name: cut(self._show(name, row)) for name in self.shown}) for row in rows}

    def _show(self, name: str, row: Row) -> Any:
        reader = self.readers[name]
        return (reader.show or reader.read)(row)

    async def load(self, trainer: "Trainer", rows: Sequence[Row], names: Iterable[str]) -> None:
        """Read what these names need, of rows that do not have it yet."""
        for reader in (self.readers[name] for name in dict.fromkeys(names)):
            if reader.column:
                await _load_setting(trainer, reader.column, rows)
            elif reader.metric:
                await _load_metric(trainer, reader.metric, rows)
            elif reader.stage is Stage.FIGURES:
                await _load_figures(trainer, [row for row in rows if FIGURES not in row])

    async def _rows(self, trainer: "Trainer", states: Sequence[RunState], before: int, experiment: str) -> list[Row]:
        return await trainer.registry.do(lambda r: r.queries.rows(self.columns, states, CHUNK, before, experiment))

    async def _choose(self, trainer: "Trainer", rows: list[Row], tests: "Sequence[tuple[Stage, Test]]") -> list[Row]:
        """Apply the tests that need more than columns, the cheaper ones first."""
        for stage, test in tests:
            if stage is not Stage.COLUMNS:
                await self.load(trainer, rows, self._names_until(stage))
                rows = [row for row in rows if test(row)]
        return rows

    def _names_until(self, stage: Stage) -> list[str]:
        return [name for name in self._tested if self.readers[name].stage <= stage]

    def _tests(self) -> "list[tuple[Stage, Test]]":
        """The parts that must all be true, with the stage of what each needs, cheapest first."""
        if self.condition is None:
            return []
        parts = self.condition.parts if isinstance(self.condition, All) else (self.condition,)
        staged = [(max(self.readers[name].stage for name in names_in(part)), self._test(part)) for part in parts]
        return sorted(staged, key=lambda each: each[0])

    def _test(self, part: Condition) -> Test:
        if isinstance(part, Comparison):
            return _compared(self.readers[part.name].read, part.test)
        if isinstance(part, Missing):
            return _missing(self.readers[part.name].read)
        if isinstance(part, Not):
            return _negated(self._test(part.part))
        tests = [self._test(inner) for inner in part.parts]
        return _any(tests) if isinstance(part, Either) else _all(tests)


def _compared(read: Callable[[Row], Any], test: Callable[[Any], bool]) -> Test:
    return lambda row: (value := read(row)) is not None and test(value)


def _missing(read: Callable[[Row], Any]) -> Test:
    return lambda row: read(row) is None


def _negated(test: Test) -> Test:
    return lambda row: not test(row)


def _any(tests: Sequence[Test]) -> Test:
    return lambda row: any(test(row) for test in tests)


def _all(tests: Sequence[Test]) -> Test:
    return lambda row: all(test(row) for test in tests)


async def _load_setting(trainer: "Trainer", column: SettingColumn, rows: Sequence[Row]) -> None:
    key = f"{SETTING}{column.name}"
    for start in range(0, len(rows), SETTINGS_CHUNK):
        chunk = [row for row in rows[start : start + SETTINGS_CHUNK] if key not in row]
        unread = [row["number"] for row in column.unread(chunk)]
        texts = await trainer.registry.do(_settings_of(unread)) if unread else {}
        for row, found in zip(chunk, column.values(chunk, texts), strict=True):
            row[key] = found


def _settings_of(numbers: Sequence[int]) -> Callable[[Registry], dict[int, str]]:
    return lambda registry: registry.queries.settings(numbers)


async def _load_figures(trainer: "Trainer", rows: Sequence[Row]) -> None:
    areas = {row["id"]: row["area"] for row in rows}
    found = await trainer.ingest.figures(areas, lambda run_id: trainer.root.run(areas[run_id], run_id))
    for row in rows:
        row[FIGURES] = found[row["id"]]


async def _load_metric(trainer: "Trainer", name: str, rows: Sequence[Row]) -> None:
    key = f"{METRIC}{name}"
    areas = {row["id"]: row["area"] for row in rows if key not in row}
    found = await trainer.ingest.metric(areas, lambda run_id: trainer.root.run(areas[run_id], run_id), name)
    for row in rows:
        if row["id"] in found:
            row[key] = found[row["id"]]


# ---- names that are not fields


async def _find(trainer: "Trainer", name: str) -> Reader:
    """The setting or metric that a name means: a setting if any run has it, else a metric."""
    if name.startswith(SETTING):
        return _setting_reader(trainer, name.removeprefix(SETTING))
    if name.startswith(METRIC):
        return metric_reader(name.removeprefix(METRIC))
    # Metrics have slashes, settings have dots: what is likely is looked for first.
    searches = [(_is_setting, _setting_reader), (_is_metric, _metric_reader)]
    for is_known, reader in reversed(searches) if "/" in name else searches:
        if await is_known(trainer, name):
            return reader(trainer, name)
    raise await _unknown(trainer, name)


def _setting_reader(trainer: "Trainer", name: str) -> Reader:
    return setting_reader(trainer.setting_columns.of(name))


def _metric_reader(_: "Trainer", name: str) -> Reader:
    return metric_reader(name)


async def _is_setting(trainer: "Trainer", name: str) -> bool:
    return await trainer.registry.do(lambda r: r.queries.has_setting(name))


async def _is_metric(trainer: "Trainer", name: str) -> bool:
    return await trainer.ingest.has_metric(name) or name in await _newest_metrics(trainer)


async def _newest_metrics(trainer: "Trainer") -> set[str]:
    """The metrics of live runs, which are not in the index, and of the newest others."""
    rows = await trainer.registry.do(lambda r: r.queries.rows((), (), NEWEST, 0))
    areas = {row["id"]: row["area"] for row in rows}
    return await trainer.ingest.metric_names(areas, lambda run_id: trainer.root.run(areas[run_id], run_id))


async def _unknown(trainer: "Trainer", name: str) -> BadQuery:
    settings = await trainer.registry.do(lambda r: r.queries.newest_settings(NEWEST))
    keys = {key for each in settings for key in each}
    known = [*FIELDS, *sorted({key.rpartition(".")[2] for key in keys}), *sorted(await _newest_metrics(trainer)), *keys]
    hint = did_you_mean(name, known) or f"Fields of every run: {', '.join(FIELDS)}."
    return BadQuery(f"No run has a field, a setting or a metric '{name[:100]}'. {hint}")
