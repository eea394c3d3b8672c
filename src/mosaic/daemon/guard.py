"""The edge of every call: first the token, then the error table. Handlers know neither."""

import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import grpc

from mosaic.daemon.auth import Tokens, bearer
from mosaic.model import errors

log = logging.getLogger(__name__)

# These check a session token or a nonce themselves, because only they know which run the call is about.
RUN_METHODS = frozenset({"RegisterWorker", "Heartbeat", "PublishTelemetry"})

STATUS: dict[type[errors.MosaicError], grpc.StatusCode] = {
    errors.BadConfig: grpc.StatusCode.INVALID_ARGUMENT,
    errors.BadBatch: grpc.StatusCode.INVALID_ARGUMENT,
    errors.AmbiguousRun: grpc.StatusCode.INVALID_ARGUMENT,
    errors.UnknownRun: grpc.StatusCode.NOT_FOUND,
    errors.IllegalMove: grpc.StatusCode.FAILED_PRECONDITION,
    errors.RunIsLive: grpc.StatusCode.FAILED_PRECONDITION,
    errors.WrongOffset: grpc.StatusCode.FAILED_PRECONDITION,
    errors.BadRoot: grpc.StatusCode.FAILED_PRECONDITION,
    errors.AddressTaken: grpc.StatusCode.FAILED_PRECONDITION,
    errors.GpuTaken: grpc.StatusCode.FAILED_PRECONDITION,
    errors.NotAllowed: grpc.StatusCode.PERMISSION_DENIED,
    errors.StoreUnavailable: grpc.StatusCode.RESOURCE_EXHAUSTED,
    errors.StoreFailed: grpc.StatusCode.INTERNAL,
}


class Guard(grpc.aio.ServerInterceptor):
    """Refuses calls without the owner's token and turns errors into status codes with their sentence."""

    def __init__(self, tokens: Tokens) -> None:
        self._tokens = tokens
        self._guarded: dict[str, Any] = {}  # method → its handler behind the guard, made once

    async def intercept_service(self, continuation: Any, details: Any) -> Any:
        handler = self._guarded.get(details.method)
        if handler is None:
            inner = await continuation(details)
            if inner is None:
                return None
            handler = self._guarded[details.method] = self._guard(inner, details.method.rsplit("/", 1)[-1])
        return handler

    def _guard(self, handler: Any, method: str) -> Any:
        is_open = method in RUN_METHODS
        if handler.response_streaming:
            stream = self._guarded_stream(handler.unary_stream, is_open)
            return grpc.unary_stream_rpc_method_handler(
                stream, handler.request_deserializer, handler.response_serializer
            )
        call = self._guarded_call(handler.unary_unary, is_open)
        return grpc.unary_unary_rpc_method_handler(call, handler.request_deserializer, handler.response_serializer)

    def _guarded_call(self, call: Callable[..., Awaitable[Any]], is_open: bool) -> Callable[..., Awaitable[Any]]:
        async def guarded(request: Any, context: Any) -> Any:
            if not (is_open or self._is_owner(context)):
                await _refuse(context)
            try:
                return await call(request, context)
            except Exception as error:
                await _abort(context, error)

        return guarded

    def _guarded_stream(
        self, call: Callable[..., AsyncIterator[Any]], is_open: bool
    ) -> Callable[..., AsyncIterator[Any]]:
        async def guarded(request: Any, context: Any) -> AsyncIterator[Any]:
            if not (is_open or self._is_owner(context)):
                await _refuse(context)
            try:
                async for reply in call(request, context):
                    yield reply
            except Exception as error:
                await _abort(context, error)

        return guarded

    def _is_owner(self, context: Any) -> bool:
        return self._tokens.is_owner(bearer(context.invocation_metadata()))


async def _refuse(context: Any) -> None:
    await context.abort(
        grpc.StatusCode.UNAUTHENTICATED,
        "The token is missing or wrong. It lies in trainer/daemon.token of the state folder (or MOSAIC_TOKEN_FILE).",
    )


async def _abort(context: Any, error: Exception) -> None:
    if isinstance(error, grpc.aio.AbortError):
        raise error
    for kind in type(error).__mro__:
        if kind in STATUS:
            await context.abort(STATUS[kind], str(error))
    if isinstance(error, errors.MosaicError):
        await context.abort(grpc.StatusCode.UNKNOWN, str(error))
    log.exception("A call failed in a way nobody foresaw.", exc_info=error)
    await context.abort(
        grpc.StatusCode.INTERNAL, f"The daemon met a bug ({type(error).__name__}: {error}); its log has the traceback."
    )
