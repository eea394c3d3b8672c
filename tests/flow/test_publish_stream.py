"""PublishTelemetry as a stream, sent to a real daemon by clients other than the tailer."""

import contextlib
import queue

import grpc
import pytest
from lab import alive, wait_until

from mosaic.model.durable import read_json
from mosaic.wire import mosaic_pb2 as pb
from mosaic.wire.mosaic_pb2_grpc import TrainerServiceStub

Code = grpc.StatusCode
PATH = "/mosaic.v1.TrainerService/PublishTelemetry"


class Publishing:
    """One stream: sends a message and reads its reply, or sends several at once."""

    def __init__(self, stub, token):
        self._queue = queue.SimpleQueue()
        metadata = [("authorization", f"Bearer {token}")]
        self.call = stub.PublishTelemetry(iter(self._queue.get, None), metadata=metadata, timeout=60)

    def send(self, *requests):
        for request in requests:
            self._queue.put(request)

    def answer(self):
        """The next offset of the store, or the status of a refusal."""
        try:
            return next(self.call).next_offset
        except StopIteration:
            return Code.OK
        except grpc.RpcError as error:
            return error.code()

    def close(self):
        self._queue.put(None)


class Publisher:
    """A finished run, its session, and streams to the daemon."""

    def __init__(self, lab, channel):
        self.lab, self.channel = lab, channel
        self.run = lab.submit(steps=3)
        lab.wait_until_over(self.run)
        launch = read_json(lab.rundir(self.run).launch)
        ids = {"run_id": self.run.run_id, "attempt": launch["attempt"], "nonce": launch["nonce"]}
        session = TrainerServiceStub(channel).RegisterWorker(pb.RegisterWorkerRequest(**ids))
        self.token, self.end = session.session_token, session.cursor.stderr_offset
        self._streams = []

    def publishing(self, token=None):
        stream = Publishing(TrainerServiceStub(self.channel), self.token if token is None else token)
        self._streams.append(stream)
        return stream

    def text(self, start, data, run_id=""):
        ids = {"run_id": run_id or self.run.run_id, "stream": pb.STDERR}
        request = pb.PublishTelemetryRequest(**ids, start=start, end=start + len(data))
        request.texts.add(stream=pb.STDERR, offset=start, text=data)
        return request

    def close(self):
        for stream in self._streams:
            stream.close()


@contextlib.contextmanager
def publisher_in(lab):
    with (
        grpc.insecure_channel(read_json(lab.root.address)["addresses"][0]) as channel,
        contextlib.closing(Publisher(lab, channel)) as publisher,
    ):
        yield publisher


@pytest.fixture
def publisher(shared_lab):
    with publisher_in(shared_lab) as publisher:
        yield publisher


def stored(publisher):
    return publisher.lab.text(publisher.run, "stderr")[publisher.end :]


def test_requests_sent_at_once_are_stored_and_acknowledged_in_order(publisher):
    stream = publisher.publishing()

    stream.send(*(publisher.text(publisher.end + 2 * n, b"%d\n" % n) for n in range(5)))

    assert [stream.answer() for _ in range(5)] == [publisher.end + 2 * n for n in range(1, 6)]
    assert stored(publisher) == b"0\n1\n2\n3\n4\n"


def test_a_refused_request_ends_the_stream_and_later_ones_are_not_stored(publisher):
    stream = publisher.publishing()

    stream.send(
        publisher.text(publisher.end, b"a\n"),
        publisher.text(publisher.end + 9, b"b\n"),
        publisher.text(publisher.end + 2, b"c\n"),
    )

    assert [stream.answer(), stream.answer()] == [publisher.end + 2, Code.FAILED_PRECONDITION]
    assert stored(publisher) == b"a\n"


def test_of_two_streams_for_one_run_the_one_that_is_behind_is_fenced(publisher):
    first, second = publisher.publishing(), publisher.publishing()
    first.send(publisher.text(publisher.end, b"a\n"))
    assert first.answer() == publisher.end + 2

    second.send(publisher.text(publisher.end, b"a\n"))
    first.send(publisher.text(publisher.end + 2, b"b\n"))

    assert second.answer() is Code.FAILED_PRECONDITION
    assert first.answer() == publisher.end + 4
    assert stored(publisher) == b"a\nb\n"


def test_every_request_of_a_stream_must_belong_to_the_run_of_the_token(publisher):
    other = publisher.lab.submit(steps=3)
    publisher.lab.wait_until_over(other)
    stream = publisher.publishing()
    stream.send(publisher.text(publisher.end, b"a\n"))
    assert stream.answer() == publisher.end + 2

    stream.send(publisher.text(0, b"b\n", other.run_id))

    assert stream.answer() is Code.PERMISSION_DENIED
    assert publisher.lab.text(other, "stderr") == b""


@pytest.mark.parametrize("token", ["", "wrong"])
def test_a_stream_without_a_session_stores_nothing(publisher, token):
    stream = publisher.publishing(token)

    stream.send(publisher.text(publisher.end, b"a\n"))

    assert stream.answer() is Code.UNAUTHENTICATED
    assert stored(publisher) == b""


def test_a_tailer_that_sends_single_requests_still_works(publisher):
    call = publisher.channel.unary_unary(
        PATH, pb.PublishTelemetryRequest.SerializeToString, pb.PublishTelemetryReply.FromString
    )

    reply = call(
        publisher.text(publisher.end, b"a\n"), metadata=[("authorization", f"Bearer {publisher.token}")], timeout=60
    )

    assert reply.next_offset == publisher.end + 2


def test_a_daemon_that_stops_ends_idle_streams_itself(lab):
    with publisher_in(lab) as publisher:
        silent = [publisher.publishing() for _ in range(5)]
        for number, stream in enumerate(silent):
            stream.send(publisher.text(publisher.end + 2 * number, b"a\n"))
            assert stream.answer() == publisher.end + 2 * number + 2
        pid = lab.daemon_pid()

        lab.client.shutdown()

        # Not UNAVAILABLE, the status of a stream that the server had to wait for and then cut.
        assert [stream.answer() for stream in silent] == [Code.OK] * 5
    wait_until(lambda: not alive(pid), words="the daemon's end")
