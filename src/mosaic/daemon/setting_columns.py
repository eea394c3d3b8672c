"""Single settings of all runs, kept in memory: what a run was started with never changes, so it is read once."""

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

from mosaic.catalog.search import DRIVER
from mosaic.catalog.secrets import MASK, redact
from mosaic.daemon.settings_text import SettingFinder
from mosaic.model.errors import BadQuery
from mosaic.model.where_values import is_number
from mosaic.registry.queries import Row

MOST_COLUMNS = 16  # about 2 MB each for 10,000 runs
MOST_RUNS = 200_000  # in one of them; deleted runs are not looked for
LONGEST_KEPT = 200  # characters of a value

Found = tuple[str, Any]  # the dotted key and its value without secrets; empty and None: the run does not have it


class SettingColumn:
    """The setting that a name means, of each run that was asked for."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._finder = SettingFinder(name)
        self._kept: dict[str, Found] = {}

    def unread(self, rows: Sequence[Row]) -> list[Row]:
        """The runs whose settings must be read."""
        return [row for row in rows if row["id"] not in self._kept]

    def values(self, rows: Sequence[Row], texts: Mapping[int, str]) -> list[Found]:
        """For each run; `texts`: the settings of those that are unread, by number. A deleted run has none."""
        if len(self._kept) > MOST_RUNS:
            self._kept.clear()
        return [self._kept.get(row["id"]) or self._read(row, texts.get(row["number"])) for row in rows]

    def _read(self, row: Row, text: str | None) -> Found:
        found = self._find(row, text)
        if text is not None and (not isinstance(found[1], str | list | dict) or len(str(found[1])) <= LONGEST_KEPT):
            self._kept[row["id"]] = found
        return found

    def _find(self, row: Row, text: str | None) -> Found:
        found = self._finder.find(text)
        if row["worker_name"] == DRIVER:
            # `space.learning_rate` and `worker.config.steps` are about its trials: only whole keys are its settings.
            found = {key: value for key, value in found.items() if key == self.name}
        if len(found) > 1:
            keys = ", ".join(sorted(found)[:12])
            raise BadQuery(f"'{self.name}' is ambiguous in run {row['id']}. Write one of: {keys}")
        for key, value in found.items():
            if value is None or (is_number(value) and not _hides_numbers(key)):
                return key, value
            return key, redact({key: value})[key]
        return "", None


class SettingColumns:
    """The columns that were asked for last."""

    def __init__(self) -> None:
        self._columns: OrderedDict[str, SettingColumn] = OrderedDict()

    def of(self, name: str) -> SettingColumn:
        column = self._columns.setdefault(name, SettingColumn(name))
        self._columns.move_to_end(name)
        if len(self._columns) > MOST_COLUMNS:
            self._columns.popitem(last=False)
        return column


@lru_cache(maxsize=4096)
def _hides_numbers(key: str) -> bool:
    return bool(redact({key: 1})[key] == MASK)
