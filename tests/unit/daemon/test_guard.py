"""The edge of every call: the token, the message, the status codes."""

import asyncio
from types import SimpleNamespace

import grpc
import pytest

from mosaic.daemon.admission import Admission
from mosaic.daemon.auth import Tokens
from mosaic.daemon.guard import LONGEST_SENTENCE, STATUS, Guard
from mosaic.daemon.receiving import Receiving
from mosaic.daemon.scope import Scope
from mosaic.model import errors
from mosaic.model.ulid import new_ulid
from mosaic.wire import mosaic_pb2 as pb

Code = grpc.StatusCode
DRIVER, OTHER = new_ulid(), new_ulid()


class Aborted(Exception):
    def __init__(self, code, details):
        super().__init__(code, details)
        self.code, self.details = code, details


class Context:
    async def abort(self, code, details, trailing=()):
        raise Aborted(code, details)


class Details:
    def __init__(self, method, token):
        self.method = f"/mosaic.v1.TrainerService/{method}"
        self.invocation_metadata = (("authorization", f"Bearer {token}"),)


class NoRuns:
    """A daemon without runs."""

    async def run_of(self, token):
        return ""


class OneDriver(NoRuns):
    """A daemon with a live driver of the experiment `lr`."""

    async def allow_driver(self, run_id, token):
        return "lr"


class Sent:
    """The messages of a client, and how many of them the daemon asked for."""

    def __init__(self, *messages):
        self._messages = list(messages)
        self.received = 0

    def __aiter__(self):
        return self

    async def __anext__(self):
        if not self._messages:
            raise StopAsyncIteration
        self.received += 1
        return self._messages.pop(0)


def ask(make, handler, method, token, sent):
    """All replies of the guarded handler; Aborted if it refuses."""

    async def run():
        async def continuation(details):
            return make(handler, pb.RunRequest.FromString, pb.RunInfo.SerializeToString)

        guard = Guard(Admission(Tokens("owner"), NoRuns(), is_private=False), Receiving(limit_s=0.01), Scope(None))
        guarded = (await guard.intercept_service(continuation, Details(method, token))).stream_stream(sent, Context())
        return [reply async for reply in guarded] if hasattr(guarded, "__aiter__") else await guarded

    return asyncio.run(run())


def call(handler, token="owner", method="GetRun", data=b""):
    (reply,) = ask(grpc.unary_unary_rpc_method_handler, handler, method, token, Sent(data))
    return reply


def stream(handler, token="owner"):
    return ask(grpc.unary_stream_rpc_method_handler, handler, "WatchRuns", token, Sent(b""))


def dialogue(handler, *messages, token="owner", method="SomeDialogue"):
    return ask(grpc.stream_stream_rpc_method_handler, handler, method, token, Sent(*messages))


async def echo_each(requests, context):
    async for request in requests:
        yield request.run_id


def raising(error):
    async def handler(request, context):
        raise error

    return handler


async def echo(request, context):
    return request.run_id


def test_a_call_with_the_owners_token_reaches_the_handler():
    assert call(echo, data=pb.RunRequest(run_id="a").SerializeToString()) == "a"


def test_a_driver_reaches_no_handler_whose_message_is_outside_its_experiment():
    async def find(read):
        return [OTHER]  # as the registry answers for a run of another experiment

    details = Details("GetRun", "driver")
    details.invocation_metadata += (("mosaic-run-id", DRIVER),)
    admission = Admission(Tokens("owner"), OneDriver(), is_private=True)
    guard = Guard(admission, Receiving(limit_s=0.01), Scope(SimpleNamespace(do=find)))
    reached = []

    async def get_run(request, context):
        reached.append(request.run_id)

    async def run():
        async def continuation(details):
            return grpc.unary_unary_rpc_method_handler(get_run, pb.RunRequest.FromString, pb.RunInfo.SerializeToString)

        guarded = (await guard.intercept_service(continuation, details)).stream_stream
        return [reply async for reply in guarded(Sent(pb.RunRequest(run_id=OTHER).SerializeToString()), Context())]

    with pytest.raises(Aborted, match=f"'{OTHER}' is not the id of a run of the experiment 'lr'"):
        asyncio.run(run())
    assert reached == []


@pytest.mark.parametrize("data", [b"", b"\xff\xff"])
def test_a_wrong_token_is_refused_before_the_message_is_read(data):
    with pytest.raises(Aborted) as refusal:
        call(echo, token="wrong", data=data)

    assert refusal.value.code is Code.UNAUTHENTICATED
    assert "daemon.token" in refusal.value.details


def test_a_wrong_token_is_refused_before_the_first_reply_of_a_stream():
    async def replies(request, context):
        yield "secret"

    assert stream(replies) == ["secret"]
    with pytest.raises(Aborted) as refusal:
        stream(replies, token="wrong")
    assert refusal.value.code is Code.UNAUTHENTICATED


def test_a_wrong_token_is_refused_before_the_first_message_of_a_dialogue():
    message = pb.RunRequest(run_id="a").SerializeToString()

    assert dialogue(echo_each, message, message) == ["a", "a"]
    for data in (message, b"\xff\xff"):
        with pytest.raises(Aborted) as refusal:
            dialogue(echo_each, data, token="wrong")
        assert refusal.value.code is Code.UNAUTHENTICATED


def test_a_dialogue_ends_with_the_code_of_the_message_that_failed():
    async def reject(requests, context):
        async for request in requests:
            if request.run_id == "b":
                raise errors.BadBatch("b", "no")
            yield request.run_id

    messages = [pb.RunRequest(run_id=name).SerializeToString() for name in "abc"]

    for failing in (messages, [messages[0], b"\xff\xff"]):
        with pytest.raises(Aborted) as refusal:
            dialogue(reject, *failing)
        assert refusal.value.code is Code.INVALID_ARGUMENT


@pytest.mark.parametrize("method", ["GetRun", "RegisterWorker", "Heartbeat", "PublishTelemetry", "NoSuchCall"])
@pytest.mark.parametrize("make", [grpc.unary_unary_rpc_method_handler, grpc.stream_stream_rpc_method_handler])
def test_no_message_is_received_from_a_caller_without_a_token(make, method):
    sent = Sent(b"x" * 1_000_000)

    with pytest.raises(Aborted) as refusal:
        ask(make, echo, method, "wrong", sent)

    assert refusal.value.code is Code.UNAUTHENTICATED
    assert sent.received == 0


def test_a_call_whose_message_never_arrives_ends_with_a_sentence():
    class Silent(Sent):
        async def __anext__(self):
            await asyncio.Event().wait()

    for sent, sentence in ((Silent(), "did not arrive within 0.01 s"), (Sent(), "request: is missing")):
        with pytest.raises(Aborted, match=sentence) as refusal:
            ask(grpc.unary_unary_rpc_method_handler, echo, "GetRun", "owner", sent)
        assert refusal.value.code is Code.INVALID_ARGUMENT


def test_a_handler_that_writes_its_replies_itself_is_awaited():
    async def watch(request, context):
        written.append(request.run_id)

    written = []

    assert stream(watch) == []
    assert written == [""]


def test_bytes_that_are_not_a_valid_message_are_an_invalid_argument():
    with pytest.raises(Aborted) as refusal:
        call(echo, data=b"\xff\xff")

    assert refusal.value.code is Code.INVALID_ARGUMENT


@pytest.mark.parametrize("kind", [errors.UnknownWorker, *STATUS], ids=lambda kind: kind.__name__)
def test_every_error_has_a_code_and_keeps_its_message(kind):
    error = kind.__new__(kind)
    Exception.__init__(error, "what to do")

    with pytest.raises(Aborted) as refusal:
        call(raising(error))

    assert refusal.value.code is next(STATUS[base] for base in kind.__mro__ if base in STATUS)
    assert refusal.value.details == "what to do"


def test_every_error_class_is_in_the_table():
    never_in_a_call = {errors.AlreadyRunning, errors.NoDaemon}
    ours = [kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, errors.MosaicError)]

    missing = {kind for kind in ours if not any(base in STATUS for base in kind.__mro__)}

    assert missing - never_in_a_call == {errors.MosaicError}


def test_an_unexpected_error_is_internal_and_says_so():
    with pytest.raises(Aborted) as refusal:
        call(raising(ZeroDivisionError("x / 0")))

    assert refusal.value.code is Code.INTERNAL
    assert "Unexpected error in the daemon (ZeroDivisionError: x / 0)" in refusal.value.details


@pytest.mark.parametrize("letter", ["x", "é", "𝕏", "\ud800"])
def test_a_message_is_short_enough_for_a_header(letter):
    with pytest.raises(Aborted) as refusal:
        call(raising(errors.UnknownRun(letter * 1_000_000)))

    assert refusal.value.code is Code.NOT_FOUND
    assert len(refusal.value.details.encode()) <= LONGEST_SENTENCE + 10
    assert refusal.value.details.startswith("There is no run '")
