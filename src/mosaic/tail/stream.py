"""One PublishTelemetry call: a request is sent, its acknowledgement received, one at a time."""

import time
from queue import SimpleQueue

from mosaic.tail.parse import Request
from mosaic.wire import mosaic_pb2 as pb
from mosaic.wire.mosaic_pb2_grpc import TrainerServiceStub

# A gRPC deadline applies to the whole stream, not to one message in it. A stream that is replaced after 30 s and may
# last 90 s gives every message at least 60 s.
RENEW_S = 30.0
LIMIT_S = 90.0


class Ended(Exception):
    """The daemon closed the stream without an error and without answering this request."""


class PublishStream:
    """Usable until it is closed, gets too old, or is ended by the daemon."""

    def __init__(self, stub: TrainerServiceStub, session: "list[tuple[str, str]]") -> None:
        self._renew_at = time.monotonic() + RENEW_S
        self._requests: SimpleQueue[Request | None] = SimpleQueue()
        self._call = stub.PublishTelemetry(iter(self._requests.get, None), timeout=LIMIT_S, metadata=session)

    @property
    def is_usable(self) -> bool:
        return time.monotonic() < self._renew_at and bool(self._call.is_active())

    def publish(self, request: Request) -> pb.PublishTelemetryReply:
        """Return the acknowledgement; raise grpc.RpcError for a refusal, Ended when there is neither."""
        self._requests.put(request)
        try:
            reply: pb.PublishTelemetryReply = next(self._call)
        except StopIteration:
            raise Ended from None
        return reply

    def close(self) -> None:
        """Send no more requests. This also ends gRPC's thread that waits for them, in any state of the call."""
        self._requests.put(None)
