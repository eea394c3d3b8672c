"""The time of the points of a curve."""

import sqlite3

import msgspec
import pytest
from ingest_batches import RUN, SECOND, Spool, lifecycle, metric, step

from mosaic.ingest import curve as curve_module
from mosaic.ingest.store import RunStore

BEGAN = 1_790_000_000 * SECOND


def begin(store, spool):
    store.commit(spool.batch(lifecycle("run_started", ts_ns=BEGAN)))


def feed(store, spool, events, size=997):
    for i in range(0, len(events), size):
        store.commit(spool.batch(*events[i : i + size]))


@pytest.mark.parametrize("n", [5, 64, 200])
def test_slow_points_have_exact_times(store, spool, n):
    begin(store, spool)
    times = [i * i for i in range(n)]
    feed(store, spool, [metric(i, ts_ns=BEGAN + t * SECOND, loss=1.0) for i, t in enumerate(times)])

    curve = store.curve("loss")

    assert list(curve.seconds) == times
    assert curve.started_at == BEGAN / 1e9


def test_fast_points_are_placed_between_the_first_and_the_last_of_their_bucket(store, spool):
    begin(store, spool)
    ms = SECOND // 1000
    feed(store, spool, [step(i, 1.0, ts_ns=BEGAN + i * ms) for i in range(1000)])

    seconds = list(store.curve("step/reward").seconds)

    assert seconds == pytest.approx([i / 1000 for i in range(1000)], abs=1e-6)


@pytest.mark.parametrize("most_rows", [10_000, 100, 3])  # so that every level is read
@pytest.mark.parametrize("points", [1, 7, 100])
def test_a_point_of_many_values_has_the_time_of_the_last(store, spool, monkeypatch, points, most_rows):
    monkeypatch.setattr(curve_module, "MOST_ROWS", most_rows)
    begin(store, spool)
    feed(store, spool, [step(i, 1.0, ts_ns=BEGAN + i * SECOND) for i in range(40_010)])

    curve = store.curve("step/reward", points)

    assert list(curve.seconds) == list(curve.step)


def test_a_part_of_a_curve_has_the_times_of_that_part(store, spool):
    begin(store, spool)
    feed(store, spool, [metric(i, ts_ns=BEGAN + 2 * i * SECOND, loss=1.0) for i in range(500)])

    assert list(store.curve("loss", from_step=100, to_step=102).seconds) == [200, 202, 204]


def test_times_survive_a_restart(store, spool, path):
    begin(store, spool)
    feed(store, spool, [metric(i, ts_ns=BEGAN + i * SECOND, loss=1.0) for i in range(100)])
    store.close()

    again = RunStore(path, RUN)
    feed(again, spool, [metric(100, ts_ns=BEGAN + 100 * SECOND, loss=1.0)])

    assert list(again.curve("loss").seconds) == list(range(101))
    again.close()


def test_a_curve_says_up_to_which_event_it_goes(store, spool):
    begin(store, spool)
    feed(store, spool, [metric(i, loss=1.0) for i in range(3)])

    assert store.curve("loss").last_seq == 4


# ---- files of older MOSAICs


def age(path):
    """Turn a closed file into one from before points had times."""
    db = sqlite3.connect(path)
    for number, state in db.execute("SELECT id, state FROM curves").fetchall():
        older = msgspec.msgpack.decode(state)[:6]
        older[3] = [bucket and bucket[:8] for bucket in older[3]]
        db.execute("UPDATE curves SET state = ? WHERE id = ?", (msgspec.msgpack.encode(older), number))
    db.execute("ALTER TABLE rollups DROP COLUMN ts_last")
    db.execute("ALTER TABLE chunks DROP COLUMN times")
    db.execute("PRAGMA user_version = 2")
    db.commit()
    db.close()


@pytest.fixture
def old_file(path, store, spool):
    begin(store, spool)
    feed(store, spool, [metric(i, ts_ns=BEGAN + i * SECOND, loss=float(i)) for i in range(20_000)])
    store.close(final=True)
    age(path)
    return path


@pytest.mark.parametrize("points", [10, 0])
def test_the_curves_of_a_finished_older_file_have_no_times(old_file, points):
    before = old_file.read_bytes()
    store = RunStore(old_file, RUN, read_only=True)

    curve = store.curve("loss", points)

    assert (sum(curve.count), list(curve.seconds)) == (20_000, [])
    store.close()
    assert old_file.read_bytes() == before


def test_an_older_file_is_continued_and_its_new_points_have_times(old_file):
    store = RunStore(old_file, RUN)
    spool = Spool()
    spool.offsets[0] = store.cursor().stdout_offset
    feed(store, spool, [metric(i, ts_ns=BEGAN + i * SECOND, loss=1.0) for i in range(20_000, 20_200)])

    assert list(store.curve("loss", 10).seconds) == []
    assert list(store.curve("loss", from_step=20_100).seconds) == list(range(20_100, 20_200))
    store.close()
