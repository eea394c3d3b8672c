"""The table `experiments`. An experiment that only its runs name is listed as well, as far as they show what it was."""

import builtins
import json
import sqlite3
from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from mosaic.model.errors import BadConfig, ExperimentHasRuns, ExperimentTaken, UnknownExperiment
from mosaic.model.experiment import Experiment, canonical, check_name, merged, read_document, reconstructed
from mosaic.model.nearest import did_you_mean
from mosaic.model.states import RunState
from mosaic.registry.change import Changes
from mosaic.registry.file import fetch
from mosaic.registry.row import is_time, read_object

COLUMNS = "name, document, note, created_at, revision"
SEARCH_WORKER = "search"  # the worker of a search's driver
MOST_POINTS = 10_000  # that are read to reconstruct an experiment
# SQLite keeps a value of any type in any column: a name that is not text names nothing.
_NAMED = "typeof(name) = 'text'"
_MEMBER = "experiment <> '' AND typeof(experiment) = 'text'"


class Experiments:
    """Used by the registry's thread alone.

    1. A name means one experiment: a second `put` extends it, or is refused with what differs.
    2. What `put` and `delete` have changed is recorded, so that a rebuild of the registry keeps it.
    """

    def __init__(self, db: sqlite3.Connection, changes: Changes, now: Callable[[], float]) -> None:
        self._db = db
        self._changes = changes
        self._now = now

    # ---- reading

    def get(self, name: str) -> Experiment:
        found = self._row(name) or self._from_runs(name)
        if found is None:
            raise UnknownExperiment(name, did_you_mean(name, self.names()))
        return self._counted(found, self._counts(name))

    def list(self) -> "builtins.list[Experiment]":
        """Newest first; those without a record last."""
        counts = self._counts()
        sql = f"SELECT {COLUMNS} FROM experiments WHERE {_NAMED} ORDER BY created_at DESC"
        rows = [self._read(row) for row in fetch(self._db, sql)]
        known = {experiment.name for experiment in rows}
        lost = [found for name in sorted(counts.keys() - known) if (found := self._from_runs(name))]
        return [self._counted(experiment, counts) for experiment in (*rows, *lost)]

    def names(self) -> "builtins.list[str]":
        runs = f"SELECT DISTINCT experiment FROM runs WHERE {_MEMBER}"
        sql = f"SELECT name FROM experiments WHERE {_NAMED} UNION {runs} LIMIT 1000"
        return [name for (name,) in fetch(self._db, sql)]

    def limits(self) -> dict[str, int]:
        """How many runs at a time an experiment may have, for those that have a limit and runs that wait."""
        waiting = f"SELECT DISTINCT experiment FROM runs WHERE {_MEMBER} AND state = ?"
        sql = f"SELECT name, document FROM experiments WHERE {_NAMED} AND name IN ({waiting})"
        rows = fetch(self._db, sql, (RunState.INIT.value,))
        limits = {name: read_object(document).get("max_parallel") for name, document in rows}
        return {name: limit for name, limit in limits.items() if isinstance(limit, int) and limit > 0}

    # ---- changing

    def put(self, name: str, document: Mapping[str, Any], note: str | None = None, is_new: bool = False) -> Experiment:
        """Create or extend it. ExperimentDiffers; with `is_new`, ExperimentTaken for a name that is used."""
        with self._changes.change() as revision:
            self.put_within(revision, name, document, note, is_new)
        return self.get(name)

    def put_within(
        self, revision: int, name: str, document: Mapping[str, Any], note: str | None = None, is_new: bool = False
    ) -> None:
        """`put`, inside a transaction of the caller."""
        check_name(name)
        wanted = read_document(document)
        known = self._row(name) or (self._from_runs(name) if is_new else None)
        if known and is_new:
            raise ExperimentTaken(name)
        document = merged(name, read_document(known.document), wanted) if known else wanted
        note = note if note is not None else known.note if known else ""
        created_at = known.created_at if known else self._now()
        row = {"name": name, "document": canonical_document(document), "note": note, "created_at": created_at}
        if known and (row["document"], note) == (canonical_document(known.document), known.note):
            return
        self._db.execute("INSERT OR REPLACE INTO experiments VALUES (?, ?, ?, ?, ?)", (*row.values(), revision))
        self._changes.tell({"experiment": row, "revision": revision})

    def delete(self, name: str) -> None:
        """Delete an experiment without runs."""
        known = self.get(name)
        if runs := sum(known.counts.values()):
            raise ExperimentHasRuns(name, runs)
        with self._changes.change() as revision:
            self._db.execute("DELETE FROM experiments WHERE name = ?", (name,))
            self._changes.tell({"deleted_experiment": name, "revision": revision})

    # ---- rows

    def _row(self, name: str) -> Experiment | None:
        rows = fetch(self._db, f"SELECT {COLUMNS} FROM experiments WHERE name = ?", (name,))
        return self._read(rows[0]) if rows else None

    def _read(self, row: tuple[Any, ...]) -> Experiment:
        name, text, note, created_at, revision = row
        if _is_good(row):
            return Experiment(name, read_object(text), note, created_at, revision)
        # A damaged row is as good as none: the runs show what they can.
        return self._from_runs(name) or Experiment(name, reconstructed("", []), is_reconstructed=True)

    def _from_runs(self, name: str) -> Experiment | None:
        sql = "SELECT axes, worker_name, created_at, id FROM runs WHERE experiment = ? ORDER BY number LIMIT ?"
        rows = fetch(self._db, sql, (name, MOST_POINTS))
        if not rows:
            return None
        found = [(read_object(axes), str(worker)) for axes, worker, _, _ in rows]
        # A search has no record: its driver is a member without axes, and the others are its trials.
        driver = str(rows[0][3]) if found[0] == ({}, SEARCH_WORKER) else ""
        workers = [worker for axes, worker in found if axes or not driver]
        document = reconstructed(next(iter(workers), SEARCH_WORKER), [axes for axes, _ in found], driver)
        created_at = rows[0][2] if is_time(rows[0][2]) else 0.0
        return Experiment(name, document, created_at=created_at, is_reconstructed=True)

    def _counts(self, name: str = "") -> dict[str, dict[str, int]]:
        where, values = ("experiment = ?", (name,)) if name else (_MEMBER, ())
        sql = f"SELECT experiment, state, count(*) FROM runs WHERE {where} GROUP BY experiment, state"
        counts: dict[str, dict[str, int]] = defaultdict(dict)
        for experiment, state, count in fetch(self._db, sql, values):
            counts[experiment][str(state)] = count
        return counts

    def _counted(self, found: Experiment, counts: Mapping[str, Mapping[str, int]]) -> Experiment:
        return replace(found, counts=dict(counts.get(found.name, {})))


def _is_good(row: tuple[Any, ...]) -> bool:
    """Whether a row has what `put` writes."""
    _, text, note, created_at, revision = row
    try:
        document = read_document(read_object(text))
    except (BadConfig, RecursionError):
        return False
    return bool(document["worker"]) and isinstance(note, str) and is_time(created_at) and isinstance(revision, int)


def canonical_document(document: Mapping[str, Any]) -> str:
    """As it is stored. The order of the axes is kept: people chose it."""
    axes = json.dumps(document.get("axes", {}), separators=(",", ":"))
    others = canonical({key: value for key, value in document.items() if key != "axes"})
    return f'{others[:-1]},"axes":{axes}}}'
