import asyncio
import sqlite3
import sys
import threading
import time
from contextlib import asynccontextmanager

import pytest
from ingest_batches import LINE, Spool, episode, lifecycle, metric, step

from mosaic.broadcast.subscribers import Broadcaster
from mosaic.ingest import receive
from mosaic.ingest.follow import stream_logs
from mosaic.ingest.index import Index
from mosaic.ingest.receive import Ingest
from mosaic.ingest.store import RunStore
from mosaic.model.errors import SchemaTooNew, StoreDamaged, StoreFailed, WrongOffset
from mosaic.model.rundir import RunDir
from mosaic.wire import mosaic_pb2 as pb


class RecordingListener:
    """Records every call."""

    def __init__(self):
        self.calls = []

    def __getattr__(self, name):
        return lambda *arguments: self.calls.append((name, *arguments))

    def of(self, *names):
        return [call for call in self.calls if call[0] in names]


@asynccontextmanager
async def ingest_in(tmp_path, threads=2):
    ingest = Ingest(Broadcaster(), Index(tmp_path / "index.sqlite"), RecordingListener(), threads)
    try:
        yield ingest
    finally:
        await ingest.close()


def rundir_of(tmp_path, run_id):
    rundir = RunDir(tmp_path / run_id)
    rundir.make()
    return rundir


def run(scene, tmp_path):
    async def main():
        async with ingest_in(tmp_path) as ingest:
            await asyncio.wait_for(scene(ingest), 60)

    asyncio.run(main())


def test_a_publish_is_stored_broadcast_and_reported(tmp_path):
    async def scene(ingest):
        rundir, spool = rundir_of(tmp_path, "run"), Spool("run")
        cursor = await ingest.open("run", rundir)
        shown = ingest.broadcaster.subscribe("run", None, 0)

        reply = await ingest.publish(rundir, spool.batch(lifecycle("heartbeat", b'{"progress": 4}'), behind_bytes=9))
        await ingest.publish(rundir, spool.batch(step(1), metric(1, x=1.0)))
        await ingest.publish(rundir, spool.batch(step(2)))
        await ingest.publish(rundir, spool.batch(exited=True, drained=True))

        assert cursor == pb.Cursor(next_seq=1)
        assert reply == pb.PublishTelemetryReply(next_offset=LINE)
        assert [event.seq for event in (await anext(shown)).events] == [1, 2, 3, 4]
        assert ingest.listener.calls == [
            ("activity", "run"),
            ("heartbeat", "run", 4),
            ("behind", "run", 9),
            ("activity", "run"),
            ("measured", "run"),
            ("behind", "run", 0),
            ("activity", "run"),
            ("exited", "run"),
            ("drained", "run"),
        ]

    run(scene, tmp_path)


def test_a_run_that_was_measured_before_is_reported_at_open(tmp_path):
    async def first(ingest):
        await ingest.publish(rundir_of(tmp_path, "run"), Spool("run").batch(episode(1, 1.0)))

    async def second(ingest):
        cursor = await ingest.open("run", rundir_of(tmp_path, "run"))
        assert cursor == pb.Cursor(stdout_offset=LINE, next_seq=2)
        assert ingest.listener.calls == [("measured", "run")]

    run(first, tmp_path)
    run(second, tmp_path)


def test_a_refused_publish_is_not_broadcast(tmp_path):
    async def scene(ingest):
        rundir = rundir_of(tmp_path, "run")
        request = Spool("run").batch(step(1))
        await ingest.publish(rundir, request)

        with pytest.raises(WrongOffset):
            await ingest.publish(rundir, request)

        batch = await anext(ingest.broadcaster.subscribe("run", None, 0))
        assert [event.seq for event in batch.events] == [1]
        assert ingest.listener.of("storage_problem") == []

    run(scene, tmp_path)


def test_a_damaged_file_affects_only_its_own_run(tmp_path):
    async def scene(ingest):
        bad, good = rundir_of(tmp_path, "bad"), rundir_of(tmp_path, "good")
        bad.telemetry.write_bytes(b"this is not a database, and long enough to be looked at" * 100)

        await ingest.publish(good, Spool("good").batch(step(1)))
        with pytest.raises(StoreDamaged, match="is damaged"):
            await ingest.events(bad, 0, None, None)

        summaries = await ingest.summaries([bad, good])
        assert "is damaged" in summaries["bad"].note
        assert (summaries["good"].steps, summaries["good"].note, ingest.problem) == (1, "", "")
        await ingest.forget("bad")

    run(scene, tmp_path)


def test_a_problem_is_reported_once_and_so_is_its_end(tmp_path):
    async def scene(ingest):
        rundir, spool = rundir_of(tmp_path, "run"), Spool("run")
        request = spool.batch(step(1))
        other = sqlite3.connect(rundir.telemetry)
        other.execute("BEGIN EXCLUSIVE")
        for _ in range(3):
            with pytest.raises(receive.StoreUnavailable):
                await ingest.publish(rundir, request)
        other.close()

        await ingest.publish(rundir, request)
        await ingest.publish(rundir, spool.batch(step(2)))

        (begin, end) = ingest.listener.of("storage_problem")
        assert "telemetry.sqlite cannot be used now" in begin[2]
        assert end == ("storage_problem", "run", "")

    run(scene, tmp_path)


def test_a_failed_writer_makes_the_daemon_unhealthy_and_its_runs_report_it(tmp_path):
    async def scene():
        async with ingest_in(tmp_path, threads=1) as ingest:
            rundir, spool = rundir_of(tmp_path, "run"), Spool("run")
            await ingest.publish(rundir, spool.batch(step(1)))
            with pytest.raises(StoreFailed):
                await ingest._writers[0].call(sys.exit)

            with pytest.raises(StoreFailed, match="SystemExit"):
                await ingest.publish(rundir, spool.batch(step(2)))

            assert "A telemetry writer failed" in ingest.problem
            assert "A telemetry writer failed" in ingest.listener.of("storage_problem")[0][2]

    asyncio.run(scene())


def test_a_committed_batch_is_broadcast_even_if_the_publisher_is_gone(tmp_path):
    async def scene():
        async with ingest_in(tmp_path, threads=1) as ingest:
            rundir, spool = rundir_of(tmp_path, "run"), Spool("run")
            gate = threading.Event()
            ingest._writers[0].post(lambda: gate.wait(30))
            publishing = asyncio.ensure_future(ingest.publish(rundir, spool.batch(step(1))))
            await asyncio.sleep(0)

            publishing.cancel()
            gate.set()
            await ingest.publish(rundir, spool.batch(step(2)))

            batch = await anext(ingest.broadcaster.subscribe("run", None, 0))
            assert [event.seq for event in batch.events] == [1, 2]

    asyncio.run(scene())


def test_a_finished_run_has_one_file_and_can_still_be_read(tmp_path):
    async def scene(ingest):
        rundir, spool = rundir_of(tmp_path, "run"), Spool("run")
        await ingest.publish(rundir, spool.batch(step(3, 0.5), metric(4, x=7.0), text=b"hi\n"))

        await ingest.finish("run")

        assert not list(rundir.path.glob("telemetry.sqlite-*"))
        assert (await ingest.summary(rundir)).last_values == {"x": 7.0}
        assert [event.seq for event in (await ingest.events(rundir, 0, None, None)).batch.events] == [1, 2]
        assert len((await ingest.tail(rundir, 1)).events) == 1
        assert await ingest.curve_names(rundir) == ["step/reward", "x"]
        assert list((await ingest.curve(rundir, pb.QueryCurveRequest(name="x"))).mean) == [7.0]
        assert (await ingest.logs(rundir, pb.STDOUT, 0)).batch.texts[0].text == b"hi\n"
        assert not list(rundir.path.glob("telemetry.sqlite-*"))

    run(scene, tmp_path)


def test_a_tailer_that_returns_after_the_end_does_not_reopen_the_file(tmp_path):
    async def scene(ingest):
        rundir, spool = rundir_of(tmp_path, "run"), Spool("run")
        await ingest.publish(rundir, spool.batch(step(1)))
        await ingest.finish("run")
        ingest.broadcaster.close("run")
        before = rundir.telemetry.read_bytes()

        cursor = await ingest.open("run", rundir)
        reply = await ingest.publish(rundir, spool.batch(drained=True))

        assert (cursor.stdout_offset, reply.next_offset) == (LINE, LINE)
        assert ingest.listener.of("drained") == [("drained", "run")]
        assert rundir.telemetry.read_bytes() == before
        assert not list(rundir.path.glob("telemetry.sqlite-*"))
        assert await ingest.broadcaster.wait_for_text("run", 0) is False
        with pytest.raises(WrongOffset):
            await ingest.publish(rundir, Spool("run").batch(drained=True))

    run(scene, tmp_path)


def test_a_file_from_a_newer_mosaic_affects_only_its_own_run(tmp_path):
    async def scene(ingest):
        rundir = rundir_of(tmp_path, "run")
        with sqlite3.connect(rundir.telemetry) as db:
            db.execute("PRAGMA user_version = 99")

        with pytest.raises(SchemaTooNew):
            await ingest.open("run", rundir)

        assert "Upgrade MOSAIC" in ingest.listener.of("storage_problem")[0][2]

    run(scene, tmp_path)


def test_a_lost_index_is_rebuilt_from_the_files(tmp_path):
    async def first(ingest):
        for name in ("a", "b"):
            await ingest.publish(rundir_of(tmp_path, name), Spool(name).batch(step(1), step(2)))
            await ingest.finish(name)

    async def second(ingest):
        got = await ingest.summaries([rundir_of(tmp_path, name) for name in ("a", "b", "new")])
        assert {name: it.steps for name, it in got.items()} == {"a": 2, "b": 2, "new": 0}

    run(first, tmp_path)
    for file in tmp_path.glob("index.sqlite*"):
        file.unlink()
    run(second, tmp_path)
    index = Index(tmp_path / "index.sqlite")
    assert sorted(index.get(["a", "b", "new"])) == ["a", "b"]
    index.close()


def test_the_index_has_no_entry_for_a_run_that_was_reopened(tmp_path):
    async def scene(ingest):
        rundir, spool = rundir_of(tmp_path, "run"), Spool("run")
        await ingest.publish(rundir, spool.batch(step(1)))
        await ingest.finish("run")
        assert (await ingest.summary(rundir)).steps == 1

        await ingest.publish(rundir, spool.batch(step(2)))
        assert (await ingest.summary(rundir)).steps == 2

    run(scene, tmp_path)  # closed without finish, as a stop of the daemon does

    async def later(ingest):
        assert (await ingest.summary(rundir_of(tmp_path, "run"))).steps == 2

    run(later, tmp_path)


def test_a_file_that_is_written_again_has_no_open_reader(tmp_path):
    async def scene(ingest):
        rundir, spool = rundir_of(tmp_path, "run"), Spool("run")
        await ingest.publish(rundir, spool.batch(step(1)))
        await ingest.finish("run")
        await ingest.tail(rundir, 1)
        reader = ingest._readers["run"].store
        assert reader._db is not None

        await ingest.publish(rundir, spool.batch(step(2)))

        assert reader._db is None
        assert len((await ingest.tail(rundir, 5)).events) == 2

    run(scene, tmp_path)


def test_the_rate_of_a_silent_run_drops_to_zero(tmp_path):
    async def scene(ingest):
        rundir, spool, now = rundir_of(tmp_path, "run"), Spool("run"), time.time_ns()
        for ago_s in (22, 21, 20):
            await ingest.publish(rundir, spool.batch(step(100 - ago_s, ts_ns=now - ago_s * 10**9)))
        silent = await ingest.summary(rundir)
        for ago_s in (2, 1, 0):
            await ingest.publish(rundir, spool.batch(step(100 - ago_s, ts_ns=now - ago_s * 10**9)))
        alive = await ingest.summary(rundir)

        assert silent.steps_per_s == 0
        assert alive.steps_per_s > 0

    run(scene, tmp_path)


def test_a_forgotten_run_can_be_deleted_completely(tmp_path):
    async def scene(ingest):
        rundir = rundir_of(tmp_path, "run")
        await ingest.publish(rundir, Spool("run").batch(step(1)))
        await ingest.finish("run")
        await ingest.tail(rundir, 5)

        await ingest.forget("run")
        rundir.telemetry.unlink()

        assert (await ingest.summary(rundir)).steps == 0

    run(scene, tmp_path)


def test_more_finished_runs_than_readers_can_all_be_read(tmp_path, monkeypatch):
    monkeypatch.setattr(receive, "MOST_READERS", 2)

    async def scene(ingest):
        rundirs = [rundir_of(tmp_path, f"run{i}") for i in range(6)]
        for i, rundir in enumerate(rundirs):
            store = RunStore(rundir.telemetry, rundir.run_id)
            store.commit(Spool(rundir.run_id).batch(*map(step, range(i))))
            store.close(final=True)

        for _ in range(2):
            sizes = [len((await ingest.tail(rundir, 100)).events) for rundir in rundirs]
            assert sizes == list(range(6))
        assert len(ingest._readers) == 2

    run(scene, tmp_path)


def test_logs_are_followed_to_the_end_of_the_run(tmp_path):
    async def scene(ingest):
        rundir, spool = rundir_of(tmp_path, "run"), Spool("run")
        await ingest.publish(rundir, spool.batch(text=b"0\n"))
        texts = {pb.STDOUT: b"", pb.STDERR: b""}

        async def follow():
            async for batch in stream_logs(ingest, rundir, pb.StreamLogsRequest(run_id="run", follow=True)):
                for text in batch.texts:
                    texts[text.stream] += text.text

        following = asyncio.ensure_future(follow())
        for i in range(1, 50):
            await ingest.publish(rundir, spool.batch(text=b"%d\n" % i, stream=pb.Stream.values()[i % 2]))
            if i % 7 == 0:
                await asyncio.sleep(0)
        ingest.broadcaster.close("run")
        await asyncio.wait_for(following, 30)

        assert texts[pb.STDOUT] == b"".join(b"%d\n" % i for i in range(0, 50, 2))
        assert texts[pb.STDERR] == b"".join(b"%d\n" % i for i in range(1, 50, 2))

    run(scene, tmp_path)


def test_text_that_arrives_with_the_end_of_the_run_is_followed_too(tmp_path, monkeypatch):
    async def scene(ingest):
        rundir, spool = rundir_of(tmp_path, "run"), Spool("run")
        await ingest.publish(rundir, spool.batch(text=b"first\n"))
        read = ingest.logs

        async def read_while_the_run_ends(*arguments):
            page = await read(*arguments)
            if arguments[1] == pb.STDERR and spool.offsets[pb.STDOUT] == 6:
                await ingest.publish(rundir, spool.batch(text=b"last\n"))
                ingest.broadcaster.close("run")
            return page

        monkeypatch.setattr(ingest, "logs", read_while_the_run_ends)
        request = pb.StreamLogsRequest(run_id="run", follow=True)
        texts = [text.text async for batch in stream_logs(ingest, rundir, request) for text in batch.texts]

        assert texts == [b"first\n", b"last\n"]

    run(scene, tmp_path)


def test_the_tail_of_a_log_starts_the_given_bytes_before_the_end(tmp_path):
    async def scene(ingest):
        rundir = rundir_of(tmp_path, "run")
        await ingest.publish(rundir, Spool("run").batch(text=b"0123456789"))

        request = pb.StreamLogsRequest(run_id="run", tail_bytes=4)
        batches = [batch async for batch in stream_logs(ingest, rundir, request)]

        assert [text.text for batch in batches for text in batch.texts] == [b"6789"]

    run(scene, tmp_path)
