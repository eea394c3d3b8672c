"""The registry: the only writer of run states."""

import builtins
import json
import sqlite3
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from mosaic.model.errors import (
    BadConfig,
    GpuTaken,
    IllegalMove,
    KeyTaken,
    RunIsLive,
    StoreFailed,
    UnknownRun,
)
from mosaic.model.reserve import Reserve
from mosaic.model.run import Ending, Move, RunConfig, RunRecord
from mosaic.model.rundir import EVALS
from mosaic.model.states import LIVE_STATES, MOVES, RunState
from mosaic.registry.change import Changes
from mosaic.registry.experiments import Experiments
from mosaic.registry.file import STEPS, fetch, open_file
from mosaic.registry.queries import Queries
from mosaic.registry.records import Records
from mosaic.registry.reference import resolve
from mosaic.registry.room import allocate_wal, even_on_a_full_disk
from mosaic.registry.row import COLUMNS, RESTORE, new_row, read_object, to_move, to_record

MOST_VALUES = 500  # in one statement
NewRun = tuple[RunConfig, str]  # and a note for its history
NewExperiment = tuple[str, Mapping[str, Any], str | None, bool]  # the arguments of `Experiments.put`


class Registry:
    """Runs, their moves, and which run owns which GPU.

    1. A run makes only the moves in `MOVES`; of two callers that race to end a run, one wins.
    2. When a call returns, its change is on the disk, together with its line of history.
    3. A GPU has one owner; a drained GPU has none.
    4. Every change increases `revision()` and stores it in the rows that changed, so a watcher can find them.

    One connection, used by one thread.
    """

    def __init__(self, path: Path, steps: Sequence[str] = STEPS, now: Callable[[], float] = time.time) -> None:
        self._path = path
        self._now = now
        self._db = open_file(path, steps)
        self._changes = Changes(self._db, path, Records(path.parent / "control"))
        self._changes.catch_up()
        self.experiments = Experiments(self._db, self._changes, now)
        self.queries = Queries(self._db)
        self.reserve = Reserve(path.parent / "reserve")
        allocate_wal(path)

    @classmethod
    def open(cls, path: Path) -> "Registry":
        return cls(Path(path))

    def close(self) -> None:
        self._changes.close()
        self._db.close()

    # Submitting

    def add(self, config: RunConfig, note: str = "") -> tuple[RunRecord, bool]:
        """Add a run in INIT, with a note in its history. A known idempotency key returns its run, and False."""
        known = self.with_key(config.idempotency_key, config.config_hash)
        if known:
            return known, False
        with self._changes.change() as revision:
            self._refuse_used_id(config.run_id)
            self._insert(config, revision)
            self._write_history(config.run_id, None, RunState.INIT, note)
        return self.get(config.run_id), True

    def add_all(self, entries: Sequence[NewRun], experiment: NewExperiment | None = None) -> "builtins.list[RunRecord]":
        """Add many runs in INIT, and create or extend their experiment, in one transaction: all of it or nothing."""
        with self._changes.change() as revision:
            if experiment:
                self.experiments.put_within(revision, *experiment)
            for config, note in entries:
                self._refuse_used_id(config.run_id)
                self._insert(config, revision)
                self._write_history(config.run_id, None, RunState.INIT, note)
        return self.with_ids([config.run_id for config, _ in entries])

    def with_key(self, key: str, config_hash: str) -> RunRecord | None:
        """The run with this idempotency key, if any; an empty key has none. KeyTaken if its config was another one."""
        rows = self._records("WHERE idempotency_key = ? AND idempotency_key <> ''", (key,))
        if not rows:
            return None
        # Empty: the row was written by a MOSAIC that stored no hash.
        if self._value("SELECT config_hash FROM runs WHERE id = ?", rows[0].run_id) not in ("", config_hash):
            raise KeyTaken(key, rows[0].run_id, rows[0].name)
        return rows[0]

    # Importing: a run that ended elsewhere has its last state from the beginning (docs/adr/0028)

    def add_imported(self, config: RunConfig, ending: Ending, note: str) -> RunRecord:
        """Add a run that another program recorded, with its own times, in the state that it ended in."""
        with self._changes.change() as revision:
            self._refuse_used_id(config.run_id)
            self._insert(config, revision)
            self._end_imported(config.run_id, ending, revision)
            self._write_history(config.run_id, None, ending.state, note)
        return self.get(config.run_id)

    def grow_imported(self, run_id: str, ending: Ending, note: str) -> RunRecord:
        """Change the end of an imported run whose files have grown. One line of history tells of the last time."""
        with self._changes.change() as revision:
            old = self.state(run_id)
            if not self._end_imported(run_id, ending, revision):
                raise IllegalMove(run_id, old, ending.state)
            self._db.execute("DELETE FROM history WHERE run_id = ? AND old IS NOT NULL", (run_id,))
            self._write_history(run_id, old, ending.state, note)
        return self.get(run_id)

    def _end_imported(self, run_id: str, ending: Ending, revision: int) -> int:
        return self._db.execute(
            "UPDATE runs SET state = ?, reason = ?, created_at = ?, updated_at = ?, revision = ? "
            "WHERE id = ? AND origin <> ''",
            (ending.state.value, ending.reason, ending.created_at, ending.updated_at, revision, run_id),
        ).rowcount

    # Reading

    def has(self, run_id: str) -> bool:
        return self._value("SELECT 1 FROM runs WHERE id = ?", run_id) is not None

    def get(self, run_id: str) -> RunRecord:
        rows = self._records("WHERE id = ?", (run_id,))
        if not rows:
            raise UnknownRun(run_id)
        return rows[0]

    def find(self, reference: str, trainings_only: bool = False) -> RunRecord:
        """The run that a reference means: an id or its start, a name, `last`, `last~N` (see `reference.py`)."""
        return resolve(self, reference, trainings_only)

    def with_id(self, run_id: str) -> RunRecord | None:
        return next(iter(self._records("WHERE id = ?", (run_id,))), None)

    def with_ids(self, run_ids: Sequence[str]) -> "builtins.list[RunRecord]":
        """These runs in this order; unknown ids are left out."""
        found: dict[str, RunRecord] = {}
        for start in range(0, len(run_ids), MOST_VALUES):
            some = tuple(run_ids[start : start + MOST_VALUES])
            found |= {record.run_id: record for record in self._records(f"WHERE id IN ({_marks(some)})", some)}
        return [found[run_id] for run_id in run_ids if run_id in found]

    def submitted_before(self, n: int, trainings_only: bool = False) -> RunRecord | None:
        """The newest run for 0, the one before it for 1, and so on. Parts of runs do not count."""
        where = f"AND area != '{EVALS}'" if trainings_only else ""
        return next(
            iter(self._records(f"WHERE relation != 'part' {where} ORDER BY number DESC LIMIT 1 OFFSET ?", (n,))), None
        )

    def named(self, name: str, limit: int) -> "builtins.list[RunRecord]":
        """Runs with this name, newest first."""
        return self._records("WHERE name = ? ORDER BY number DESC LIMIT ?", (name, limit))

    def starting_with(self, start: str, limit: int) -> "builtins.list[RunRecord]":
        """Runs whose ids start with `start`, newest first."""
        # A range instead of LIKE: it uses the index and has no wildcards. '~' sorts after every character of an id.
        return self._records("WHERE id >= ? AND id < ? ORDER BY number DESC LIMIT ?", (start, start + "~", limit))

    def newest_names(self) -> "builtins.list[str]":
        """Names of the newest runs, for suggestions: few enough to compare without delaying other calls."""
        newest = self._db.execute("SELECT name FROM runs ORDER BY number DESC LIMIT 1000").fetchall()
        return builtins.list(dict.fromkeys(name for (name,) in newest if name))[:300]

    def now(self) -> float:
        return self._now()

    def list(
        self, states: Iterable[RunState] = (), limit: int = 0, before: int = 0, experiment: str = ""
    ) -> "builtins.list[RunRecord]":
        """Newest first. No states: runs in any state. Limit 0: all of them. `before`: older than this number.

        `experiment`: only its runs.
        """
        where, values = _that(states, before, experiment)
        return self._records(f"{where} ORDER BY number DESC LIMIT ?", (*values, limit or -1))

    def count(self, states: Iterable[RunState] = (), experiment: str = "") -> int:
        where, values = _that(states, experiment=experiment)
        return int(self._value(f"SELECT count(*) FROM runs {where}", *values))

    def live(self) -> "builtins.list[RunRecord]":
        """All runs that are not over, oldest first."""
        where, names = _in_states(LIVE_STATES)
        return self._records(f"{where} ORDER BY number", names)

    def started(self) -> "builtins.list[RunRecord]":
        """The live runs that are claimed or queued at a cluster, and those that are to be cancelled; oldest first."""
        names = tuple(state.value for state in LIVE_STATES)
        where = f"WHERE state IN ({_marks(names)}) AND (state <> ? OR cancel_requested OR attempt > 0)"
        return self._records(f"{where} ORDER BY number", (*names, RunState.INIT.value))

    def state(self, run_id: str) -> RunState:
        value = self._value("SELECT state FROM runs WHERE id = ?", run_id)
        if value is None:
            raise UnknownRun(run_id)
        try:
            return RunState(value)
        except ValueError:
            raise StoreFailed(f"Run {run_id}: its registry row is damaged (state). {RESTORE}") from None

    def history(self, run_id: str) -> "builtins.list[Move]":
        sql = "SELECT old, new, at, reason FROM history WHERE run_id = ? ORDER BY rowid"
        return [move for row in fetch(self._db, sql, (run_id,)) if (move := to_move(row))]

    def settings(self, run_id: str) -> dict[str, Any]:
        """The settings in force, under dotted keys; empty for a run from an older MOSAIC."""
        value = self._value("SELECT settings FROM runs WHERE id = ?", run_id)
        if value is None:
            raise UnknownRun(run_id)
        return read_object(value)

    def children(self, run_id: str) -> "builtins.list[RunRecord]":
        """Runs that were derived from this one, oldest first."""
        return self._records("WHERE parent_run_id = ? ORDER BY number", (run_id,))

    def revision(self) -> int:
        return self._changes.revision

    def ended_afar(self, since: float) -> "builtins.list[RunRecord]":
        """Runs on other machines that have ended after `since` (unix seconds)."""
        names = tuple(state.value for state in RunState if state.is_over)
        where = f"WHERE state IN ({_marks(names)}) AND runs_on != '' AND attempt > 0 AND updated_at > ? ORDER BY number"
        return self._records(where, (*names, since))

    def parts(self, live_only: bool = False) -> "builtins.list[RunRecord]":
        """Runs that are parts of others, oldest first."""
        where, names = _in_states(LIVE_STATES if live_only else ())
        return self._records(f"{where} {'AND' if where else 'WHERE'} relation = 'part' ORDER BY number", names)

    def parts_of(self, run_id: str) -> "builtins.list[tuple[RunRecord, str]]":
        """The parts of this run, oldest first, each with the key that it was submitted with."""
        sql = "SELECT id, idempotency_key FROM runs WHERE parent_run_id = ? AND relation = 'part'"
        keys = dict(fetch(self._db, sql, (run_id,)))
        return [(run, str(keys[run.run_id])) for run in self.children(run_id) if run.run_id in keys]

    def incomplete(self) -> "builtins.list[RunRecord]":
        """Runs that are over but whose last output is not stored yet."""
        return self._records("WHERE telemetry = 'incomplete' ORDER BY number", ())

    # Moving

    @even_on_a_full_disk
    def move(self, run_id: str, new: RunState, reason: str = "") -> RunRecord:
        """Move a run to `new`, or raise and change nothing."""
        with self._changes.change() as revision:
            self._move(run_id, new, reason, revision)
        return self.get(run_id)

    def claim(self, run_id: str, gpus: Sequence[str]) -> int:
        """Move from INIT to HANDSHAKE, start an attempt and grant these GPUs, all or nothing. Returns the attempt."""
        with self._changes.change() as revision:
            if self._value("SELECT cancel_requested FROM runs WHERE id = ?", run_id):
                raise IllegalMove(run_id, f"{self.state(run_id)} and being cancelled", RunState.HANDSHAKE)
            self._move(run_id, RunState.HANDSHAKE, "", revision)
            self._grant(run_id, gpus)
            self._db.execute("UPDATE runs SET attempt = attempt + 1, session = '' WHERE id = ?", (run_id,))
        return self.get(run_id).attempt

    # A run on another machine stays in INIT while its cluster queues it.

    def place(self, run_id: str) -> int:
        """Start an attempt of a run in INIT that is handed over to a cluster. Returns the attempt."""
        with self._changes.change() as revision:
            placed = self._db.execute(
                "UPDATE runs SET attempt = attempt + 1, session = '', job = '', node = '', revision = ? "
                "WHERE id = ? AND state = ? AND NOT cancel_requested",
                (revision, run_id, RunState.INIT.value),
            ).rowcount
            if not placed:
                raise IllegalMove(run_id, f"{self.state(run_id)} or being cancelled", RunState.HANDSHAKE)
        return self.get(run_id).attempt

    def note_job(self, run_id: str, attempt: int, job: str) -> None:
        """Record what the cluster calls the job of this attempt; of an older attempt nothing is recorded."""
        with self._changes.change() as revision:
            self._db.execute(
                "UPDATE runs SET job = ?, revision = ? WHERE id = ? AND attempt = ?", (job, revision, run_id, attempt)
            )

    def arrive(self, run_id: str) -> None:
        """Move a run whose cluster has started it from INIT to HANDSHAKE. Any other run does not change."""
        record = self.get(run_id)
        if record.state is RunState.INIT and record.on and record.attempt:
            with self._changes.change() as revision:
                self._move(run_id, RunState.HANDSHAKE, "", revision)

    def raise_attempt(self, run_id: str) -> int:
        """Start a new attempt for a claim whose holder never started; the old session becomes invalid."""
        with self._changes.change() as revision:
            raised = self._db.execute(
                "UPDATE runs SET attempt = attempt + 1, session = '', job = '', node = '', revision = ? "
                "WHERE id = ? AND state = ?",
                (revision, run_id, RunState.HANDSHAKE.value),
            ).rowcount
            if not raised:
                raise IllegalMove(run_id, self.state(run_id), RunState.HANDSHAKE)
        return self.get(run_id).attempt

    @even_on_a_full_disk
    def request_cancel(self, run_id: str, reason: str = "") -> RunRecord:
        """Record that this run is to be cancelled, and why. A run that is over or being cancelled does not change."""
        record = self.get(run_id)
        if not record.state.is_over:
            self.reserve.spend_if_scarce()  # its holder has to write how it ended
        if record.state.is_over or record.cancel_requested:
            return record
        with self._changes.change() as revision:
            self._db.execute(
                "UPDATE runs SET cancel_requested = 1, reason = ?, revision = ? WHERE id = ?",
                (reason, revision, run_id),
            )
        return self.get(run_id)

    def note(
        self,
        run_id: str,
        *,
        waiting_for: str | None = None,
        held_by: str | None = None,
        telemetry: str | None = None,
        node: str | None = None,
    ) -> None:
        """Change the texts that listings show beside the state; None keeps a text."""
        record = self.get(run_id)
        wanted = {"waiting_for": waiting_for, "held_by": held_by, "telemetry": telemetry, "node": node}
        news = {name: text for name, text in wanted.items() if text is not None and text != getattr(record, name)}
        if not news:
            return
        sets = ", ".join(f"{name} = ?" for name in news)
        with self._changes.change() as revision:
            self._db.execute(f"UPDATE runs SET {sets}, revision = ? WHERE id = ?", (*news.values(), revision, run_id))

    def remark(self, run_id: str, text: str) -> None:
        """Add a line to the history of a run that does not change its state."""
        state = self.state(run_id)
        with self._changes.change() as revision:
            self._write_history(run_id, state, state, text)
            self._stamp(run_id, revision)

    def note_waiting(self, texts: Mapping[str, str]) -> None:
        """Change what many runs wait for, in one transaction."""
        with self._changes.change(are_recorded=False) as revision:
            self._db.executemany(
                "UPDATE runs SET waiting_for = ?, revision = ? WHERE id = ? AND state = ?",
                [(text, revision, run_id, RunState.INIT.value) for run_id, text in texts.items()],
            )

    def edit(self, tags: Mapping[str, Sequence[str]], name: str | None = None, note: str | None = None) -> None:
        """Set the tags of each of these runs, and the name and the note of all of them; None keeps it.

        All of them change, or none.
        """
        with self._changes.change() as revision:
            for run_id, texts in tags.items():
                values = (name, note, json.dumps(texts), revision, run_id)
                edited = self._db.execute(
                    "UPDATE runs SET name = coalesce(?, name), note = coalesce(?, note), tags = ?, revision = ? "
                    "WHERE id = ?",
                    values,
                ).rowcount
                if not edited:
                    raise UnknownRun(run_id)

    @even_on_a_full_disk
    def delete(self, run_id: str) -> None:
        """Delete a run that is over. Its id is recorded and cannot be used again."""
        state = self.state(run_id)
        if not state.is_over:
            raise RunIsLive(run_id, state)
        held = [uuid for uuid, owner in self.gpu_owners().items() if owner == run_id]
        if held:
            raise GpuTaken(held[0], run_id)
        with self._changes.change() as revision:
            self._db.execute("DELETE FROM runs WHERE id = ?", (run_id,))
            self._db.execute("INSERT INTO deleted VALUES (?, ?)", (run_id, revision))
            self._changes.tell({"deleted": run_id, "revision": revision})

    # Sessions

    def set_session(self, run_id: str, token_hash: str, capabilities: dict[str, Any] | None = None) -> None:
        """Set the session of this attempt, and the worker's capabilities; None keeps the capabilities."""
        known = self.capabilities(run_id)
        news = known if capabilities is None else capabilities
        if self.session(run_id) == token_hash and news == known:
            return
        with self._changes.change() as revision:
            self._db.execute(
                "UPDATE runs SET session = ?, capabilities = ?, revision = ? WHERE id = ?",
                (token_hash, json.dumps(news) if news else "", revision, run_id),
            )

    def capabilities(self, run_id: str) -> dict[str, Any]:
        """The capabilities that the worker registered; empty before registration."""
        value = self._value("SELECT capabilities FROM runs WHERE id = ?", run_id)
        if value is None:
            raise UnknownRun(run_id)
        return read_object(value or "{}")

    def session(self, run_id: str) -> str:
        """The hash of this attempt's session token; empty before registration."""
        value = self._value("SELECT session FROM runs WHERE id = ?", run_id)
        if value is None:
            raise UnknownRun(run_id)
        return str(value)

    def sessions(self) -> dict[str, str]:
        """The runs that may still send something, by the hashes of their session tokens."""
        where, names = _in_states(LIVE_STATES)
        rows = self._db.execute(f"SELECT session, id FROM runs {where} OR telemetry <> ''", names)
        return {session: run_id for session, run_id in rows if session}

    def note_heartbeat_calls(self, run_id: str) -> None:
        """Record that this run's worker calls Heartbeat, so that missing heartbeats count from now on."""
        if not self.calls_heartbeat(run_id):
            with self._changes.change() as revision:
                self._db.execute("UPDATE runs SET calls_beats = 1, revision = ? WHERE id = ?", (revision, run_id))

    def calls_heartbeat(self, run_id: str) -> bool:
        value = self._value("SELECT calls_beats FROM runs WHERE id = ?", run_id)
        if value is None:
            raise UnknownRun(run_id)
        return bool(value)

    # GPUs

    def gpu_owners(self) -> dict[str, str]:
        """The run that owns each granted GPU."""
        return dict(self._db.execute("SELECT uuid, run_id FROM gpus ORDER BY run_id, position"))

    @even_on_a_full_disk
    def free_gpus(self, run_id: str) -> None:
        """Free a run's GPUs. Only after its process tree is proven dead."""
        if run_id not in self.gpu_owners().values():
            return
        with self._changes.change() as revision:
            self._db.execute("DELETE FROM gpus WHERE run_id = ?", (run_id,))
            self._stamp(run_id, revision)

    @even_on_a_full_disk
    def drain_gpus(self, run_id: str, reason: str) -> None:
        """Take a run's GPUs away and grant them to no other run: a process may still be using them."""
        with self._changes.change() as revision:
            self._db.execute(
                "INSERT OR REPLACE INTO drained SELECT uuid, run_id, ?, ? FROM gpus WHERE run_id = ?",
                (reason, self._now(), run_id),
            )
            self._db.execute("DELETE FROM gpus WHERE run_id = ?", (run_id,))
            self._stamp(run_id, revision)
            self._tell_drained(revision)

    def drained(self) -> dict[str, str]:
        """The reason why each drained GPU is not granted."""
        return dict(self._db.execute("SELECT uuid, reason FROM drained ORDER BY uuid"))

    def undrain(self, uuid: str) -> None:
        with self._changes.change() as revision:
            self._db.execute("DELETE FROM drained WHERE uuid = ?", (uuid,))
            self._tell_drained(revision)

    # Inside a transaction

    def _tell_drained(self, revision: int) -> None:
        rows = [builtins.list(row) for row in self._db.execute("SELECT * FROM drained")]
        self._changes.tell({"drained": rows, "revision": revision})

    def _move(self, run_id: str, new: RunState, reason: str, revision: int) -> None:
        old = self.state(run_id)
        olds = [state.value for state, allowed in MOVES.items() if new in allowed]
        # A worker that registers after its cancel was requested must not erase the reason of it.
        kept = "?" if new.is_over else "CASE WHEN cancel_requested THEN reason ELSE ? END"
        # The condition is part of the statement, so two callers that race to end a run cannot both win.
        moved = self._db.execute(
            f"UPDATE runs SET state = ?, reason = {kept}, waiting_for = '', updated_at = ?, revision = ? "
            f"WHERE id = ? AND state IN ({_marks(olds)})",
            (new.value, reason, self._now(), revision, run_id, *olds),
        ).rowcount
        if not moved:
            raise IllegalMove(run_id, old, new)
        self._write_history(run_id, old, new, reason)

    def _write_history(self, run_id: str, old: RunState | None, new: RunState, reason: str) -> None:
        row = (run_id, old.value if old else None, new.value, self._now(), reason)
        self._db.execute("INSERT INTO history VALUES (?, ?, ?, ?, ?)", row)

    def _grant(self, run_id: str, gpus: Sequence[str]) -> None:
        drained = self.drained()
        for position, uuid in enumerate(gpus):
            if uuid in drained:
                raise GpuTaken(uuid, drained[uuid])
            try:
                self._db.execute("INSERT INTO gpus VALUES (?, ?, ?)", (uuid, run_id, position))
            except sqlite3.IntegrityError as error:
                raise GpuTaken(uuid, self.gpu_owners()[uuid]) from error

    def _stamp(self, run_id: str, revision: int) -> None:
        self._db.execute("UPDATE runs SET revision = ? WHERE id = ?", (revision, run_id))

    def _refuse_used_id(self, run_id: str) -> None:
        # Ids of deleted runs too: a late worker of the old run must not be mistaken for one of the new run.
        if self._value("SELECT 1 FROM runs WHERE id = ?1 UNION SELECT 1 FROM deleted WHERE run_id = ?1", run_id):
            raise BadConfig("metadata.run_id", f"{run_id} has been used before. Leave it out to get a new id.")

    def _insert(self, config: RunConfig, revision: int) -> None:
        row = new_row(config, self._now(), revision)
        self._db.execute(f"INSERT INTO runs ({', '.join(row)}) VALUES ({_marks(row)})", tuple(row.values()))

    def _value(self, sql: str, *values: object) -> Any:
        """The first column of the first row; None if there is no row."""
        row = self._db.execute(sql, values).fetchone()
        return None if row is None else row[0]

    def _records(self, clause: str, values: Sequence[object]) -> "builtins.list[RunRecord]":
        rows = fetch(self._db, f"SELECT {COLUMNS} FROM runs {clause}", values)
        granted: dict[str, tuple[str, ...]] = {}
        for uuid, run_id in self.gpu_owners().items():
            granted[run_id] = (*granted.get(run_id, ()), uuid)
        return [to_record(row, granted.get(row[0], ())) for row in rows]


def _that(states: Iterable[RunState], before: int = 0, experiment: str = "") -> tuple[str, tuple[object, ...]]:
    """A WHERE clause and its values; conditions that are empty are left out."""
    names = tuple(state.value for state in states)
    conditions: builtins.list[tuple[str, tuple[object, ...]]] = [
        (f"state IN ({_marks(names)})", names),
        ("number < ?", (before,) if before else ()),
        ("experiment = ? AND experiment <> ''", (experiment,) if experiment else ()),
    ]
    given = [(text, values) for text, values in conditions if values]
    where = f"WHERE {' AND '.join(text for text, _ in given)}" if given else ""
    return where, tuple(value for _, values in given for value in values)


def _in_states(states: Iterable[RunState]) -> tuple[str, tuple[str, ...]]:
    names = tuple(state.value for state in states)
    return (f"WHERE state IN ({_marks(names)})" if names else "", names)


def _marks(values: Iterable[object]) -> str:
    return ", ".join("?" for _ in values)
