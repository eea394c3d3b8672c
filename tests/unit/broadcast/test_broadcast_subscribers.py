import asyncio

from mosaic.broadcast.subscribers import Broadcaster
from mosaic.wire import mosaic_pb2 as pb

RUN = "01JD0000000000000000000000"


def batch(first, last):
    """Every third event is a metric, the others are steps."""
    made = pb.EventBatch()
    for seq in range(first, last + 1):
        event = made.events.add(seq=seq)
        (event.metric if seq % 3 == 0 else event.step).SetInParent()
    return made


async def collect(subscription):
    return [event.seq async for got in subscription for event in got.events]


def run(scene):
    async def main():
        await asyncio.wait_for(scene(Broadcaster()), 60)

    asyncio.run(main())


def test_a_subscriber_gets_the_events_in_the_ring_and_then_live_ones():
    async def scene(broadcaster):
        broadcaster.publish(RUN, batch(1, 5))
        subscription = broadcaster.subscribe(RUN, None, 2)
        following = asyncio.ensure_future(collect(subscription))
        await asyncio.sleep(0)
        broadcaster.publish(RUN, batch(6, 6))
        broadcaster.publish(RUN, batch(7, 9))
        broadcaster.close(RUN)

        assert await following == [3, 4, 5, 6, 7, 8, 9]

    run(scene)


def test_a_subscriber_of_some_kinds_gets_only_those():
    async def scene(broadcaster):
        following = asyncio.ensure_future(collect(broadcaster.subscribe(RUN, {"metric"}, 0)))
        for first in range(1, 31, 2):
            broadcaster.publish(RUN, batch(first, first + 1))
            await asyncio.sleep(0)
        broadcaster.close(RUN)

        assert await following == list(range(3, 31, 3))

    run(scene)


def test_a_subscription_ends_after_until_while_the_run_continues():
    async def scene(broadcaster):
        subscription = broadcaster.subscribe(RUN, None, 0, until_seq=4)
        broadcaster.publish(RUN, batch(1, 3))
        broadcaster.publish(RUN, batch(4, 8))

        assert await collect(subscription) == [1, 2, 3, 4]

    run(scene)


def test_a_subscriber_that_is_behind_gets_joined_batches_and_one_that_keeps_up_the_shared_one():
    async def scene(broadcaster):
        slow = broadcaster.subscribe(RUN, None, 0)
        fast = [broadcaster.subscribe(RUN, None, 0) for _ in range(2)]
        got = []
        for seq in range(1, 2001):
            broadcaster.publish(RUN, batch(seq, seq))
            got.append([await anext(subscription) for subscription in fast])

        assert all(one is two for one, two in got)
        assert [len((await anext(slow)).events) for _ in range(2)] == [1000, 1000]

    run(scene)


def test_a_slow_subscriber_gets_one_missed_range_and_then_continues():
    async def scene(broadcaster):
        subscription = broadcaster.subscribe(RUN, None, 0)
        broadcaster.publish(RUN, batch(1, 10))
        await anext(subscription)
        for first in range(11, 30_011, 100):
            broadcaster.publish(RUN, batch(first, first + 99))
        broadcaster.close(RUN)

        missed = await anext(subscription)
        rest = [got async for got in subscription]

        assert (missed.missed.first, list(missed.events)) == (11, [])
        assert missed.missed.last > 10_000
        assert not any(got.HasField("missed") for got in rest)
        seqs = [event.seq for got in rest for event in got.events]
        assert seqs == list(range(missed.missed.last + 1, 30_011))

    run(scene)


def test_a_missed_range_ends_at_until():
    async def scene(broadcaster):
        subscription = broadcaster.subscribe(RUN, None, 0, until_seq=50)
        for first in range(1, 30_001, 1000):
            broadcaster.publish(RUN, batch(first, first + 999))

        got = [one async for one in subscription]

        assert [(one.missed.first, one.missed.last) for one in got] == [(1, 50)]

    run(scene)


def test_two_hundred_subscribers_each_get_everything():
    async def scene(broadcaster):
        following = [asyncio.ensure_future(collect(broadcaster.subscribe(RUN, None, 0))) for _ in range(200)]
        for first in range(1, 1001, 50):
            broadcaster.publish(RUN, batch(first, first + 49))
            await asyncio.sleep(0)
        broadcaster.close(RUN)

        everything = list(range(1, 1001))
        assert all(got == everything for got in await asyncio.gather(*following))

    run(scene)


def test_a_subscription_that_starts_after_the_end_ends_immediately():
    async def scene(broadcaster):
        broadcaster.publish(RUN, batch(1, 2))
        broadcaster.close(RUN)

        assert await collect(broadcaster.subscribe(RUN, None, 0)) == []
        assert await broadcaster.wait_for_text(RUN, broadcaster.texts(RUN)) is False

    run(scene)


def test_a_run_that_publishes_after_its_end_is_live_again():
    async def scene(broadcaster):
        broadcaster.close(RUN)
        broadcaster.publish(RUN, batch(1, 2))

        assert [event.seq for event in (await anext(broadcaster.subscribe(RUN, None, 0))).events] == [1, 2]

    run(scene)


def test_a_subscription_says_what_the_ring_no_longer_holds():
    async def scene(broadcaster):
        broadcaster.open(RUN, last_seq=100)
        subscription = broadcaster.subscribe(RUN, None, 40)
        assert subscription.needs_from_store == (41, 100)

        subscription.skip_to(100)
        broadcaster.publish(RUN, batch(101, 102))

        assert subscription.needs_from_store is None
        assert [event.seq for event in (await anext(subscription)).events] == [101, 102]

    run(scene)


def test_a_wait_for_text_that_has_already_arrived_returns_immediately():
    async def scene(broadcaster):
        seen = broadcaster.texts(RUN)
        broadcaster.text_arrived(RUN)
        assert await broadcaster.wait_for_text(RUN, seen) is True

        seen = broadcaster.texts(RUN)
        waiting = asyncio.ensure_future(broadcaster.wait_for_text(RUN, seen))
        await asyncio.sleep(0)
        broadcaster.publish(RUN, batch(1, 1))  # an event is not text
        await asyncio.sleep(0)
        assert not waiting.done()
        broadcaster.close(RUN)
        assert await waiting is False

    run(scene)


def test_requests_for_unknown_runs_leave_nothing_behind():
    async def scene(broadcaster):
        for i in range(50):
            waiting = asyncio.ensure_future(broadcaster.wait_for_text(f"run{i}", broadcaster.texts(f"run{i}")))
            await asyncio.sleep(0)
            waiting.cancel()
            await asyncio.gather(waiting, return_exceptions=True)

        assert broadcaster._channels == {}

    run(scene)
