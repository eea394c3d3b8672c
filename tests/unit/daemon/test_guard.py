"""The edge of every call: the token, the message, the status codes."""

import asyncio

import grpc
import pytest

from mosaic.daemon.auth import Tokens
from mosaic.daemon.guard import LONGEST_SENTENCE, STATUS, Guard
from mosaic.model import errors
from mosaic.wire import mosaic_pb2 as pb

Code = grpc.StatusCode


class Aborted(Exception):
    def __init__(self, code, details):
        super().__init__(code, details)
        self.code, self.details = code, details


class Context:
    def __init__(self, token):
        self._token = token

    def invocation_metadata(self):
        return (("authorization", f"Bearer {self._token}"),)

    async def abort(self, code, details, trailing=()):
        raise Aborted(code, details)


class Details:
    def __init__(self, method):
        self.method = f"/mosaic.v1.TrainerService/{method}"


def call(handler, token="owner", method="GetRun", data=b""):
    """The reply of the guarded handler to these bytes; Aborted if it refuses."""

    async def run():
        async def continuation(details):
            return grpc.unary_unary_rpc_method_handler(handler, pb.RunRequest.FromString, pb.RunInfo.SerializeToString)

        guarded = await Guard(Tokens("owner")).intercept_service(continuation, Details(method))
        return await guarded.unary_unary(data, Context(token))

    return asyncio.run(run())


def stream(handler, token="owner"):
    async def run():
        async def continuation(details):
            return grpc.unary_stream_rpc_method_handler(handler, pb.RunRequest.FromString, pb.RunInfo.SerializeToString)

        guarded = await Guard(Tokens("owner")).intercept_service(continuation, Details("WatchRuns"))
        return [reply async for reply in guarded.unary_stream(b"", Context(token))]

    return asyncio.run(run())


def dialogue(handler, *messages, token="owner", method="SomeDialogue"):
    async def run():
        async def continuation(details):
            kind = grpc.stream_stream_rpc_method_handler
            return kind(handler, pb.RunRequest.FromString, pb.RunInfo.SerializeToString)

        async def sent():
            for message in messages:
                yield message

        guarded = await Guard(Tokens("owner")).intercept_service(continuation, Details(method))
        return [reply async for reply in guarded.stream_stream(sent(), Context(token))]

    return asyncio.run(run())


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


def test_calls_that_check_their_own_token_reach_the_handler():
    assert call(echo, token="", method="Heartbeat") == ""
    assert dialogue(echo_each, b"", token="", method="PublishTelemetry") == [""]


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
