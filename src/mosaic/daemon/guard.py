"""The edge of every call: who calls, the message, and errors as status codes."""

import inspect
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from functools import partial
from typing import Any

import grpc
from google.protobuf.message import DecodeError

from mosaic.daemon.admission import Admission, Caller, Unauthenticated
from mosaic.daemon.receiving import Receiving
from mosaic.daemon.scope import Scope
from mosaic.model import errors
from mosaic.wire.names import ERROR_NAME

log = logging.getLogger(__name__)

# A status is sent in a header, where gRPC encodes a byte as up to three and drops the reply if it exceeds 8 kB.
LONGEST_SENTENCE = 2000

STATUS: dict[type[errors.MosaicError], grpc.StatusCode] = {
    errors.BadConfig: grpc.StatusCode.INVALID_ARGUMENT,
    errors.BadBatch: grpc.StatusCode.INVALID_ARGUMENT,
    errors.AmbiguousRun: grpc.StatusCode.INVALID_ARGUMENT,
    errors.BadQuery: grpc.StatusCode.INVALID_ARGUMENT,
    errors.BadCommand: grpc.StatusCode.INVALID_ARGUMENT,
    errors.UnknownRun: grpc.StatusCode.NOT_FOUND,
    errors.UnknownExperiment: grpc.StatusCode.NOT_FOUND,
    errors.ExperimentDiffers: grpc.StatusCode.ALREADY_EXISTS,
    errors.ExperimentTaken: grpc.StatusCode.ALREADY_EXISTS,
    errors.ExperimentHasRuns: grpc.StatusCode.FAILED_PRECONDITION,
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
    Unauthenticated: grpc.StatusCode.UNAUTHENTICATED,
    errors.NotAllowed: grpc.StatusCode.PERMISSION_DENIED,
    errors.StoreUnavailable: grpc.StatusCode.RESOURCE_EXHAUSTED,
    errors.StoreFailed: grpc.StatusCode.INTERNAL,
}


class Guard(grpc.aio.ServerInterceptor):
    """Refuses calls by their metadata alone, and turns errors into status codes with their message.

    Every handler becomes one of a stream of requests, because gRPC receives the message of any other kind before it
    calls the handler. For the client there is no difference.
    """

    def __init__(self, admission: Admission, receiving: Receiving, scope: Scope) -> None:
        self._admission = admission
        self._receiving = receiving
        self._scope = scope
        self._handlers: dict[str, Any] = {}  # by method

    async def intercept_service(self, continuation: Any, details: Any) -> Any:
        method = details.method.rsplit("/", 1)[-1]
        try:
            caller = await self._admission.caller(method, details.invocation_metadata)
        except Exception as error:  # noqa: BLE001  # the edge of a call: every error becomes a status
            return grpc.stream_stream_rpc_method_handler(_refusal(error))
        handler = self._handlers.get(details.method) or await continuation(details)
        if handler is None:
            return None
        self._handlers[details.method] = handler
        answer = self._dialogue if handler.request_streaming else partial(self._answer, method)
        return grpc.stream_stream_rpc_method_handler(
            partial(answer, handler, caller), None, handler.response_serializer
        )

    async def _dialogue(
        self, handler: Any, caller: Caller, messages: AsyncIterator[bytes], context: Any
    ) -> AsyncIterator[Any]:
        try:
            with self._receiving.stream(caller.name):
                requests = _read_each(messages, handler.request_deserializer)
                async for reply in handler.stream_stream(requests, context):
                    yield reply
        except Exception as error:  # noqa: BLE001  # the edge of a call: every error becomes a status
            await _abort(context, error)

    async def _answer(
        self, method: str, handler: Any, caller: Caller, messages: AsyncIterator[bytes], context: Any
    ) -> AsyncIterator[Any]:
        try:
            request = handler.request_deserializer(await self._receiving.one(caller.name, messages))
            if caller.experiment:
                await self._scope.check(caller.experiment, method, request)
            if not handler.response_streaming:
                yield await handler.unary_unary(request, context)
                return
            replies = handler.unary_stream(request, context)
            if inspect.isawaitable(replies):  # gRPC's health service writes its replies itself
                await replies
                return
            async for reply in replies:
                yield reply
        except Exception as error:  # noqa: BLE001  # the edge of a call: every error becomes a status
            await _abort(context, error)


def _refusal(error: Exception) -> Callable[..., Awaitable[None]]:
    async def refuse(messages: object, context: Any) -> None:
        await _abort(context, error)

    return refuse


async def _read_each(messages: AsyncIterator[bytes], read: Callable[[bytes], Any]) -> AsyncIterator[Any]:
    async for message in messages:
        yield read(message)


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
