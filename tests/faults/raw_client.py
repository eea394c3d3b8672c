"""Raw gRPC calls: any bytes, with any token, at any address of the daemon."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

import grpc
from google.protobuf.message import Message
from lab import Lab, wait_until

from mosaic.client.run import Run
from mosaic.model.durable import read_json
from mosaic.wire import mosaic_pb2 as pb
from mosaic.wire.mosaic_pb2_grpc import TrainerServiceStub
from mosaic.wire.names import RUN_ID

SERVICE = pb.DESCRIPTOR.services_by_name["TrainerService"]
METHODS = {method.name: method for method in SERVICE.methods}
HEALTH = ("/grpc.health.v1.Health/Check", "/grpc.health.v1.Health/Watch")
INTERNAL_ERRORS = (grpc.StatusCode.UNKNOWN, grpc.StatusCode.INTERNAL)


class Answer(NamedTuple):
    code: grpc.StatusCode
    details: str
    reply: bytes = b""


class RawClient:
    """Sends any bytes to one address of a daemon."""

    def __init__(self, channel: grpc.Channel) -> None:
        self._channel = channel

    def call(
        self, method: str, request: "Message | bytes" = b"", token: "str | None" = None, run_id: str = ""
    ) -> Answer:
        """One call with exactly this token, and this run in its metadata; for a stream, the first reply."""
        headers = [] if token is None else [("authorization", f"Bearer {token}")]
        return self.call_with(method, request, headers + ([(RUN_ID, run_id)] if run_id else []))

    def call_with(self, method: str, request: "Message | bytes", headers: list[tuple[str, "str | bytes"]]) -> Answer:
        data = request if isinstance(request, bytes) else request.SerializeToString()
        path = method if method.startswith("/") else f"/{SERVICE.full_name}/{method}"
        try:
            if path == HEALTH[1] or (method in METHODS and METHODS[method].server_streaming):
                stream = self._channel.unary_stream(path)(data, metadata=headers, timeout=30)
                reply = next(stream, b"")
                stream.cancel()
            else:
                reply = self._channel.unary_unary(path)(data, metadata=headers, timeout=30)
        except grpc.RpcError as error:
            return Answer(error.code(), error.details() or "")
        return Answer(grpc.StatusCode.OK, "", reply)


@contextmanager
def raw_client_of(lab: Lab, number: int = 0) -> Iterator[RawClient]:
    """A client of the daemon's address with this number; 0 is the Unix socket."""
    wait_until(lambda: len(_addresses(lab)) > number, words=f"address {number}")
    with grpc.insecure_channel(_addresses(lab)[number]) as channel:
        yield RawClient(channel)


def owner_token(lab: Lab) -> str:
    return lab.root.token.read_text().strip()


def session_of(lab: Lab, run: Run) -> pb.RegisterWorkerReply:
    """What a tailer gets for its nonce: the session token, and where the store ends."""
    launch = read_json(lab.rundir(run).launch) or {}
    request = pb.RegisterWorkerRequest(run_id=run.run_id, attempt=launch["attempt"], nonce=launch["nonce"])
    with grpc.insecure_channel(_addresses(lab)[0]) as channel:
        return TrainerServiceStub(channel).RegisterWorker(request, timeout=30)


def _addresses(lab: Lab) -> list[str]:
    # As it says itself: until a new daemon has written daemon.addr, the last one's addresses are there.
    return list(lab.client.health().addresses)
