"""How much callers may send at the same time."""

import asyncio

import pytest

from mosaic.daemon.admission import OWNER
from mosaic.daemon.receiving import MOST_STREAMS, Receiving
from mosaic.model.errors import StoreUnavailable


class Sending:
    """Clients that open a message and finish it when they are told to."""

    def __init__(self):
        self.underway = 0
        self.finish = asyncio.Event()

    def __aiter__(self):
        return self

    async def __anext__(self):
        self.underway += 1
        await self.finish.wait()
        self.underway -= 1
        return b"message"


@pytest.mark.parametrize("caller", ["a run", OWNER, "unproven"])
def test_a_caller_with_many_calls_sends_only_a_few_messages_at_the_same_time(caller):
    async def run():
        sending, receiving = Sending(), Receiving()
        calls = [asyncio.create_task(receiving.one(caller, sending)) for _ in range(100)]
        await asyncio.sleep(0)  # every call is asked for its message, or waits
        other = Sending()
        other.finish.set()
        assert await receiving.one("another run", other) == b"message"
        underway = sending.underway
        sending.finish.set()
        return underway, await asyncio.gather(*calls)

    underway, received = asyncio.run(run())

    assert 0 < underway <= 16
    assert received == [b"message"] * 100


def test_a_run_has_a_limited_number_of_open_streams():
    receiving = Receiving()
    open_streams = [receiving.stream("a run") for _ in range(MOST_STREAMS)]
    for stream in open_streams:
        stream.__enter__()

    with receiving.stream("another run"), pytest.raises(StoreUnavailable), receiving.stream("a run"):
        pass
    open_streams[0].__exit__(None, None, None)

    with receiving.stream("a run"):
        pass
