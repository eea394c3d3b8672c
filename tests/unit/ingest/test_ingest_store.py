import contextlib
import math
import random
import sqlite3
from pathlib import Path

import pytest
from ingest_batches import LINE, RUN, Spool, episode, lifecycle, metric, step

from mosaic.client.run import Run
from mosaic.ingest import file, memory, names
from mosaic.ingest import store as store_module
from mosaic.ingest.store import RunStore
from mosaic.model.errors import BadBatch, SchemaTooNew, StoreDamaged, StoreFailed, WrongOffset
from mosaic.model.run import RunRecord, RunSummary
from mosaic.model.states import RunState
from mosaic.wire import mosaic_pb2 as pb
from mosaic.wire.convert import run_to_wire

NAN, INF = math.nan, math.inf


def everything(store, kinds=None, limit=1000):
    events, since = [], 0
    while True:
        page = store.events(since, None, kinds, limit)
        events += page.batch.events
        if page.through >= page.last_seq:
            return events
        since = page.through


def seqs(events):
    return [event.seq for event in events]


def mixed(n):
    """n events of all kinds."""
    make = [lambda i: step(i, 0.5), lambda i: metric(i, loss=1.0 / (i + 1)), lambda i: episode(i, 2.0)]
    return [lifecycle("run_started")] + [make[i % 3](i) for i in range(n - 1)]


def test_every_event_comes_back_as_it_was_sent(store, spool):
    sent = [
        step(
            7, 0.25, ts_ns=5, env_index=3, agent_id="a", episode_index=2, terminated=True, truncated=True, extra=b"{}"
        ),
        step(8),
        step(0, 0.0),
        episode(4, -1.5, steps=9, env_index=2, agent_id="b", truncated=True, extra=b'{"k":1}'),
        episode(5, 0.5, global_step=4096),
        episode(6, 0.5, global_step=0),
        metric(11, loss=0.5, acc=0.75, extra=b'{"x":2}'),
        lifecycle("heartbeat", b'{"progress": 3}', ts_ns=-4),
    ]

    store.commit(spool.batch(*sent))

    for seq, event in enumerate(sent, start=1):
        event.seq = seq
    assert everything(store) == sent


@pytest.mark.parametrize("value", [NAN, INF, -INF, 5e-324, 1.7976931348623157e308])
def test_every_double_can_be_stored(store, spool, path, value):
    store.commit(spool.batch(step(1, value), episode(1, value), metric(1, m=value)))
    store.close(final=True)

    one, two, three = everything(RunStore(path, RUN, read_only=True))

    for back in (one.step.reward, two.episode.total_reward, three.metric.values[0]):
        assert math.isnan(back) if math.isnan(value) else back == value


def test_a_missing_reward_stays_missing(store, spool):
    store.commit(spool.batch(step(1), step(2, NAN)))

    assert [event.step.HasField("reward") for event in everything(store)] == [False, True]


def test_seq_runs_over_all_kinds_and_streams(store, spool):
    commits = [
        store.commit(spool.batch(step(1), metric(1, a=1.0))),
        store.commit(spool.batch(text=b"words\n", stream=pb.STDERR)),
        store.commit(spool.batch(episode(1, 1.0), lifecycle("run_completed"))),
    ]

    assert [(c.first_seq, c.last_seq) for c in commits] == [(1, 2), (3, 2), (3, 4)]
    assert seqs(everything(store)) == [1, 2, 3, 4]


@pytest.mark.parametrize("off_by", [-LINE, LINE])
def test_only_a_batch_that_continues_the_stream_is_accepted(store, spool, off_by):
    store.commit(spool.batch(step(1), step(2)))
    request = spool.batch(step(3))
    request.start += off_by
    request.end += off_by

    with pytest.raises(WrongOffset, match=f"stdout continues at byte {2 * LINE}, not {2 * LINE + off_by}") as refused:
        store.commit(request)

    assert refused.value.expected == 2 * LINE
    assert seqs(everything(store)) == [1, 2]


def test_a_batch_that_is_sent_again_is_not_stored_again(store, spool):
    request = spool.batch(step(1), text=b"hello\n")
    store.commit(request)

    with pytest.raises(WrongOffset):
        store.commit(request)

    assert store.cursor() == pb.Cursor(stdout_offset=LINE + 6, next_seq=2)


def spoil_run(request):
    request.run_id = "01JDZZZZZZZZZZZZZZZZZZZZZZ"


def spoil_range(request):
    request.end = 0
    request.start = 0


def spoil_end(request):
    request.end = 2**63


def spoil_metric(request):
    request.events.add(metric=pb.Metric(names=["a", "b"], values=[1.0]))


def spoil_kind(request):
    request.events.add(ts_ns=5)


def spoil_text(request):
    request.texts.add(offset=request.end - 2, text=b"too long")


def spoil_text_order(request):
    request.texts.add(offset=0, text=b"abcd")
    request.texts.add(offset=2, text=b"cd")


def spoil_text_stream(request):
    request.texts.add(stream=pb.STDERR, offset=0, text=b"a")


def spoil_reject(request):
    request.rejects.add(offset=request.end, length=1)


def spoil_gap(request):
    request.gaps.add(offset=request.end + 1, length=1)


@pytest.mark.parametrize(
    "spoil",
    [
        spoil_run,
        spoil_range,
        spoil_end,
        spoil_metric,
        spoil_kind,
        spoil_text,
        spoil_text_order,
        spoil_text_stream,
        spoil_reject,
        spoil_gap,
    ],
)
def test_an_inconsistent_batch_is_refused_as_a_whole(store, spool, spoil):
    request = spool.batch(step(1), metric(1, fresh=1.0))
    spoil(request)

    with pytest.raises(BadBatch, match="Nothing of the batch was stored"):
        store.commit(request)

    assert store.cursor() == pb.Cursor(next_seq=1)
    assert everything(store) == []
    assert store.commit(Spool().batch(step(1))).last_seq == 1


@pytest.mark.parametrize("kinds", [None, {"step"}, {"metric", "lifecycle"}])
@pytest.mark.parametrize("limit", [1, 7, 1000])
def test_pages_together_have_all_requested_events_in_order(store, spool, kinds, limit):
    events = mixed(100)
    for i in range(0, 100, 9):
        store.commit(spool.batch(*events[i : i + 9]))

    got = everything(store, kinds, limit)

    wanted = [seq for seq, event in enumerate(events, 1) if kinds is None or event.WhichOneof("kind") in kinds]
    assert seqs(got) == wanted


def test_a_page_ends_at_until(store, spool):
    store.commit(spool.batch(*mixed(50)))

    page = store.events(10, 20)

    assert seqs(page.batch.events) == list(range(11, 21))
    assert (page.through, page.last_seq) == (20, 50)


def test_a_page_of_large_events_is_cut_by_size(store, spool):
    store.commit(spool.batch(*(step(i, extra=b"x" * 300_000) for i in range(10))))

    sizes = []
    since = 0
    while since < 10:
        page = store.events(since)
        sizes.append(page.batch.ByteSize())
        since = page.through

    assert len(sizes) == 4
    assert max(sizes) < 1 << 20


@pytest.mark.parametrize("kinds", [None, {"step"}])
def test_the_tail_is_the_newest_in_order(store, spool, kinds):
    events = mixed(60)
    store.commit(spool.batch(*events))

    tail = store.tail(7, kinds)

    wanted = [seq for seq, event in enumerate(events, 1) if kinds is None or event.WhichOneof("kind") in kinds][-7:]
    assert seqs(tail.events) == wanted
    assert seqs(store.events(store.since_of_tail(7, kinds), None, kinds).batch.events) == wanted


def test_name_sets_beyond_the_limit_are_still_stored(path, store, spool, monkeypatch):
    monkeypatch.setattr(names, "MOST_SETS", 3)
    store.commit(spool.batch(*(metric(i, **{f"name{i}": 1.0}) for i in range(6))))

    assert [event.metric.names[0] for event in everything(store)] == [f"name{i}" for i in range(6)]
    store.close()
    assert sqlite3.connect(path).execute("SELECT count(*) FROM name_sets").fetchone() == (3,)


def test_heartbeats_can_report_the_total_steps(store, spool):
    store.commit(spool.batch(lifecycle("heartbeat", b'{"progress": 30, "total": 120}')))
    store.commit(spool.batch(lifecycle("heartbeat", b'{"progress": 60}')))

    summary = store.summary()

    assert summary.total_steps == 120
    record = RunRecord("id", "n", "runs", "toy", RunState.EXECUTING)
    run = Run.from_wire(run_to_wire(record, Path("/runs/id"), summary))
    assert (run.total_steps, run.progress) == (120, 60 / 120)


def test_the_total_from_the_worker_replaces_the_submitted_one():
    record = RunRecord("id", "n", "runs", "toy", RunState.TERMINATED, total_steps=100_000)
    summary = RunSummary(last_step=99_840, total_steps=99_840)

    assert Run.from_wire(run_to_wire(record, Path("/runs/id"), summary)).progress == 1.0
    assert Run.from_wire(run_to_wire(record, Path("/runs/id"), RunSummary())).total_steps == 100_000


def test_evaluation_episodes_are_counted_but_are_not_training_returns(store, spool):
    store.commit(spool.batch(episode(1, 3.0), episode(1, 500.0, agent_id="eval"), episode(2, 5.0)))
    store.commit(spool.batch(episode(2, 400.0, agent_id="eval")))

    got = store.summary()

    assert (got.episodes, got.training_episodes, got.eval_episodes) == (4, 2, 2)
    assert (got.last_return, got.recent_returns) == (5.0, [3.0, 5.0])
    assert (got.mean_return, got.mean_over, got.return_trace) == (4.0, 2, [3.0, 5.0])
    assert (got.eval_mean, got.eval_over) == (450.0, 2)


def test_the_summary_counts_what_is_stored(store, spool):
    second = 1_000_000_000
    store.commit(spool.batch(*(step(i, 1.0, ts_ns=second * i // 100) for i in range(100))))
    store.commit(spool.batch(*(step(i, 1.0, ts_ns=second * i // 100) for i in range(100, 200))))
    store.commit(spool.batch(episode(1, 3.0), episode(2, 5.0), metric(999, ts_ns=2 * second, loss=0.5)))
    bad = spool.batch(text=b"{bad}\n")
    bad.rejects.add(offset=bad.start, length=6, reason="bad")
    store.commit(bad)
    store.commit(spool.batch(lifecycle("run_failed", b'{"error": "out of luck"}', ts_ns=3 * second)))

    got = store.summary()

    counts = (got.events, got.steps, got.episodes, got.metrics, got.rejects)
    assert counts == (204, 200, 2, 1, 1)
    assert (got.last_step, got.last_return, got.recent_returns) == (999, 5.0, [3.0, 5.0])
    assert got.last_values == {"loss": 0.5}
    assert (got.failed_message, got.last_event_at) == ("out of luck", 3.0)


def test_steps_per_second_are_those_of_the_last_seconds(store, spool):
    rates = []
    for tenth in range(300):  # 10 a second for 15 s, then 100 a second
        done = tenth if tenth < 150 else 150 + 10 * (tenth - 150)
        store.commit(spool.batch(step(done, ts_ns=tenth * 100_000_000)))
        rates.append(store.summary().steps_per_s)

    assert rates[140] == pytest.approx(10, rel=0.05)
    assert rates[299] == pytest.approx(100, rel=0.05)


@pytest.mark.parametrize("begin", [0, 7_000])
def test_neither_start_up_nor_the_steps_of_a_parent_count_for_the_rate(store, spool, begin):
    """A library may take half a minute to import, and a resumed run starts at the step of its checkpoint."""
    second = 1_000_000_000
    store.commit(spool.batch(lifecycle("run_started", b"{}", ts_ns=0)))
    for number in range(1, 4):
        done = begin + 50 * number
        store.commit(spool.batch(step(done, ts_ns=(30 + number) * second)))

    assert store.summary().steps_per_s == pytest.approx(50, rel=0.1)


def test_a_library_that_counts_steps_per_episode_has_a_rate_too(store, spool):
    for tenth in range(100):
        store.commit(spool.batch(*(step(i, ts_ns=tenth * 100_000_000) for i in range(5))))

    assert store.summary().steps_per_s == pytest.approx(50, rel=0.05)


@pytest.mark.parametrize(
    ("payload", "progress"),
    [
        (b'{"progress": 7, "step": 1}', 7),
        (b'{"step": 3, "global_step": 9}', 3),
        (b'{"global_step": 4.0}', 4),
        (b'{"progress": true}', None),
        (b'{"progress": Infinity}', None),
        (b"[1]", None),
        (b"not json", None),
        (b"[" * 100_000, None),
        (b"", None),
    ],
)
def test_a_heartbeat_reports_its_progress(store, spool, payload, progress):
    commit = store.commit(spool.batch(lifecycle("heartbeat", payload)))

    assert (commit.heartbeat, commit.progress, commit.measured) == (True, progress, False)


def test_reopening_gives_the_same_memory(path, monkeypatch):
    monkeypatch.setattr(memory, "SNAPSHOT_EVERY", 50)
    spool, store, random_ = Spool(), RunStore(path, RUN), random.Random(1)
    events = mixed(1500)
    while events:
        size = random_.randrange(1, 40)
        store.commit(spool.batch(*events[:size]))
        del events[:size]
        before = store.summary(), store.cursor(), [store.curve(name) for name in store.curve_names()]
        if random_.random() < 0.3:
            store._shut()  # as a crash leaves it: no snapshot at the end
            store = RunStore(path, RUN)
            after = store.summary(), store.cursor(), [store.curve(name) for name in store.curve_names()]
            assert after == before
    store.close()


def test_a_file_of_a_newer_mosaic_is_refused_and_left_alone(path):
    sqlite3.connect(path).execute(f"PRAGMA user_version = {len(file.STEPS) + 1}").connection.close()
    before = path.read_bytes()

    for read_only in (False, True):
        with pytest.raises(SchemaTooNew, match="Upgrade MOSAIC"):
            RunStore(path, RUN, read_only).cursor()

    assert path.read_bytes() == before


def test_an_older_file_is_upgraded_by_adding(path, store, spool, monkeypatch):
    store.commit(spool.batch(step(1, 0.5)))
    store.close()
    monkeypatch.setattr(file, "STEPS", [*file.STEPS, "CREATE TABLE more (x)"])

    assert seqs(everything(store)) == [1]
    store.close()
    assert sqlite3.connect(path).execute("SELECT count(*) FROM more").fetchone() == (0,)


def test_a_finished_file_has_no_wal_and_reading_does_not_change_it(path, store, spool):
    store.commit(spool.batch(*mixed(200), text=b"hello\n"))
    store.close(final=True)
    assert [p.name for p in path.parent.iterdir()] == [path.name]
    before = path.read_bytes()

    reader = RunStore(path, RUN, read_only=True)
    assert len(everything(reader)) == 200
    assert reader.logs(pb.STDOUT, 0).batch.texts[0].text == b"hello\n"
    assert reader.is_final
    names_while_open = [p.name for p in path.parent.iterdir()]
    reader.close()

    assert names_while_open == [path.name]
    assert path.read_bytes() == before


def test_a_finished_file_accepts_a_late_batch(path, store, spool):
    store.commit(spool.batch(step(1)))
    store.close(final=True)

    store.commit(spool.batch(step(2)))
    store.close(final=True)

    assert seqs(everything(RunStore(path, RUN, read_only=True))) == [1, 2]


def test_a_missing_file_reads_as_empty_and_is_not_created(path):
    reader = RunStore(path, RUN, read_only=True)

    assert (everything(reader), reader.curve_names(), reader.summary().events) == ([], [], 0)
    assert not path.exists()


@pytest.mark.parametrize("damage", [b"this is not a database, and long enough to be looked at" * 100, b"short"])
def test_a_damaged_file_fails_with_its_name(path, damage):
    path.write_bytes(damage)

    with pytest.raises(StoreDamaged, match=r"telemetry\.sqlite is damaged"):
        RunStore(path, RUN, read_only=True).cursor()


def test_tables_that_another_program_dropped_count_as_damage(path, store, spool):
    store.commit(spool.batch(step(1)))
    store.close()
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("DROP TABLE steps")

    with pytest.raises(StoreDamaged, match="is damaged"):
        RunStore(path, RUN, read_only=True).cursor()


def test_bytes_are_durable_after_a_checkpoint_and_not_before(store, spool):
    one = store.commit(spool.batch(step(1)))
    store.checkpoint()
    two = store.commit(spool.batch(step(2)))

    assert (one.durable_offset, two.durable_offset, two.next_offset) == (0, LINE, 2 * LINE)


def test_no_other_program_can_use_the_file_of_a_live_run_and_nothing_of_it_is_mapped(path, store, spool):
    store.commit(spool.batch(step(1)))

    other = sqlite3.connect(path, timeout=0)
    with pytest.raises(sqlite3.OperationalError, match="locked"):
        other.execute("SELECT count(*) FROM steps")
    other.close()

    assert not Path(f"{path}-shm").exists()
    assert str(path) not in Path("/proc/self/maps").read_text()


def test_checkpoints_are_automatic(store, spool, monkeypatch):
    monkeypatch.setattr(store_module, "CHECKPOINT_EVERY", 5 * store_module.SMALLEST_COMMIT)

    durable = [store.commit(spool.batch(step(i))).durable_offset for i in range(12)]

    assert durable[3] == 0
    assert durable[4] == durable[8] == 5 * LINE
    assert durable[9] == 10 * LINE


def test_a_number_in_place_of_a_blob_is_not_taken_for_a_length(path, store, spool):
    store.commit(spool.batch(lifecycle("parts_wanted", b"{}")))
    store.close(final=True)
    with sqlite3.connect(path) as db:
        db.execute("UPDATE lifecycle SET payload = 5")
    read = RunStore(path, RUN, read_only=True)

    with pytest.raises(StoreFailed, match="not a blob"):  # not five zeros
        read.parts_wanted()
    read.close()
    with sqlite3.connect(path) as db:
        db.execute("INSERT INTO meta VALUES ('rebuilt', 5)")
    with pytest.raises(StoreDamaged, match="not a blob"):
        RunStore(path, RUN, read_only=True).summary()


def test_a_huge_value_in_the_file_is_not_read(path, store, spool, monkeypatch):
    monkeypatch.setattr(file, "LARGEST_VALUE", 1 << 16)
    store.commit(spool.batch(lifecycle("parts_wanted", b"{}")))
    store.close(final=True)
    with sqlite3.connect(path) as db:
        db.execute("UPDATE lifecycle SET payload = zeroblob(1 << 17)")

    with pytest.raises(StoreDamaged, match="too big"):
        RunStore(path, RUN, read_only=True).parts_wanted()
