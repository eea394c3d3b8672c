"""The state of the connection, and what changed among the runs."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mosaic.client import Run
    from mosaic.wire import mosaic_pb2 as pb


@dataclass(frozen=True)
class Connection:
    state: str = "connecting"  # connecting, ok, lost
    problem: str = ""  # in words, while it is not ok
    health: "pb.Health | None" = None  # as of the last answer
    warning: str = ""  # it works, but: the daemon has another version


@dataclass(frozen=True)
class RunsChange:
    runs: "tuple[Run, ...]" = ()  # new or changed
    deleted: tuple[str, ...] = ()
    is_whole: bool = False  # `runs` are all runs that there are

    def __bool__(self) -> bool:
        return bool(self.runs or self.deleted or self.is_whole)

    def followed_by(self, later: "RunsChange") -> "RunsChange":
        """Both changes as one."""
        if later.is_whole:
            return later
        runs = {run.run_id: run for run in (*self.runs, *later.runs)}
        gone = set(later.deleted)
        deleted = (*(run_id for run_id in self.deleted if run_id not in runs), *later.deleted)
        kept = tuple(run for run in runs.values() if run.run_id not in gone)
        return RunsChange(kept, tuple(dict.fromkeys(deleted)), self.is_whole)

    def applied_to(self, runs: "dict[str, Run]") -> "RunsChange":
        """Change `runs` in place. Returns the change with every run that disappeared among `deleted`."""
        deleted = self.deleted
        if self.is_whole:
            now = {run.run_id for run in self.runs}
            deleted = (*deleted, *(run_id for run_id in runs if run_id not in now and run_id not in deleted))
            runs.clear()
        runs.update(_by_id(self.runs))
        for run_id in deleted:
            runs.pop(run_id, None)
        return RunsChange(self.runs, deleted, self.is_whole)


def _by_id(runs: "tuple[Run, ...]") -> "Mapping[str, Run]":
    return {run.run_id: run for run in runs}
