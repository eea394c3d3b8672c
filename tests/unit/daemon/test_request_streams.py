"""Waiting for the next message of a client's stream."""

import asyncio

from mosaic.daemon.request_streams import RequestStreams

NEVER_S = 3600.0


class Client:
    """Says what it is told to, then nothing more; counts how often it was asked."""

    def __init__(self, *messages):
        self._messages = list(messages)
        self.asked = 0
        self.is_asked = asyncio.Event()

    def __aiter__(self):
        return self

    async def __anext__(self):
        self.asked += 1
        if self._messages:
            return self._messages.pop(0)
        self.is_asked.set()
        return await asyncio.Event().wait()


async def done(*messages):
    for message in messages:
        yield message


def test_messages_come_in_order_until_the_client_is_done():
    async def run():
        return [message async for message in RequestStreams().each(done(1, 2, 3))]

    assert asyncio.run(run()) == [1, 2, 3]


def test_a_message_is_asked_for_when_the_one_before_was_dealt_with():
    async def run():
        client = Client(1, 2, 3)
        await anext(RequestStreams(NEVER_S).each(client))
        await asyncio.sleep(0)
        return client.asked

    assert asyncio.run(run()) == 1


def test_a_client_that_says_nothing_is_not_waited_for():
    async def run():
        request_streams = RequestStreams(quiet_s=0.01)
        heard = [message async for message in request_streams.each(Client(1))]
        return heard, request_streams._waiting

    assert asyncio.run(run()) == ([1], set())


def test_a_close_ends_the_streams_that_wait():
    async def run():
        request_streams, client = RequestStreams(NEVER_S), Client(1)

        async def hear():
            return [message async for message in request_streams.each(client)]

        hearing = asyncio.create_task(hear())
        await client.is_asked.wait()
        request_streams.close()
        return await hearing

    assert asyncio.run(run()) == [1]


def test_a_close_leaves_time_for_the_reply_that_is_owed():
    async def run():
        request_streams, replies = RequestStreams(NEVER_S), []
        async for message in request_streams.each(Client(1, 2)):
            request_streams.close()
            await asyncio.sleep(0.01)  # the commit
            replies.append(message)
        return replies

    assert asyncio.run(run()) == [1]


def test_a_close_that_meets_a_limit_which_has_just_passed_is_no_error():
    async def run():
        request_streams, client = RequestStreams(NEVER_S), Client(1)

        async def hear():
            return [message async for message in request_streams.each(client)]

        hearing = asyncio.create_task(hear())
        await client.is_asked.wait()
        (limit,) = request_streams._waiting
        limit.reschedule(0)
        await asyncio.sleep(0)  # the limit has passed, and its stream does not know it yet
        request_streams.close()
        return await hearing

    assert asyncio.run(run()) == [1]
