"""The edge of every call: checks the token, parses the message, turns errors into status codes."""

import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import grpc
from google.protobuf.message import DecodeError

from mosaic.daemon.auth import Tokens, bearer
from mosaic.model import errors
from mosaic.wire.names import ERROR_NAME

log = logging.getLogger(__name__)

# A status is sent in a header, where gRPC encodes a byte as up to three and drops the reply if it exceeds 8 kB.
LONGEST_SENTENCE = 2000

# These check a session token or a nonce themselves, because only they know the run.
RUN_METHODS = frozenset({"RegisterWorker", "Heartbeat", "PublishTelemetry"})

STATUS: dict[type[errors.MosaicError], grpc.StatusCode] = {
    errors.BadConfig: grpc.StatusCode.INVALID_ARGUMENT,
    errors.BadBatch: grpc.StatusCode.INVALID_ARGUMENT,
    errors.AmbiguousRun: grpc.StatusCode.INVALID_ARGUMENT,
    errors.BadCommand: grpc.StatusCode.INVALID_ARGUMENT,
    errors.UnknownRun: grpc.StatusCode.NOT_FOUND,
    errors.KeyTaken: grpc.StatusCode.ALREADY_EXISTS,
    errors.CommandTaken: grpc.StatusCode.ALREADY_EXISTS,
    errors.IllegalMove: grpc.StatusCode.FAILED_PRECONDITION,
    errors.RunIsLive: grpc.StatusCode.FAILED_PRECONDITION,
    errors.FolderRemains: grpc.StatusCode.FAILED_PRECONDITION,
    errors.RunIsOver: grpc.StatusCode.FAILED_PRECONDITION,
    errors.NoCommands: grpc.StatusCode.FAILED_PRECONDITION,
    errors.WrongOffset: grpc.StatusCode.FAILED_PRECONDITION,
    errors.BadRoot: grpc.StatusCode.FAILED_PRECONDITION,
    errors.AddressTaken: grpc.StatusCode.FAILED_PRECONDITION,
    errors.NoCheckpoint: grpc.StatusCode.FAILED_PRECONDITION,
    errors.NoCurve: grpc.StatusCode.FAILED_PRECONDITION,
    errors.NoFrames: grpc.StatusCode.FAILED_PRECONDITION,
    errors.GpuTaken: grpc.StatusCode.FAILED_PRECONDITION,
    errors.NotAllowed: grpc.StatusCode.PERMISSION_DENIED,
    errors.StoreUnavailable: grpc.StatusCode.RESOURCE_EXHAUSTED,
    errors.StoreFailed: grpc.StatusCode.INTERNAL,
}


class Guard(grpc.aio.ServerInterceptor):
    """Refuses calls without the owner's token and turns errors into status codes with their message."""

    def __init__(self, tokens: Tokens) -> None:
        self._tokens = tokens
        self._guarded: dict[str, Any] = {}  # wrapped handlers by method

    async def intercept_service(self, continuation: Any, details: Any) -> Any:
        handler = self._guarded.get(details.method)
        if handler is None:
            inner = await continuation(details)
            if inner is None:
                return None
            handler = self._guarded[details.method] = self._guard(inner, details.method.rsplit("/", 1)[-1])
        return handler

    def _guard(self, handler: Any, method: str) -> Any:
        is_open, read = method in RUN_METHODS, handler.request_deserializer
        # Without a deserializer the request arrives as bytes: no message is parsed before the token is checked.
        if handler.request_streaming:
            dialogue = self._guarded_dialogue(handler.stream_stream, read, is_open)
            return grpc.stream_stream_rpc_method_handler(dialogue, None, handler.response_serializer)
        if handler.response_streaming:
            stream = self._guarded_stream(handler.unary_stream, read, is_open)
            return grpc.unary_stream_rpc_method_handler(stream, None, handler.response_serializer)
        call = self._guarded_call(handler.unary_unary, read, is_open)
        return grpc.unary_unary_rpc_method_handler(call, None, handler.response_serializer)

    def _guarded_call(
        self, call: Callable[..., Awaitable[Any]], read: Callable[[bytes], Any], is_open: bool
    ) -> Callable[..., Awaitable[Any]]:
        async def guarded(request: bytes, context: Any) -> Any:
            if not (is_open or self._is_owner(context)):
                await _refuse(context)
            try:
                return await call(read(request), context)
            except Exception as error:  # noqa: BLE001  # the edge of a call: every error becomes a status
                await _abort(context, error)

        return guarded

    def _guarded_stream(
        self, call: Callable[..., AsyncIterator[Any]], read: Callable[[bytes], Any], is_open: bool
    ) -> Callable[..., AsyncIterator[Any]]:
        async def guarded(request: bytes, context: Any) -> AsyncIterator[Any]:
            if not (is_open or self._is_owner(context)):
                await _refuse(context)
            try:
                async for reply in call(read(request), context):
                    yield reply
            except Exception as error:  # noqa: BLE001  # the edge of a call: every error becomes a status
                await _abort(context, error)

        return guarded

    def _guarded_dialogue(
        self, call: Callable[..., AsyncIterator[Any]], read: Callable[[bytes], Any], is_open: bool
    ) -> Callable[..., AsyncIterator[Any]]:
        async def guarded(requests: AsyncIterator[bytes], context: Any) -> AsyncIterator[Any]:
            if not (is_open or self._is_owner(context)):
                await _refuse(context)
            try:
                async for reply in call(_read_each(requests, read), context):
                    yield reply
            except Exception as error:  # noqa: BLE001  # the edge of a call: every error becomes a status
                await _abort(context, error)

        return guarded

    def _is_owner(self, context: Any) -> bool:
        return self._tokens.is_owner(bearer(context.invocation_metadata()))


async def _read_each(requests: AsyncIterator[bytes], read: Callable[[bytes], Any]) -> AsyncIterator[Any]:
    async for request in requests:
        yield read(request)


async def _refuse(context: Any) -> None:
    await context.abort(
        grpc.StatusCode.UNAUTHENTICATED,
        "The token is missing or wrong. It is in trainer/daemon.token in the state folder (or in MOSAIC_TOKEN_FILE).",
    )


async def _abort(context: Any, error: Exception) -> None:
    if isinstance(error, grpc.aio.AbortError):
        raise error
    name = ((ERROR_NAME, type(error).__name__),)
    for kind in type(error).__mro__:
        if kind in STATUS:
            await context.abort(STATUS[kind], _sentence(error), name)
    if isinstance(error, errors.MosaicError):
        await context.abort(grpc.StatusCode.UNKNOWN, _sentence(error), name)
    if isinstance(error, DecodeError):
        await context.abort(grpc.StatusCode.INVALID_ARGUMENT, "The request is not a valid message for this call.")
    log.exception("A call failed with an unexpected error.", exc_info=error)
    await context.abort(
        grpc.StatusCode.INTERNAL,
        f"Unexpected error in the daemon ({type(error).__name__}: {_sentence(error)}). Its log has the traceback.",
    )


def _sentence(error: Exception) -> str:
    """The message of the error, short enough for a header; a name in it may have a million characters."""
    text = str(error).encode(errors="replace")
    if len(text) <= LONGEST_SENTENCE:
        return text.decode()
    return text[:LONGEST_SENTENCE].decode(errors="ignore") + " …"
