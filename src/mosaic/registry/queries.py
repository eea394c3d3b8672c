"""Single columns of many runs: a question about 10,000 runs must not build 10,000 records."""

import json
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from mosaic.model.states import RunState
from mosaic.registry.file import fetch
from mosaic.registry.row import read_object

Row = dict[str, Any]

ALWAYS = ("number", "id", "area")
# What a question may read. Sessions, idempotency keys and hashes are not among them.
COLUMNS = {
    **{name: name for name in ("number", "id", "area", "name", "worker_name", "state", "reason", "created_at")},
    **{name: name for name in ("updated_at", "total_steps", "tags", "algo", "env_id", "seed", "parent_run_id")},
    **{name: name for name in ("relation", "experiment", "note", "origin", "runs_on", "node")},
    # Those of a cluster are granted by it, and are not in the table.
    "gpus": "CASE runs_on WHEN '' THEN (SELECT count(*) FROM gpus WHERE gpus.run_id = runs.id) ELSE gpus_requested END",
}


class Queries:
    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db

    def rows(
        self, columns: Iterable[str], states: Sequence[RunState], limit: int, before: int, experiment: str = ""
    ) -> list[Row]:
        """These columns of the newest runs that are older than number `before` (0: of all), newest first."""
        names = tuple(dict.fromkeys((*ALWAYS, *columns)))
        conditions = [f"state IN ({', '.join('?' * len(states))})"] if states else []
        conditions += ["number < ?"] if before else []
        conditions += ["experiment = ?"] if experiment else []
        where = f"WHERE {' AND '.join(conditions)}" if conditions else ""
        values = (*(state.value for state in states), *filter(None, (before, experiment)), limit)
        selected = ", ".join(COLUMNS[name] for name in names)
        found = fetch(self._db, f"SELECT {selected} FROM runs {where} ORDER BY number DESC LIMIT ?", values)
        return [dict(zip(names, row, strict=True)) for row in found]

    def settings(self, numbers: Sequence[int]) -> dict[int, str]:
        """The settings in force of these runs, as JSON."""
        marks = ", ".join("?" * len(numbers))
        return dict(fetch(self._db, f"SELECT number, settings FROM runs WHERE number IN ({marks})", numbers))

    def has_setting(self, name: str) -> bool:
        """Whether a run has a setting with this dotted key, or one whose last parts are `name`."""
        written = json.dumps(name)[1:-1]
        # A cheap test in SQLite finds the candidates: the same characters may be in a value.
        sql = "SELECT settings FROM runs WHERE instr(settings, ?) OR instr(settings, ?) ORDER BY number DESC"
        for (text,) in self._texts(sql, (f'"{written}"', f'.{written}"')):
            if any(key == name or key.endswith(f".{name}") for key in read_object(text)):
                return True
        return False

    def newest_settings(self, count: int) -> list[dict[str, Any]]:
        """The settings of the newest runs, for suggestions."""
        rows = self._texts("SELECT settings FROM runs ORDER BY number DESC LIMIT ?", (count,))
        return [read_object(text) for (text,) in rows]

    def _texts(self, sql: str, values: Sequence[object]) -> Iterator[Sequence[Any]]:
        try:
            yield from self._db.execute(sql, values)
        except sqlite3.OperationalError as error:
            if "decode" not in str(error):
                raise  # else: text that is not UTF-8, from a damaged page, ends the search
