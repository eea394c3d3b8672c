"""A live run's file that is deleted, replaced, truncated or damaged: that run's trouble alone, and nothing is lost."""

import asyncio
import contextlib
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest
from ingest_batches import LINE, RUN, Spool, metric, step
from oddities import as_ordinary_user
from test_ingest_receive import ingest_in, rundir_of

from mosaic.ingest import run_file
from mosaic.ingest.store import RunStore
from mosaic.model.errors import StoreDamaged, StoreFailed, StoreIncomplete, WrongOffset
from mosaic.wire import mosaic_pb2 as pb


def send_to(store, total):
    """Send the lines up to `total` that the store does not have, as a tailer does after a registration."""
    spool = Spool(store.run_id)
    spool.offsets[pb.STDOUT] = store.cursor().stdout_offset
    first = spool.offsets[pb.STDOUT] // LINE
    return store.commit(spool.batch(*(step(i, float(i)) for i in range(first, total))))


def steps_in(store):
    events = store.tail(10_000).events
    assert [event.seq for event in events] == list(range(1, len(events) + 1))
    return [event.step.step_index for event in events]


def statement(path, sql):
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as db:
        db.execute(sql)


def other_runs_file(folder):
    other = RunStore(folder / "other.sqlite", "01JDZZZZZZZZZZZZZZZZZZZZZZ")
    send_to(other, 50)
    other.close(final=True)
    return other.path


HARM = {
    "deleted": lambda path: path.unlink(),
    "moved": lambda path: path.rename(path.parent / "elsewhere"),
    "a link": lambda path: (path.unlink(), path.symlink_to(path.parent / "precious")),
    "a FIFO": lambda path: (path.unlink(), os.mkfifo(path)),
    "a folder": lambda path: (path.unlink(), path.mkdir(), (path / "x").touch()),
    "an empty file": lambda path: (path.unlink(), path.touch()),
    "another run's file": lambda path: other_runs_file(path.parent).replace(path),
    "no -wal": lambda path: Path(f"{path}-wal").unlink(),
    "everything deleted": lambda path: [file.unlink() for file in path.parent.glob("telemetry.sqlite*")],
    "chmod 000": lambda path: path.chmod(0),
    "a folder as -shm": lambda path: Path(f"{path}-shm").mkdir(),
}


@pytest.mark.parametrize("harm", HARM)
def test_a_file_that_loses_its_name_is_restored_completely(path, store, harm):
    (path.parent / "precious").write_text("precious")
    send_to(store, 5)

    HARM[harm](path)
    commit = store.commit(spool_at(5).batch(step(5)))

    assert (commit.last_seq, commit.next_offset) == (6, 6 * LINE)
    note = store.summary().note
    store.close(final=True)
    assert steps_in(RunStore(path, RUN, read_only=True)) == [0, 1, 2, 3, 4, 5]
    assert ("restored" in note) == (harm not in ("chmod 000", "a folder as -shm"))
    assert (path.parent / "precious").read_text() == "precious"


def test_nothing_is_written_through_a_link_in_place_of_the_folder(tmp_path):
    folder, elsewhere = tmp_path / "run", tmp_path / "elsewhere"
    folder.mkdir()
    elsewhere.mkdir()
    (elsewhere / "telemetry.sqlite").write_text("somebody's")
    store = RunStore(folder / "telemetry.sqlite", RUN)
    send_to(store, 10)

    folder.rename(tmp_path / "moved")
    folder.symlink_to(elsewhere)

    for again in (store, RunStore(folder / "telemetry.sqlite", RUN)):
        with pytest.raises(StoreFailed, match="is a symbolic link"):
            send_to(again, 20)
    assert [(path.name, path.read_text()) for path in elsewhere.iterdir()] == [("telemetry.sqlite", "somebody's")]


def spool_at(lines):
    spool = Spool()
    spool.offsets[pb.STDOUT] = lines * LINE
    return spool


@pytest.mark.parametrize("harm", ["deleted", "no -wal", "everything deleted"])
def test_a_daemon_that_dies_after_the_loss_has_left_a_whole_file(path, store, harm):
    send_to(store, 5)
    HARM[harm](path)
    send_to(store, 6)

    copy = path.parent / "copy.sqlite"  # what a killed process leaves
    for suffix in ("", "-wal"):
        Path(f"{copy}{suffix}").write_bytes(Path(f"{path}{suffix}").read_bytes())

    assert steps_in(RunStore(copy, RUN)) == [0, 1, 2, 3, 4, 5]


@pytest.mark.parametrize("suffix", ["", "-wal"])
def test_a_truncated_file_is_set_aside_and_rebuilt_from_what_the_tailer_sends(path, store, suffix):
    send_to(store, 5)

    os.truncate(f"{path}{suffix}", 100)
    with pytest.raises(WrongOffset) as refused:
        store.commit(spool_at(5).batch(step(5)))
    cursor = store.cursor()
    send_to(store, 6)

    assert (refused.value.expected, cursor) == (0, pb.Cursor(next_seq=1))
    assert steps_in(store) == [0, 1, 2, 3, 4, 5]
    assert "was damaged and was rebuilt" in store.summary().note
    assert list(path.parent.glob("telemetry.sqlite.damaged-*"))
    store.close()
    assert "was damaged and was rebuilt" in RunStore(path, RUN).summary().note


DAMAGE = {
    "garbage": lambda path: path.write_bytes(b"this is not a database, but long enough to look like one" * 99),
    "a cut": lambda path: os.truncate(path, 5000),
    "no table": lambda path: statement(path, "DROP TABLE steps"),
    "a text as offset": lambda path: statement(path, "UPDATE cursor SET next_offset = 'x'"),
    "no cursor": lambda path: statement(path, "DELETE FROM cursor"),
    "a deep name set": lambda path: statement(path, f"INSERT INTO name_sets VALUES (9, '{'[' * 100_000}')"),
    "a wrong snapshot": lambda path: statement(path, "INSERT OR REPLACE INTO meta VALUES ('snapshot', 5)"),
    "another run's file": lambda path: other_runs_file(path.parent).replace(path),
    "a link": HARM["a link"],
    "a FIFO": HARM["a FIFO"],
    "a folder": HARM["a folder"],
    "a FIFO as -wal": lambda path: os.mkfifo(f"{path}-wal"),
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_a_file_that_was_damaged_while_it_was_closed_is_rebuilt(path, store, damage):
    (path.parent / "precious").write_text("precious")
    send_to(store, 5)
    store.close()

    DAMAGE[damage](path)
    send_to(store, 6)

    assert steps_in(store) == [0, 1, 2, 3, 4, 5]
    assert (path.parent / "precious").read_text() == "precious"


def test_what_the_spool_no_longer_has_is_a_gap_in_the_note(path, store):
    send_to(store, 5)
    os.truncate(path, 0)
    cursor = store.cursor()

    hole = Spool().batch(text=b"x" * 2_000_000)
    del hole.texts[:]
    hole.gaps.add(offset=0, length=2_000_000, reason="a hole in the spool")
    store.commit(hole)

    assert cursor.stdout_offset == 0
    assert "2.0 MB of its output are missing, so its events have new numbers, from 1" in store.summary().note
    store.close()
    assert "2.0 MB of its output are missing" in RunStore(path, RUN).summary().note


def hole(length):
    """The first batch of a rebuilt run whose spool no longer has its beginning."""
    batch = Spool("run").batch(text=b"x" * length)
    del batch.texts[:]
    batch.gaps.add(offset=0, length=length, reason="a hole in the spool")
    return batch


def after(length, *events):
    spool = Spool("run")
    spool.offsets[pb.STDOUT] = length
    return spool.batch(*events)


async def next_seqs(stream):
    batch = await asyncio.wait_for(anext(stream), 10)
    return [event.seq for event in batch.events], batch.renumbered


@pytest.mark.parametrize("follows", ["before", "after", "with the next daemon"])
def test_a_follower_of_a_run_that_was_rebuilt_with_a_gap_is_told_and_gets_its_events(tmp_path, follows):
    async def scene():
        rundir = rundir_of(tmp_path, "run")
        async with ingest_in(tmp_path) as ingest:
            await ingest.open("run", rundir)
            await ingest.publish(rundir, Spool("run").batch(*map(step, range(50))))
            stream = ingest.broadcaster.stream(ingest.reader(rundir), "run", 0)
            assert await next_seqs(stream) == (list(range(1, 51)), False)

            os.truncate(rundir.telemetry, 0)
            await ingest.open("run", rundir)
            await ingest.publish(rundir, hole(1000))
            await ingest.publish(rundir, after(1000, step(40), step(41)))
            if follows == "after":
                stream = ingest.broadcaster.stream(ingest.reader(rundir), "run", 50)
            if follows != "with the next daemon":
                assert await next_seqs(stream) == ([], True)
                assert await next_seqs(stream) == ([1, 2], False)
        if follows == "with the next daemon":
            async with ingest_in(tmp_path) as ingest:
                stream = ingest.broadcaster.stream(ingest.reader(rundir), "run", 50)
                assert await next_seqs(stream) == ([], True)
                assert await next_seqs(stream) == ([1, 2], False)

    asyncio.run(scene())


def test_a_follower_that_is_ahead_of_a_run_without_a_gap_is_not_sent_what_it_has(tmp_path):
    async def scene():
        async with ingest_in(tmp_path) as ingest:
            rundir = rundir_of(tmp_path, "run")
            await ingest.open("run", rundir)
            await ingest.publish(rundir, Spool("run").batch(*map(step, range(3))))
            stream = ingest.broadcaster.stream(ingest.reader(rundir), "run", 5)
            first = asyncio.ensure_future(anext(stream))
            await asyncio.sleep(0)

            await ingest.publish(rundir, after(3 * LINE, *map(step, range(3, 7))))

            assert [event.seq for event in (await first).events] == [6, 7]

    asyncio.run(scene())


def test_a_file_lost_after_its_last_byte_is_not_closed_as_complete(path, store):
    send_to(store, 5)
    os.truncate(path, 0)

    with pytest.raises(StoreIncomplete, match="being rebuilt"):
        store.close(final=True)
    send_to(store, 5)
    store.close(final=True)

    assert steps_in(RunStore(path, RUN, read_only=True)) == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("is_new", [True, False])
@pytest.mark.parametrize("harm", ["deleted", "everything deleted", "another run's file"])
def test_a_file_that_loses_its_name_while_it_is_opened_is_restored(path, store, monkeypatch, harm, is_new):
    """SQLite has opened it, and nothing has looked at its name since: what was stored then was lost at the end."""
    if not is_new:
        send_to(store, 5)
        store.close()
    connect = run_file.connect

    def connect_and_lose(*args):
        monkeypatch.setattr(run_file, "connect", connect)
        db = connect(*args)
        HARM[harm](path)
        return db

    monkeypatch.setattr(run_file, "connect", connect_and_lose)
    send_to(store, 10)
    store.close(final=True)

    assert steps_in(RunStore(path, RUN, read_only=True)) == list(range(10))


@pytest.mark.parametrize("before", ["wal_checkpoint", "journal_mode"])
def test_a_file_that_loses_its_name_while_it_is_finalized_is_restored(path, store, before):
    send_to(store, 5)
    store._db.set_trace_callback(lambda sql: before in sql and path.unlink(missing_ok=True))

    store.close(final=True)

    assert steps_in(RunStore(path, RUN, read_only=True)) == [0, 1, 2, 3, 4]
    assert [file.name for file in path.parent.iterdir()] == [path.name]


def test_a_file_that_loses_its_name_when_it_has_been_finalized_is_restored(path, store, monkeypatch):
    send_to(store, 5)
    leave = store._leave_wal_mode

    def leave_and_lose():
        monkeypatch.setattr(store, "_leave_wal_mode", leave)
        leave()
        path.unlink()

    monkeypatch.setattr(store, "_leave_wal_mode", leave_and_lose)
    store.close(final=True)

    assert steps_in(RunStore(path, RUN, read_only=True)) == [0, 1, 2, 3, 4]


def test_a_run_is_not_complete_while_its_lost_file_cannot_be_restored(tmp_path, monkeypatch):
    async def scene():
        async with ingest_in(tmp_path) as ingest:
            rundir = rundir_of(tmp_path, RUN)
            await ingest.open(RUN, rundir)
            await ingest.publish(rundir, Spool().batch(step(0)))
            rundir.telemetry.unlink()
            monkeypatch.setattr(run_file.sqlite, "back_up", refuse)

            assert await ingest.finish(RUN) is False

    def refuse(*_):
        raise OSError(28, "No space left on device")

    asyncio.run(scene())


def test_a_file_that_is_damaged_in_a_loop_is_not_rebuilt_in_a_loop(path, store, monkeypatch):
    for _ in range(2):
        send_to(store, 5)
        os.truncate(path, 0)
        with contextlib.suppress(StoreDamaged):
            store.cursor()
    with pytest.raises(StoreDamaged, match="rebuilt before"):
        store.cursor()

    monkeypatch.setattr(run_file.time, "monotonic", lambda: 1e9)
    send_to(store, 5)

    assert steps_in(store) == [0, 1, 2, 3, 4]
    assert len(list(path.parent.glob("telemetry.sqlite.damaged-*"))) == 1


@pytest.mark.parametrize("suffix", ["", "-wal"])
def test_a_worker_that_took_the_rights_of_a_file_keeps_no_later_daemon_from_opening_it(home, suffix):
    def work():
        store, left = RunStore(home / "t.sqlite", RUN), home / "left.sqlite"
        store.commit(Spool().batch(step(1, 0.5)))
        for name in ("", "-wal"):  # as a killed daemon leaves them
            shutil.copyfile(f"{home}/t.sqlite{name}", f"{left}{name}")
        os.chmod(f"{left}{suffix}", 0)

        assert steps_in(RunStore(left, RUN)) == [1]

    as_ordinary_user(home, work)


TRUNCATES_WHILE_OPEN = """
import os, pathlib, sys
sys.path.insert(0, sys.argv[2])
from ingest_batches import *
from mosaic.ingest.store import RunStore
from mosaic.model.errors import MosaicError
path = pathlib.Path(sys.argv[1])
store, spool = RunStore(path, RUN), Spool()
store.commit(spool.batch(step(1, 0.5)))
for suffix in ("-shm", "-wal", ""):
    if os.path.exists(f"{path}{suffix}"):
        os.truncate(f"{path}{suffix}", 0)
    for attempt in (lambda: store.commit(spool.batch(step(2, 0.5))), lambda: store.tail(5), store.checkpoint):
        try:
            attempt()
        except MosaicError:
            pass
"""


def test_truncating_the_files_of_an_open_store_does_not_end_the_process(path):
    command = [sys.executable, "-c", TRUNCATES_WHILE_OPEN, str(path), str(Path(__file__).parent)]

    end = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)

    assert end.returncode != -signal.SIGBUS
    assert end.returncode == 0, end.stderr


WRONG_TYPES = [
    "UPDATE steps SET step_index = 'text'",
    "UPDATE steps SET ts_ns = x'00'",
    "UPDATE steps SET agent_id = x'ff'",
    "UPDATE steps SET extra = 'text', terminated = 'x', reward = 'text'",
    "UPDATE metrics SET value_list = 'text'",
    "UPDATE metrics SET name_set = 99",
    "UPDATE metrics SET name_set = 'not JSON'",
]


@pytest.mark.parametrize("sql", WRONG_TYPES)
def test_a_value_of_a_wrong_type_stops_no_other_run_and_is_told(tmp_path, sql):
    async def scene():
        async with ingest_in(tmp_path, threads=1) as ingest:
            bad, good = rundir_of(tmp_path, "bad"), rundir_of(tmp_path, "good")
            spools = {"bad": Spool("bad"), "good": Spool("good")}
            for rundir in (bad, good):
                await ingest.publish(rundir, spools[rundir.run_id].batch(step(1, 0.5), metric(1, x=1.0)))
            await ingest.finish("bad")
            statement(bad.telemetry, sql)

            for read in (ingest.events(bad, 0, None, None), ingest.tail(bad, 5)):
                with pytest.raises(StoreFailed, match=r"telemetry\.sqlite"):
                    await read
            await ingest.publish(good, spools["good"].batch(step(2)))

            summaries = await ingest.summaries([bad, good])
            assert "telemetry.sqlite" in summaries["bad"].note
            assert (summaries["good"].steps, summaries["good"].note) == (2, "")
            assert ingest.problem == ""

    asyncio.run(scene())


def test_subscribers_of_a_rebuilt_run_get_each_event_once(tmp_path):
    async def scene():
        async with ingest_in(tmp_path) as ingest:
            rundir = rundir_of(tmp_path, "run")
            await ingest.open("run", rundir)
            await ingest.publish(rundir, Spool("run").batch(*map(step, range(5))))
            shown = ingest.broadcaster.subscribe("run", None, 0)
            seen = [event.seq for event in (await anext(shown)).events]

            os.truncate(rundir.telemetry, 0)
            assert (await ingest.open("run", rundir)).stdout_offset == 0
            await ingest.publish(rundir, Spool("run").batch(*map(step, range(7))))

            seen += [event.seq for event in (await anext(shown)).events]
            assert seen == [1, 2, 3, 4, 5, 6, 7]
            late = ingest.broadcaster.stream(ingest.reader(rundir), "run", 0, 7)
            assert [event.seq async for batch in late for event in batch.events] == [1, 2, 3, 4, 5, 6, 7]

    asyncio.run(scene())
