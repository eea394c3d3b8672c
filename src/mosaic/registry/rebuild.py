"""Rebuilds `registry.db` from its newest intact copy and the records of the runs (see records.py).

 1. copy the newest intact file (the registry itself, one that was put aside, a backup) to registry.db.rebuilding
 2. apply every record that is not older than the row in the copy
 3. let the caller add what it finds in the folders of runs without a record
 4. put the old file aside as registry.db.damaged-TIME, and rename the new one to registry.db

Nothing is deleted. A kill at any point leaves the old file, or none: the next start begins again, and ends the same.
"""

import json
import os
import sqlite3
import time
from collections.abc import Callable, Collection
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mosaic.model import durable, sqlite
from mosaic.model.errors import MosaicError
from mosaic.model.experiment import check_name, read_document
from mosaic.model.states import RunState
from mosaic.registry.backups import candidates, newest_intact
from mosaic.registry.experiments import canonical_document
from mosaic.registry.file import fetch, open_file
from mosaic.registry.records import Record, Records
from mosaic.registry.registry import Registry
from mosaic.registry.row import COLUMNS, to_record

SUFFIXES = ("", "-wal", "-shm")


@dataclass
class Rebuilt:
    """What a rebuild did."""

    why: str
    at: float = 0.0
    started_from: str = ""  # the name of the file that was copied; empty: from the records alone
    damaged_file: str = ""  # the name under which the old file is kept; empty: there was none
    runs: int = 0  # in the new registry
    from_records: int = 0  # of them changed or added by their records
    from_folders: int = 0  # of them found without a record
    problems: list[str] = field(default_factory=list)


def rebuild(path: Path, backups: Path, why: str, fill: Callable[[Registry, Rebuilt], None]) -> Rebuilt:
    """Replace the registry by a new one. Only with the daemon's lock held. `fill` adds runs without a record."""
    done = Rebuilt(why, at=time.time())
    new = path.with_name(f"{path.name}.rebuilding")
    for suffix in SUFFIXES:
        Path(f"{new}{suffix}").unlink(missing_ok=True)
    records = Records(path.parent / "control")
    revision = _copy_newest(path, backups, new, done)
    with closing(open_file(new)) as db:
        _apply(db, records, max(revision, records.revision()), done)
    registry = Registry(new)
    try:
        fill(registry, done)
        done.runs = registry.count()
    finally:
        registry.close()
    _put_in_place(path, new, done)
    return done


def _copy_newest(path: Path, backups: Path, new: Path, done: Rebuilt) -> int:
    source, revision = newest_intact(candidates(path, backups))
    if source is None:
        return 0
    with closing(sqlite3.connect(source)) as db:
        sqlite.back_up(db, new)
    done.started_from = source.name
    return revision


# ---- records → rows


def _apply(db: sqlite3.Connection, records: Records, revision: int, done: Rebuilt) -> None:
    deleted = records.deleted()
    found = [record for run_id in records.run_ids() if run_id not in deleted and (record := records.read(run_id))]
    db.execute("PRAGMA foreign_keys = OFF")
    db.execute("BEGIN IMMEDIATE")
    for run_id, at in deleted.items():
        _delete(db, run_id, at)
    # Oldest first: if two records claim one GPU, the newest change wins.
    columns = {row[1] for row in db.execute("PRAGMA table_info(runs)")} - {"number"}
    for record in sorted(found, key=lambda record: record.revision):
        if record.revision >= _revision_in(db, record.run_id):
            _put(db, record, columns, done)
    _put_drained(db, records.drained())
    experiments = records.experiments()
    for name, (at, values) in experiments.items():
        _put_experiment(db, name, at, values, done)
    recorded = [*(record.revision for record in found), *deleted.values(), *(at for at, _ in experiments.values())]
    newest = max([revision, *recorded])
    # One more, so that no watcher takes a row of the new registry for one that it has seen.
    db.execute("UPDATE clock SET revision = ?", (newest + 1,))
    db.execute("COMMIT")
    db.execute("PRAGMA foreign_keys = ON")


def _put(db: sqlite3.Connection, record: Record, columns: Collection[str], done: Rebuilt) -> None:
    row = {name: value for name, value in record.row.items() if name in columns}
    row["revision"] = record.revision
    before = _whole_row(db, record.run_id)
    db.execute("SAVEPOINT run")
    try:
        _delete(db, record.run_id)
        number = _free_number(db, record.row.get("number"))
        names = ["number", *row]
        marks = ", ".join("?" * len(names))
        db.execute(f"INSERT INTO runs ({', '.join(names)}) VALUES ({marks})", (number, *row.values()))
        damage = to_record(fetch(db, f"SELECT {COLUMNS} FROM runs WHERE id = ?", (record.run_id,))[0], ()).damage
        if damage:
            raise ValueError(damage)
        for move in record.history:
            db.execute("INSERT INTO history VALUES (?, ?, ?, ?, ?)", (record.run_id, *move))
        for position, uuid in enumerate(record.gpus):
            db.execute("INSERT OR REPLACE INTO gpus VALUES (?, ?, ?)", (uuid, record.run_id, position))
    except (sqlite3.Error, ValueError, TypeError) as error:
        db.execute("ROLLBACK TO run")
        done.problems.append(f"The record of run {record.run_id} cannot be used: {error}")
    else:
        done.from_records += before != _whole_row(db, record.run_id)
    db.execute("RELEASE run")


def _delete(db: sqlite3.Connection, run_id: str, deleted_at: int = 0) -> None:
    db.execute("DELETE FROM history WHERE run_id = ?", (run_id,))
    db.execute("DELETE FROM gpus WHERE run_id = ?", (run_id,))
    db.execute("DELETE FROM runs WHERE id = ?", (run_id,))
    if deleted_at:
        db.execute("INSERT OR REPLACE INTO deleted VALUES (?, ?)", (run_id, deleted_at))


def _put_drained(db: sqlite3.Connection, drained: list[list[Any]] | None) -> None:
    if drained is None:
        return
    db.execute("DELETE FROM drained")
    for row in drained:
        db.execute("INSERT OR REPLACE INTO drained VALUES (?, ?, ?, ?)", row)


def _put_experiment(db: sqlite3.Connection, name: str, at: int, values: dict[str, Any] | None, done: Rebuilt) -> None:
    """Apply what was recorded of an experiment, unless the copy is newer. No values: it was deleted."""
    row = db.execute("SELECT revision FROM experiments WHERE name = ?", (name,)).fetchone()
    if row and isinstance(row[0], int) and row[0] > at:
        return
    if values is None:
        db.execute("DELETE FROM experiments WHERE name = ?", (name,))
        return
    try:
        document = read_document(json.loads(values["document"]))
        text = (check_name(name), canonical_document(document), str(values["note"]), float(values["created_at"]), at)
    except (MosaicError, KeyError, TypeError, ValueError) as error:
        done.problems.append(f"The record of the experiment {name} cannot be used: {error}")
        return
    db.execute("INSERT OR REPLACE INTO experiments VALUES (?, ?, ?, ?, ?)", text)


def _whole_row(db: sqlite3.Connection, run_id: str) -> list[Any]:
    # waiting_for is decided anew, and in no record.
    return fetch(db, f"SELECT {COLUMNS.replace('waiting_for, ', '')}, session FROM runs WHERE id = ?", (run_id,))


def _revision_in(db: sqlite3.Connection, run_id: str) -> int:
    row = db.execute("SELECT revision FROM runs WHERE id = ?", (run_id,)).fetchone()
    return row[0] if row and isinstance(row[0], int) else -1


def _free_number(db: sqlite3.Connection, wanted: object) -> int | None:
    """The recorded place in the order of submission; None, the end, if another run has it."""
    if not isinstance(wanted, int) or db.execute("SELECT 1 FROM runs WHERE number = ?", (wanted,)).fetchone():
        return None
    return wanted


# ---- runs without a record


def adopt(registry: Registry, run_id: str, attempt: int, gpus: Collection[str]) -> None:
    """A run whose holder was found alive: claimed, in this attempt, with these GPUs."""
    taken = {*registry.gpu_owners(), *registry.drained()}
    registry.claim(run_id, [uuid for uuid in gpus if uuid not in taken])
    while registry.get(run_id).attempt < attempt:
        registry.raise_attempt(run_id)


def end(registry: Registry, run_id: str, state: RunState, reason: str) -> None:
    """A run without a record that is over."""
    if state is RunState.TERMINATED:
        registry.move(run_id, RunState.HANDSHAKE)
        registry.move(run_id, RunState.READY)
    registry.move(run_id, state, reason)


# ---- the swap


def _put_in_place(path: Path, new: Path, done: Rebuilt) -> None:
    if Path(f"{new}-wal").exists():
        raise OSError(f"{new} is still in use")
    stamp = time.strftime("%Y%m%d-%H%M%S", time.gmtime(done.at))
    aside = _unused(path, stamp)
    # The WAL first: the new file must never lie beside the WAL of the old one.
    for suffix in reversed(SUFFIXES):
        old = Path(f"{path}{suffix}")
        if os.path.lexists(old):
            os.rename(old, f"{aside}{suffix}")
            done.damaged_file = aside.name
    durable.sync_folder(str(path.parent))
    os.rename(new, path)
    durable.sync_folder(str(path.parent))


def _unused(path: Path, stamp: str) -> Path:
    names = [f"{path.name}.damaged-{stamp}", *(f"{path.name}.damaged-{stamp}.{n}" for n in range(1, 1000))]
    free = (path.with_name(name) for name in names if not os.path.lexists(path.with_name(name)))
    return next(free)
