"""The judge: reads what a trial left on disk and reports which promises were broken. It does not need a daemon."""

import bisect
import contextlib
import itertools
import json
import shutil
import sqlite3
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mosaic.model.rundir import RunDir, StateRoot
from mosaic.model.states import MOVES, RunState

Event = tuple[str, int]
STREAMS = ("stdout", "stderr")
TABLES = {"step": "step_index", "episode": "episode_index", "metric": "step", "lifecycle": "event"}
CANCEL: Event = ("lifecycle:run_cancelled", 0)
FAILURE: Event = ("lifecycle:run_failed", 0)
GARBAGE_THAT_IS_DATA = {"garbage:nan", "garbage:infinity"}


@dataclass
class Witness:
    """What the trial knows about one run: the replies it got and what it did."""

    run_id: str
    may_end: set[tuple[RunState, str]]
    seen: list[RunState] = field(default_factory=list)  # in replies, in order
    cancel_answered: bool = False  # while the run was not over
    is_deleted: bool = False
    spool_was_torn: bool = False
    telemetry_was_deleted: bool = False  # while every line was in the spool
    telemetry_was_spoiled: bool = False  # its content is no longer MOSAIC's
    takes_commands: bool = False
    may_lose_lines: bool = False  # its disk refused some
    acknowledged: list[int] = field(default_factory=list)  # the numbers of its commands, as its one client got them
    record: Path = Path()


def violations_of(root: StateRoot, witness: Witness) -> Iterator[str]:
    with contextlib.closing(_read_only(root.registry)) as db:
        row = db.execute("SELECT area, state, reason FROM runs WHERE id = ?", (witness.run_id,)).fetchone()
        history = db.execute("SELECT old, new FROM history WHERE run_id = ? ORDER BY rowid", (witness.run_id,))
        moves = history.fetchall()
    if witness.is_deleted:
        yield from ["it was deleted and still exists"] if row else []
        return
    if row is None:
        yield "its submit was acknowledged and it is not in the registry"
        return
    area, state, reason = row
    rundir = root.run(area, witness.run_id)
    yield from _check_moves(moves, RunState(state), witness)
    yield from _check_end(RunState(state), reason, witness)
    yield from _check_launches(witness.record)
    if witness.telemetry_was_spoiled:
        pass  # the run has ended with a reason, which is all that is promised
    elif rundir.telemetry.exists():
        yield from _check_telemetry(rundir, witness)
        if witness.takes_commands:
            yield from _check_commands(rundir, RunState(state), witness)
    elif rundir.stdout.exists() and rundir.stdout.stat().st_size:
        yield "it printed something and has no telemetry file"
    if witness.record.exists():  # a worker that never ran created no segment; the file is the trial's own
        yield from [f"{path} is left over" for path in Path("/dev/shm").glob(f"mosaic.fastlane.{witness.run_id}*")]


def violations_of_all(root: StateRoot) -> Iterator[str]:
    """What must hold when every run is over."""
    with contextlib.closing(_read_only(root.registry)) as db:
        for uuid, run_id in db.execute("SELECT uuid, run_id FROM gpus"):
            yield f"{uuid} still belongs to {run_id}"
        for uuid, why in db.execute("SELECT uuid, reason FROM drained"):
            yield f"{uuid} is drained: {why}"
        if (verdict := db.execute("PRAGMA integrity_check").fetchone()[0]) != "ok":
            yield f"registry.db is damaged: {verdict}"


# Moves and ends


def _check_moves(moves: list[tuple[str, str]], state: RunState, witness: Witness) -> Iterator[str]:
    path = [RunState(new) for _, new in moves]
    if not path or path[0] is not RunState.INIT or path[-1] is not state:
        yield f"its history {path} does not lead from INIT to {state}"
    for old, new in itertools.pairwise(path):
        if new not in MOVES.get(old, ()):
            yield f"it moved from {old} to {new}"
    if [old for old, _ in moves[1:]] != [new for _, new in moves[:-1]]:
        yield f"its history has a gap: {moves}"
    # Every state that a client saw is in the history, in the same order.
    rest = iter(path)
    for state_seen in witness.seen:
        if state_seen not in rest:
            yield f"it was reported as {state_seen} (in the order {witness.seen}), and its history is {path}"
            return


def _check_end(state: RunState, reason: str, witness: Witness) -> Iterator[str]:
    if not state.is_over:
        yield f"it is still {state}"
        return
    may_end = witness.may_end
    if witness.cancel_answered:
        may_end = {(end, why) for end, why in may_end if end is RunState.CANCELLED or why.startswith("spawn error")}
    if not any(state is end and reason.startswith(why) for end, why in may_end):
        expected = ", ".join(sorted(f"{end} {why}".strip() for end, why in may_end))
        yield f"it ended as {state} '{reason.partition(chr(10))[0]}'; the faults lead to: {expected}"


def _check_launches(record: Path) -> Iterator[str]:
    """A worker first prints run_started, which has number 0 in its record."""
    starts = sum(line.startswith("0 ") for line in record_lines(record))
    if starts > 1:
        yield f"its worker was started {starts} times"


# Telemetry


def _check_telemetry(rundir: RunDir, witness: Witness) -> Iterator[str]:
    with _copy_of(rundir.telemetry) as db:
        if (verdict := db.execute("PRAGMA integrity_check").fetchone()[0]) != "ok":
            yield f"telemetry.sqlite is damaged: {verdict}"
            return
        events = _stored_events(db)
        seqs = [seq for seq, _ in events]
        if seqs != list(range(1, len(seqs) + 1)):
            yield f"its seqs are not 1 to {len(seqs)}: {_first_difference(seqs, list(range(1, len(seqs) + 1)))}"
        yield from _check_offsets(db, rundir)
        yield from _check_lines(db, rundir, len(events))
        if not (witness.telemetry_was_deleted and _names_a_gap(db)):
            yield from _check_record([event for _, event in events], rundir, witness)


def _names_a_gap(db: sqlite3.Connection) -> bool:
    """A store that was built again from a spool which begins too late says what is missing."""
    return bool(db.execute("SELECT count(*) FROM gaps").fetchone()[0])


def _check_offsets(db: sqlite3.Connection, rundir: RunDir) -> Iterator[str]:
    cursors = dict(db.execute("SELECT stream, next_offset FROM cursor"))
    for number, name in enumerate(STREAMS):
        size = rundir.spool(name).stat().st_size if rundir.spool(name).exists() else 0
        if cursors[number] != size:
            yield f"{name} has {size} bytes and the store ends at {cursors[number]}"


def _check_lines(db: sqlite3.Connection, rundir: RunDir, events: int) -> Iterator[str]:
    """Every line is an event, text or a reject: there are as many events as lines that are neither text nor rejects."""
    if db.execute("SELECT count(*) FROM gaps WHERE seq = 0").fetchone()[0]:
        return  # bytes were lost, and the store has recorded that
    data = rundir.stdout.read_bytes() if rundir.stdout.exists() else b""
    if b"\0" * 4096 in data:
        return  # acknowledged bytes were punched
    covered = _covered(db, 0)
    lines = sum(not _is_in(at, covered) for at in _line_starts(data))
    if lines != events:
        yield f"{lines} lines of its spool are neither text nor rejects, and {events} events are stored"
    errors = rundir.stderr.read_bytes() if rundir.stderr.exists() else b""
    stored = b"".join(text for (text,) in db.execute("SELECT text FROM logs WHERE stream = 1 ORDER BY offset"))
    if stored != errors and not _covered_rejects(db, 1):
        yield f"stderr has {len(errors)} bytes, and the {len(stored)} stored bytes are not the same"


def _covered(db: sqlite3.Connection, stream: int) -> list[tuple[int, int]]:
    texts = db.execute("SELECT offset, offset + length(text) FROM logs WHERE stream = ?", (stream,)).fetchall()
    return sorted([*texts, *_covered_rejects(db, stream)])


def _covered_rejects(db: sqlite3.Connection, stream: int) -> list[tuple[int, int]]:
    return db.execute("SELECT offset, offset + length FROM rejects WHERE stream = ?", (stream,)).fetchall()


def _is_in(at: int, ranges: list[tuple[int, int]]) -> bool:
    n = bisect.bisect_right(ranges, at, key=lambda one: one[0])
    return n > 0 and at < ranges[n - 1][1]


def _line_starts(data: bytes) -> Iterator[int]:
    at = 0
    while at < len(data):
        yield at
        at = (data.find(b"\n", at) + 1) or len(data)


def _check_record(stored: list[Event], rundir: RunDir, witness: Witness) -> Iterator[str]:
    """What the worker has recorded is stored, in its order; at most one more line was printed than recorded."""
    printed = [event for line in record_lines(witness.record) if (event := _event_of(line))]
    # The SDK's own report of lost lines is not in the record.
    kept = [event for event in stored if event != ("lifecycle:telemetry_gap", 0)]
    kept = _without_the_interrupted(kept, printed, CANCEL)
    if CANCEL in printed and _is_within_a_line(rundir):
        printed.remove(CANCEL)
    if witness.may_lose_lines:  # what print() could not write stays in its buffer and is written with the next line
        kept = _without_the_interrupted(kept, printed, FAILURE)
    unsure = 1 + witness.spool_was_torn
    if kept[: len(printed)] != printed or len(kept) > len(printed) + unsure:
        yield f"it printed {len(printed)} events and {len(kept)} are stored: {_first_difference(kept, printed)}"


def _is_within_a_line(rundir: RunDir) -> bool:
    """Whether run_cancelled ended a line that a SIGTERM had cut: then it is no line of its own."""
    data = rundir.stdout.read_bytes() if rundir.stdout.exists() else b""
    last = data.rstrip(b"\n").rpartition(b"\n")[2]
    return not last.startswith(b"{") and b'{"event":"run_cancelled"' in last


def _without_the_interrupted(stored: list[Event], printed: list[Event], last: Event) -> list[Event]:
    """A SIGTERM may arrive between a line and its note: then one more line is stored before run_cancelled."""
    if last not in printed:
        return stored
    at = printed.index(last)
    return stored[:at] + stored[at + 1 :] if stored[at + 1 : at + 2] == [last] else stored


def _check_commands(rundir: RunDir, state: RunState, witness: Witness) -> Iterator[str]:
    """Every acknowledged command reached the worker exactly once, in order; all of them, if the run was not ended."""
    sent = witness.acknowledged
    if sent != list(range(1, len(sent) + 1)):
        yield f"the numbers of its commands are not 1 to {len(sent)}: {sent}"
    *lines, _ = rundir.commands.read_text().split("\n")  # the last part is empty, or what a killed daemon left
    if [json.loads(line)["seq"] for line in lines] != list(range(1, len(lines) + 1)):
        yield "commands.jsonl is not a list of commands from 1 on"
    # From its private record: a full disk may refuse the line of a command that was carried out.
    done = [int(line.rsplit(" ", 1)[1]) for line in record_lines(witness.record) if " command " in line]
    if done != list(range(1, len(done) + 1)):
        yield f"its worker carried out the commands {done}"
    # One more may have been carried out than acknowledged: the run ended before the client could ask again.
    if len(done) > len(sent) + 1 or (state is RunState.TERMINATED and len(done) < len(sent)):
        yield f"{len(sent)} commands were acknowledged and its worker carried out {len(done)}"


def _stored_events(db: sqlite3.Connection) -> list[tuple[int, Event]]:
    found: list[tuple[int, Event]] = []
    for kind, column in TABLES.items():
        table = kind if kind == "lifecycle" else f"{kind}s"
        for seq, value in db.execute(f"SELECT seq, {column} FROM {table}"):
            found.append((seq, (f"lifecycle:{value}", 0) if kind == "lifecycle" else (kind, value)))
    return sorted(found)


def record_lines(record: Path) -> list[str]:
    try:
        text = record.read_text()
    except OSError:
        return []
    return [line for line in text.split("\n")[:-1] if not line.startswith("total ")]


def _event_of(line: str) -> Event | None:
    _, kind, step = line.rsplit(" ", 2)
    if kind in GARBAGE_THAT_IS_DATA:
        return "metric", 1
    if kind in TABLES or kind.startswith("lifecycle:"):
        return kind, int(step)
    return None


def _first_difference(these: list[Any], those: list[Any]) -> str:
    for n, (this, that) in enumerate(zip(these, those, strict=False)):
        if this != that:
            return f"number {n} is {json.dumps(this)} and should be {json.dumps(that)}"
    return f"the first {min(len(these), len(those))} agree"


@contextlib.contextmanager
def _copy_of(telemetry: Path) -> Iterator[sqlite3.Connection]:
    """A run's file as it is. Of a copy: a live daemon that shows it locks it, if a failing disk left it in WAL mode."""
    with tempfile.TemporaryDirectory() as folder:
        for path in (telemetry, Path(f"{telemetry}-wal")):
            if path.exists():
                shutil.copy(path, folder)
        with contextlib.closing(sqlite3.connect(f"{folder}/{telemetry.name}")) as db:
            yield db


def _read_only(path: Path) -> sqlite3.Connection:
    return sqlite3.connect(f"file:{path}?mode=ro", uri=True, timeout=5.0)
