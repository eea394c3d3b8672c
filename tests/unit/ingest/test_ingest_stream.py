"""The store and the ring together: a stream has no gap and no duplicate, whenever it starts."""

import asyncio
import random

import pytest
from ingest_batches import Spool, metric, step

from mosaic.broadcast import ring, subscribers
from mosaic.broadcast.subscribers import Broadcaster
from mosaic.ingest.index import Index
from mosaic.ingest.receive import Ingest
from mosaic.model.rundir import RunDir


class NullListener:
    def __getattr__(self, name):
        return lambda *arguments: None


@pytest.fixture
def small(monkeypatch):
    """A small ring and small pages."""
    monkeypatch.setattr(ring, "HELD_EVENTS", 40)
    monkeypatch.setattr(ring, "HELD_FOR_LISTENERS", 90)
    monkeypatch.setattr(subscribers, "PAGE_EVENTS", 17)


@pytest.fixture
def rundir(tmp_path):
    rundir = RunDir(tmp_path / "run")
    rundir.make()
    return rundir


async def pause(chance):
    for _ in range(chance.randrange(4)):
        await asyncio.sleep(0)


class Scene:
    """One run, published in random pieces, with subscribers that join and lag at random."""

    def __init__(self, rundir, seed, total):
        self.chance = random.Random(seed)
        self.rundir = rundir
        self.total = total
        self.broadcaster = Broadcaster()
        self.ingest = Ingest(self.broadcaster, Index(rundir.path / "index.sqlite"), NullListener(), 1)

    async def publish(self, spool, first=1):
        while first <= self.total:
            size = min(self.chance.randrange(1, 30), self.total + 1 - first)
            made = [step(i) if i % 3 else metric(i, x=1.0) for i in range(first, first + size)]
            await self.ingest.publish(self.rundir, spool.batch(*made))
            first += size
            await pause(self.chance)
        await self.ingest.finish("run")
        self.broadcaster.close("run")

    async def subscribe(self, kinds):
        """Follow to the end, disconnecting and resuming now and then; fetch what was missed."""
        chance = random.Random(self.chance.random())
        got, since = [], 0
        while since < self.total:
            live = self.broadcaster.stream(self.ingest.reader(self.rundir), "run", since, None, kinds)
            async for batch in live:
                if batch.HasField("missed"):
                    got += await self.fetch(batch.missed.first, batch.missed.last, kinds)
                    since = batch.missed.last
                got += [event.seq for event in batch.events]
                since = max([since, *(event.seq for event in batch.events)])
                await pause(chance)
                if chance.random() < 0.05:
                    break
            else:
                since = self.total
            await live.aclose()
        return got

    async def fetch(self, first, last, kinds):
        stored = self.broadcaster.stream(self.ingest.reader(self.rundir), "run", first - 1, last, kinds, live=False)
        return [event.seq async for batch in stored for event in batch.events]


@pytest.mark.parametrize("seed", range(12))
def test_streams_have_no_gap_and_no_duplicate_at_any_timing(small, rundir, seed):
    async def main():
        scene = Scene(rundir, seed, total=600)
        publishing = asyncio.ensure_future(scene.publish(Spool("run")))
        following = []
        for kinds in (None, {"step"}, {"metric"}, None):
            following.append(asyncio.ensure_future(scene.subscribe(kinds)))
            await pause(scene.chance)
        got = await asyncio.wait_for(asyncio.gather(*following), 60)
        await publishing
        await scene.ingest.close()
        return got

    everything = range(1, 601)
    steps, metrics = [i for i in everything if i % 3], [i for i in everything if i % 3 == 0]
    assert asyncio.run(main()) == [list(everything), steps, metrics, list(everything)]


def test_a_new_daemon_continues_a_stream_where_it_broke_off(small, rundir):
    async def before():
        scene = Scene(rundir, 1, total=200)
        await scene.publish(Spool("run"))
        await scene.ingest.close()

    async def after():
        scene = Scene(rundir, 2, total=300)
        await scene.ingest.open("run", rundir)
        spool = Spool("run")
        spool.offsets[0] = (await scene.ingest.cursor(rundir)).stdout_offset
        following = asyncio.ensure_future(scene.subscribe(None))
        await scene.publish(spool, first=201)
        got = await asyncio.wait_for(following, 60)
        await scene.ingest.close()
        return got

    asyncio.run(before())

    assert asyncio.run(after()) == list(range(1, 301))


def test_a_stream_of_a_run_that_is_over_ends(small, rundir):
    async def main():
        scene = Scene(rundir, 3, total=100)
        await scene.publish(Spool("run"))
        whole = await asyncio.wait_for(scene.fetch(1, 1000, None), 30)
        part = await asyncio.wait_for(scene.fetch(20, 30, {"metric"}), 30)
        since = await scene.ingest.since_of_tail(rundir, 5, {"metric"})
        await scene.ingest.close()
        return whole, part, since

    assert asyncio.run(main()) == (list(range(1, 101)), [21, 24, 27, 30], 86)


def test_a_stream_may_start_before_the_run_does(small, rundir):
    async def main():
        scene = Scene(rundir, 4, total=100)
        following = asyncio.ensure_future(scene.subscribe(None))
        await asyncio.sleep(0)
        await scene.ingest.open("run", rundir)
        await scene.publish(Spool("run"))
        got = await asyncio.wait_for(following, 30)
        await scene.ingest.close()
        return got

    assert asyncio.run(main()) == list(range(1, 101))
