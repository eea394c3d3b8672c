"""Streams of requests: waiting for the next message of a client."""

import asyncio

from mosaic.daemon.request_streams import RequestStreams

NEVER_S = 3600.0


class Client:
    """Sends the given messages, then nothing; counts how often it was read."""

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


def test_messages_arrive_in_order_until_the_client_is_done():
    async def run():
        return [message async for message in RequestStreams().each(done(1, 2, 3))]

    assert asyncio.run(run()) == [1, 2, 3]


def test_a_message_is_awaited_after_the_previous_one_was_processed():
    async def run():
        client = Client(1, 2, 3)
        await anext(RequestStreams(NEVER_S).each(client))
        await asyncio.sleep(0)
        return client.asked

    assert asyncio.run(run()) == 1


def test_an_idle_client_times_out():
    async def run():
        request_streams = RequestStreams(quiet_s=0.01)
        received = [message async for message in request_streams.each(Client(1))]
        return received, request_streams._waiting

    assert asyncio.run(run()) == ([1], set())


def test_closing_ends_the_streams_that_wait():
    async def run():
        request_streams, client = RequestStreams(NEVER_S), Client(1)

        async def read():
            return [message async for message in request_streams.each(client)]

        reading = asyncio.create_task(read())
        await client.is_asked.wait()
        request_streams.close()
        return await reading

    assert asyncio.run(run()) == [1]


def test_closing_leaves_time_for_the_pending_reply():
    async def run():
        request_streams, replies = RequestStreams(NEVER_S), []
        async for message in request_streams.each(Client(1, 2)):
            request_streams.close()
            await asyncio.sleep(0.01)  # the commit
            replies.append(message)
        return replies

    assert asyncio.run(run()) == [1]


def test_closing_a_stream_whose_timeout_has_just_passed_is_not_an_error():
    async def run():
        request_streams, client = RequestStreams(NEVER_S), Client(1)

        async def read():
            return [message async for message in request_streams.each(client)]

        reading = asyncio.create_task(read())
        await client.is_asked.wait()
        (limit,) = request_streams._waiting
        limit.reschedule(0)
        await asyncio.sleep(0)  # the limit has passed, and its stream does not know it yet
        request_streams.close()
        return await reading

    assert asyncio.run(run()) == [1]
