"""Turns gRPC status codes back into the errors of `mosaic.model.errors`, with the daemon's own message."""

import grpc

from mosaic.client.endpoint import command_there, how_to_start
from mosaic.model import errors
from mosaic.wire.names import ERROR_NAME

ERRORS: dict[grpc.StatusCode, type[errors.MosaicError]] = {
    grpc.StatusCode.NOT_FOUND: errors.UnknownRun,
    grpc.StatusCode.INVALID_ARGUMENT: errors.BadConfig,
    grpc.StatusCode.FAILED_PRECONDITION: errors.RunIsLive,
    grpc.StatusCode.UNAUTHENTICATED: errors.NotAllowed,
    grpc.StatusCode.PERMISSION_DENIED: errors.NotAllowed,
    grpc.StatusCode.RESOURCE_EXHAUSTED: errors.StoreUnavailable,
    grpc.StatusCode.INTERNAL: errors.StoreFailed,
    grpc.StatusCode.UNAVAILABLE: errors.NoDaemon,
    grpc.StatusCode.CANCELLED: errors.NoDaemon,
    grpc.StatusCode.DEADLINE_EXCEEDED: errors.NoDaemon,
}

# The daemon died or is stopping: the call can be repeated with the next daemon.
BROKEN = frozenset({grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.CANCELLED})


def error_from(failure: grpc.aio.AioRpcError, target: str) -> errors.MosaicError:
    """The MosaicError for a failed call."""
    kind = _named(failure) or ERRORS.get(failure.code(), errors.MosaicError)
    return with_sentence(kind, _sentence(failure, target))


def _named(failure: grpc.aio.AioRpcError) -> type[errors.MosaicError] | None:
    """The class that the daemon raised, if it sent its name: several classes share one status code."""
    for key, name in failure.trailing_metadata() or ():
        kind = getattr(errors, str(name), None) if key == ERROR_NAME else None
        if isinstance(kind, type) and issubclass(kind, errors.MosaicError):
            return kind
    return None


def with_sentence(kind: type[errors.MosaicError], sentence: str) -> errors.MosaicError:
    """An error of `kind` with the message `sentence`, bypassing the constructor."""
    error = kind.__new__(kind)
    error.args = (sentence,)
    if isinstance(error, errors.BadConfig):
        error.field = sentence.partition(":")[0]
    return error


def _sentence(failure: grpc.aio.AioRpcError, target: str) -> str:
    code = failure.code()
    if code in BROKEN:
        return f"No daemon answers at {target}. {how_to_start(target)}"
    if code is grpc.StatusCode.DEADLINE_EXCEEDED:
        return f"The daemon at {target} took too long to answer. Look at it with: {command_there(target)} doctor"
    return failure.details() or f"The daemon answered {code.name} without a reason."
