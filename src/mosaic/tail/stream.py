"""One PublishTelemetry call of the tailer's: a request out, its acknowledgement in, one at a time."""

import time
from queue import SimpleQueue

from mosaic.tail.parse import Request
from mosaic.wire import mosaic_pb2 as pb
from mosaic.wire.mosaic_pb2_grpc import TrainerServiceStub

# gRPC gives a deadline to a stream, not to a message in it. A stream that is replaced when it is 30 s old and may last
# 90 s gives every message at least 60 s.
RENEW_S = 30.0
LIMIT_S = 90.0


class Ended(Exception):
    """The daemon ended the stream without an error and without an answer to this request."""


class PublishStream:
    """Open from its first request until it is closed, too old, or ended by the daemon."""

    def __init__(self, stub: TrainerServiceStub, session: "list[tuple[str, str]]") -> None:
        self._renew_at = time.monotonic() + RENEW_S
        self._requests: SimpleQueue[Request | None] = SimpleQueue()
        self._call = stub.PublishTelemetry(iter(self._requests.get, None), timeout=LIMIT_S, metadata=session)

    @property
    def is_usable(self) -> bool:
        return time.monotonic() < self._renew_at and bool(self._call.is_active())

    def publish(self, request: Request) -> pb.PublishTelemetryReply:
        """The acknowledgement; raises grpc.RpcError for a refusal, Ended when there is neither."""
        self._requests.put(request)
        try:
            reply: pb.PublishTelemetryReply = next(self._call)
        except StopIteration:
            raise Ended from None
        return reply

    def close(self) -> None:
        """Say no more. gRPC's thread that waits for requests ends with it, whatever became of the call."""
        self._requests.put(None)
