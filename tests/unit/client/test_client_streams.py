"""Streams deliver everything once and in order, even if the daemon restarts or the reader is slow."""

import asyncio

import grpc
import pytest
from scripted_daemon import RUN_ID, TOKEN, ScriptedService, step

from mosaic.client import AsyncTrainerClient
from mosaic.client.endpoint import Endpoint
from mosaic.client.synchronous import LoopThread
from mosaic.model.errors import NoDaemon, UnknownRun
from mosaic.wire import mosaic_pb2 as pb

UNAVAILABLE = grpc.StatusCode.UNAVAILABLE


def batch(*seqs, missed=None):
    return pb.EventBatch(
        events=[step(seq) for seq in seqs], missed=pb.Range(first=missed[0], last=missed[1]) if missed else None
    )


def seqs_of(events):
    return [event.seq for event in events]


def test_a_broken_stream_continues_after_the_last_event(serve, connect):
    service = ScriptedService(turns=[[batch(1, 2), batch(3), UNAVAILABLE], [batch(4, 5)]])
    client = connect(serve(service))

    seen = seqs_of(client.stream_events(RUN_ID))

    assert seen == [1, 2, 3, 4, 5]
    assert [request.since_seq for request in service.requests] == [0, 3]


def test_repeated_events_are_delivered_once(serve, connect):
    service = ScriptedService(turns=[[batch(1, 2), UNAVAILABLE], [batch(1, 2, 3)]])
    client = connect(serve(service))

    assert seqs_of(client.stream_events(RUN_ID)) == [1, 2, 3]


def test_a_stream_of_the_last_run_stays_with_it(serve, connect):
    service = ScriptedService(
        turns=[[batch(1), batch(4, missed=(2, 3)), UNAVAILABLE], [batch(5)]],
        log_turns=[[UNAVAILABLE], [pb.LogBatch()]],
    )
    client = connect(serve(service))

    seen = seqs_of(client.stream_events("last"))
    list(client.stream_logs("last"))

    assert seen == [1, 2, 3, 4, 5]
    assert {request.run_id for request in service.requests} == {RUN_ID}


def test_a_missed_range_is_fetched_in_order(serve, connect):
    service = ScriptedService(turns=[[batch(1), batch(8, 9, missed=(2, 7)), batch(10)]])
    client = connect(serve(service))

    assert seqs_of(client.stream_events(RUN_ID)) == list(range(1, 11))


def test_events_with_new_numbers_are_delivered_although_theirs_were_seen(serve, connect):
    turns = [[batch(1, 2, 3), pb.EventBatch(renumbered=True), batch(1, 2), UNAVAILABLE], [batch(3)]]
    service = ScriptedService(turns=turns)
    client = connect(serve(service))

    assert seqs_of(client.stream_events(RUN_ID)) == [1, 2, 3, 1, 2, 3]
    assert [request.since_seq for request in service.requests] == [0, 2]


def test_a_tail_is_requested_once_and_continued_by_number(serve, connect):
    service = ScriptedService(turns=[[batch(50, 51), UNAVAILABLE], [batch(52)]])
    client = connect(serve(service))

    seen = seqs_of(client.stream_events(RUN_ID, tail=2))

    assert seen == [50, 51, 52]
    assert [(request.tail, request.since_seq) for request in service.requests] == [(2, 0), (0, 51)]


def test_a_stream_that_a_stopping_daemon_ends_is_opened_again(serve, connect):
    service = ScriptedService(turns=[[batch(1)], [batch(2)]], state=pb.EXECUTING)
    client = connect(serve(service))

    stream = client.stream_events(RUN_ID)
    first = next(stream).seq, next(stream).seq
    stream.close()

    assert first == (1, 2)


def test_a_stream_survives_a_restart_of_the_daemon(serve, connect):
    service = ScriptedService(turns=[[batch(1), batch(2), UNAVAILABLE], [batch(3)]])
    daemon = serve(service)
    client = connect(daemon)

    stream = client.stream_events(RUN_ID)
    first = [next(stream).seq, next(stream).seq]
    daemon.stop()
    daemon.start()

    assert first + seqs_of(stream) == [1, 2, 3]


def test_a_stream_gives_up_when_no_daemon_comes_back(serve):
    service = ScriptedService(turns=[[batch(1), UNAVAILABLE]])
    daemon = serve(service)

    async def read():
        async with AsyncTrainerClient(Endpoint(daemon.target, TOKEN), patience_s=0.2) as client:
            async for _ in client.stream_events(RUN_ID):
                await asyncio.to_thread(daemon.stop)

    with pytest.raises(NoDaemon):
        asyncio.run(read())


def test_an_error_that_a_restart_cannot_fix_is_raised(serve, connect):
    service = ScriptedService(turns=[[batch(1), grpc.StatusCode.NOT_FOUND]])
    client = connect(serve(service))

    with pytest.raises(UnknownRun, match="the script says NOT_FOUND"):
        list(client.stream_events(RUN_ID))


def test_a_log_continues_at_its_byte_offsets(serve, connect):
    def text(stream, offset, data):
        return pb.LogBatch(texts=[pb.LogText(stream=stream, offset=offset, text=data)])

    service = ScriptedService(
        log_turns=[
            [text(pb.STDOUT, 0, b"one\n"), text(pb.STDERR, 10, b"oops\n"), UNAVAILABLE],
            [text(pb.STDOUT, 0, b"one\n"), text(pb.STDOUT, 4, b"two\n")],
        ]
    )
    client = connect(serve(service))

    pieces = list(client.stream_logs(RUN_ID, follow=True, tail_bytes=100))

    assert [piece.text for piece in pieces] == [b"one\n", b"oops\n", b"two\n"]
    again = service.requests[1]
    assert (again.since_stdout, again.since_stderr, again.tail_bytes) == (4, 15, 0)


def test_an_abandoned_stream_leaves_the_client_usable(serve, connect):
    service = ScriptedService(turns=[[batch(1), batch(2), batch(3)]])
    client = connect(serve(service))

    for _ in client.stream_events(RUN_ID):
        break

    assert client.get_run(RUN_ID).run_id == RUN_ID


def test_a_stream_left_open_does_not_disturb_a_closed_client():
    async def batches():
        yield [1]
        yield [2]

    loop = LoopThread()
    stream = loop.iterate(batches())
    next(stream)
    loop.stop()

    stream.close()


def test_every_call_carries_the_token(serve, connect):
    service = ScriptedService()
    client = connect(serve(service))

    client.get_run(RUN_ID)

    assert service.metadata[0]["authorization"] == f"Bearer {TOKEN}"


def test_a_reader_may_be_told_what_it_missed_instead(serve):
    service = ScriptedService(turns=[[batch(1), batch(8, 9, missed=(2, 7)), UNAVAILABLE], [batch(10)]])

    async def read(daemon):
        async with AsyncTrainerClient(Endpoint(daemon.target, TOKEN)) as client:
            return [(seqs_of(page.events), page.missed) async for page in client.event_pages(RUN_ID)]

    pages = asyncio.run(read(serve(service)))

    assert pages == [([1], None), ([8, 9], (2, 7)), ([10], None)]
    assert [request.since_seq for request in service.requests] == [0, 9]


def test_a_missed_range_is_reported_once_even_if_the_stream_breaks_after_it(serve):
    service = ScriptedService(turns=[[batch(1), batch(missed=(2, 7)), UNAVAILABLE], [batch(8)]])

    async def read(daemon):
        async with AsyncTrainerClient(Endpoint(daemon.target, TOKEN)) as client:
            return [(seqs_of(page.events), page.missed) async for page in client.event_pages(RUN_ID)]

    assert asyncio.run(read(serve(service))) == [([1], None), ([], (2, 7)), ([8], None)]
    assert [request.since_seq for request in service.requests] == [0, 7]
