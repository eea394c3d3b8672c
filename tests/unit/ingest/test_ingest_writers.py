import asyncio
import sqlite3
import threading

import pytest

from mosaic.ingest.writers import Writer
from mosaic.model.errors import StoreFailed, StoreUnavailable


def with_writer(test):
    async def scene():
        writer = Writer("test")
        try:
            await asyncio.wait_for(test(writer), 30)
        finally:
            await writer.stop()

    asyncio.run(scene())


def test_jobs_run_in_order_in_one_thread_and_return_their_results():
    async def scene(writer):
        order, threads = [], set()

        def job(i):
            order.append(i)
            threads.add(threading.get_ident())
            return i * i

        answers = await asyncio.gather(*(writer.call(lambda i=i: job(i)) for i in range(50)))

        assert answers == [i * i for i in range(50)]
        assert order == list(range(50))
        assert threads.isdisjoint({threading.get_ident()})
        assert len(threads) == 1

    with_writer(scene)


def test_a_mosaic_error_is_raised_in_the_caller_and_the_thread_continues():
    async def scene(writer):
        def full():
            raise StoreUnavailable("disk full")

        with pytest.raises(StoreUnavailable, match="disk full"):
            await writer.call(full)

        assert await writer.call(lambda: 5) == 5
        assert writer.problem == ""

    with_writer(scene)


ODD = [
    TypeError,
    ValueError,
    OverflowError,
    RecursionError,
    AssertionError,
    KeyError,
    sqlite3.InterfaceError,
    MemoryError,
]


@pytest.mark.parametrize("kind", ODD)
def test_the_thread_survives_any_exception_of_a_job(kind):
    async def scene(writer):
        def fail():
            raise kind("odd")

        with pytest.raises(StoreFailed, match=kind.__name__):
            await writer.call(fail)

        assert await writer.call(lambda: 5) == 5
        assert writer.problem == ""

    with_writer(scene)


def test_the_death_of_the_thread_is_loud_and_fails_all_jobs():
    async def scene(writer):
        gate = threading.Event()

        def die():
            gate.wait(30)
            raise SystemExit("a bug")

        calls = [asyncio.ensure_future(writer.call(job)) for job in (die, lambda: 1, lambda: 2)]
        await asyncio.sleep(0)
        gate.set()
        ends = await asyncio.gather(*calls, return_exceptions=True)

        assert [type(end) for end in ends] == [StoreFailed] * 3
        assert "SystemExit: a bug" in writer.problem
        with pytest.raises(StoreFailed, match="a bug"):
            await writer.call(lambda: 3)

    with_writer(scene)


def test_then_runs_even_if_the_caller_is_gone():
    async def scene(writer):
        gate, happened = threading.Event(), asyncio.Event()
        call = asyncio.ensure_future(writer.call(lambda: gate.wait(30), lambda _: happened.set()))
        await asyncio.sleep(0)

        call.cancel()
        gate.set()

        await asyncio.wait_for(happened.wait(), 30)
        assert call.cancelled()

    with_writer(scene)


def test_stopping_runs_the_waiting_jobs_first():
    done = []

    async def scene():
        writer = Writer("test")
        for i in range(20):
            writer.post(lambda i=i: done.append(i))
        await writer.stop()

    asyncio.run(scene())

    assert done == list(range(20))
