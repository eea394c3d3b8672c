"""The rows of a list of runs: filtered, sorted, grouped, and then stable.

Rows keep their places until the user sorts, filters, groups or refreshes, whatever the daemon reports meanwhile:
1. a run that appears, or begins to match the filter, is inserted at the top (of its group);
2. a run that no longer matches stays, and so does one that would belong into another place or group;
3. a deleted run is removed.
"""

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from mosaic.present.run_cells import COLUMNS, Column, Surroundings
from mosaic.present.run_filter import RunFilter
from mosaic.present.run_groups import GROUPINGS, Group, Grouping, divide
from mosaic.present.run_order import sorted_by

if TYPE_CHECKING:
    from mosaic.client import Run


@dataclass
class Heading:
    """A row that names the group below it."""

    key: Any
    label: str
    count: int
    is_open: bool = True

    def __str__(self) -> str:
        return f"{self.label}  ({self.count:,})"


BY_AGE = next(column for column in COLUMNS if column.key == "age")
Row = str | Heading  # a run by its id, or the heading of a group


@dataclass(frozen=True)
class RowChange:
    """What a report of the daemon means for the rows, in the order in which to carry it out."""

    removed: tuple[int, ...] = ()  # highest first
    inserted: tuple[str, ...] = ()  # ids of runs, oldest first
    changed: tuple[int, ...] = ()  # rows whose runs have changed, counted before the removals


@dataclass
class RunRows:
    runs: "Mapping[str, Run]"  # all that there are; kept current by its owner
    around: Surroundings = field(default_factory=Surroundings)
    filter: RunFilter = field(default_factory=RunFilter)
    column: Column = BY_AGE
    is_descending: bool = False
    grouping: str = ""  # a key of GROUPINGS
    closed: set[Any] = field(default_factory=set)  # keys of groups whose runs are hidden
    rows: list[Row] = field(default_factory=list)
    place: dict[str, int] = field(default_factory=dict)  # of each shown run
    _matching: set[str] = field(default_factory=set)  # ids of all listed runs, those in closed groups too

    @property
    def count(self) -> int:
        """How many runs are listed, those in closed groups included."""
        return len(self._matching)

    def arrange(self) -> None:
        """Filter, sort and group again."""
        chosen = self.filter.chosen(self.runs.values())
        ordered = sorted_by(chosen, lambda run: self.column.sort(run, self.around), self.is_descending)
        self._matching = {run.run_id for run in ordered}
        if self.grouping:
            self.rows = [row for group in divide(ordered, self._grouping, self.runs) for row in self._group_rows(group)]
        else:
            self.rows = [run.run_id for run in ordered]
        self._find_places()

    def _group_rows(self, group: Group) -> list[Row]:
        is_open = group.key not in self.closed
        heading = Heading(group.key, group.label, len(group.runs), is_open)
        return [heading, *((run.run_id for run in group.runs) if is_open else ())]

    @property
    def _grouping(self) -> Grouping:
        return GROUPINGS[self.grouping]

    def _find_places(self) -> None:
        self.place = {row: place for place, row in enumerate(self.rows) if isinstance(row, str)}

    def stale(self) -> int:
        """How many listed runs no longer match the filter."""
        if not self.filter.conditions:
            return 0
        now = time.time()
        listed = (self.runs[run_id] for run_id in self._matching if run_id in self.runs)
        return sum(not self.filter.matches(run, now) for run in listed)

    def toggle(self, heading: Heading) -> None:
        """Hide or show the runs of a group. The other rows keep their order."""
        self.closed ^= {heading.key}
        self.arrange()

    # What the daemon reports

    def plan(self, reported: "Iterable[Run]", deleted: Sequence[str], is_whole: bool) -> RowChange:
        """What to do about a report. `runs` already contains it."""
        runs = list(reported)
        gone = [run_id for run_id in self._matching if run_id not in self.runs] if is_whole else deleted
        now = time.time()
        new = [run.run_id for run in runs if run.run_id not in self._matching and self.filter.matches(run, now)]
        return RowChange(
            removed=tuple(sorted((self.place[run_id] for run_id in gone if run_id in self.place), reverse=True)),
            inserted=tuple(sorted(new)),
            changed=tuple(sorted(self.place[run.run_id] for run in runs if run.run_id in self.place)),
        )

    def apply(self, change: RowChange) -> None:
        """Carry out a large change at once."""
        gone = {row for place in change.removed if isinstance(row := self.rows[place], str)}
        self._matching -= gone
        if self.grouping:
            self.arrange()
            return
        self.rows = [
            *reversed(change.inserted),
            *(row for row in self.rows if isinstance(row, str) and row not in gone),
        ]
        self._matching.update(change.inserted)
        self._find_places()

    def remove(self, place: int) -> None:
        """Remove a run's row. Its group's heading stays, even with no run, until the rows are arranged again."""
        row = self.rows.pop(place)
        if isinstance(row, str):
            self._matching.discard(row)
        above = next((row for row in reversed(self.rows[:place]) if isinstance(row, Heading)), None)
        if above:
            above.count -= 1
        self._find_places()

    def place_for(self, run_id: str) -> int | None:
        """Where to insert a new run; None if its group is closed, or new: then the rows must be arranged again."""
        if not self.grouping:
            return 0
        key = self._grouping.key(self.runs[run_id], self.runs)
        for place, row in enumerate(self.rows):
            if isinstance(row, Heading) and row.key == key:
                return place + 1 if row.is_open else None
        return None

    def insert(self, place: int, run_ids: Sequence[str]) -> None:
        """Insert runs at one place, the newest (the last of them) at the top."""
        self.rows[place:place] = reversed(run_ids)
        self._matching.update(run_ids)
        heading = self.rows[place - 1] if place and self.grouping else None
        if isinstance(heading, Heading):
            heading.count += len(run_ids)
        self._find_places()
