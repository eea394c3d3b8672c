"""The tailer's side of the wire: register, publish, and begin again when the daemon was away.

Requests travel on one stream, each sent when the one before is acknowledged. A refusal ends the stream, and its status
says what to do with the request at hand:

    UNAVAILABLE, DEADLINE_EXCEEDED, …   the daemon is gone; only a new registration tells whether it was stored
    FAILED_PRECONDITION                 it does not start where the store ends; a new registration tells where that is
    RESOURCE_EXHAUSTED, INTERNAL        the store cannot take it now; keep it and send the same again
    INVALID_ARGUMENT                    it will never be taken; the caller makes another request of the range
    NOT_FOUND                           the run was deleted
    none, but the stream has ended      the daemon is stopping; as if it were gone
"""

import json
import logging
import time
from collections.abc import Mapping
from typing import Any

import grpc

from mosaic.model.durable import read_json
from mosaic.model.rundir import RunDir
from mosaic.tail.doorbell import Doorbell
from mosaic.tail.parse import Request
from mosaic.tail.stream import Ended, PublishStream
from mosaic.wire import mosaic_pb2 as pb
from mosaic.wire.mosaic_pb2_grpc import TrainerServiceStub

PAUSE_S = 1.0
LOST_PAUSE_S = 0.1  # a daemon that loses every place must not be asked without end
CALL_LIMIT_S = 60.0
_OPTIONS = [
    ("grpc.enable_http_proxy", 0),
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.min_reconnect_backoff_ms", 100),
    ("grpc.max_reconnect_backoff_ms", 300),
    ("grpc.max_send_message_length", 64 << 20),
    ("grpc.max_receive_message_length", 64 << 20),
]

Code = grpc.StatusCode
log = logging.getLogger(__name__)


class LostPlace(Exception):
    """Register again and go on from the cursor it gives."""


class Refused(Exception):
    """The daemon will never take this request."""


class RunGone(Exception):
    """Nothing is left to do: the run was deleted, or a newer attempt owns it."""


class Publisher:
    """One run's line to the daemon. Waits for a daemon, and for room in its store, as long as it takes."""

    def __init__(self, run: RunDir, doorbell: Doorbell) -> None:
        self._run = run
        self._doorbell = doorbell
        launch = read_json(run.launch)
        if launch is None:
            raise RunGone(f"{run.launch} is not there")
        self.launch = launch
        self._channel: grpc.Channel | None = None
        self._stub: TrainerServiceStub | None = None  # made once per channel: it is not cheap
        self._session: list[tuple[str, str]] = []
        self._stream: PublishStream | None = None

    def register(self) -> pb.Cursor:
        """Where the store ends, for both streams."""
        request = pb.RegisterWorkerRequest(
            run_id=self.launch["run_id"],
            attempt=self.launch["attempt"],
            nonce=self.launch["nonce"],
            worker_id=self.launch.get("worker_id", ""),
            capabilities_json=_capabilities_of(self.launch),
        )
        while True:
            try:
                reply: pb.RegisterWorkerReply = self._connect().RegisterWorker(request, timeout=CALL_LIMIT_S)
            except grpc.RpcError as error:
                self._after_failed_registration(error)
                if error.code() is Code.INVALID_ARGUMENT:
                    request.capabilities_json = ""  # somebody changed launch.json; the run goes on without them
                continue
            self._doorbell.answered()
            self._session = [("authorization", f"Bearer {reply.session_token}")]
            return reply.cursor

    def publish(self, request: Request) -> pb.PublishTelemetryReply:
        """Returns when the store has it."""
        while True:
            try:
                return self._open_stream().publish(request)
            except Ended:
                self._lose_place(Code.UNAVAILABLE)
            except grpc.RpcError as error:
                self._close_stream()
                self._after_failed_publish(error)

    def rest(self) -> None:
        """Nothing is to be said for a while: a silent run keeps no stream open, neither here nor in the daemon."""
        self._close_stream()

    def close(self) -> None:
        self._close_stream()
        if self._channel:
            self._channel.close()
        self._channel = self._stub = None

    def _open_stream(self) -> PublishStream:
        if self._stream is None or not self._stream.is_usable:
            self._close_stream()
            self._stream = PublishStream(self._connect(), self._session)
        return self._stream

    def _close_stream(self) -> None:
        if self._stream:
            self._stream.close()
        self._stream = None

    def _connect(self) -> TrainerServiceStub:
        if self._stub is None:
            self._channel = grpc.insecure_channel(self._doorbell.ring(), options=_OPTIONS)
            self._stub = TrainerServiceStub(self._channel)  # type: ignore[no-untyped-call]  # generated code
        return self._stub

    def _after_failed_registration(self, error: grpc.RpcError) -> None:
        """Return when it makes sense to try again."""
        code = error.code()
        log.info("Registration: %s %s", code.name, error.details())
        if code is Code.NOT_FOUND:
            raise RunGone(error.details())
        if code in (Code.PERMISSION_DENIED, Code.UNAUTHENTICATED):
            self._leave_to_a_newer_attempt()
        if code in (Code.UNAVAILABLE, Code.DEADLINE_EXCEEDED):
            self.close()
            self._doorbell.nobody_answered()
        else:
            time.sleep(PAUSE_S)

    def _leave_to_a_newer_attempt(self) -> None:
        launch = read_json(self._run.launch)
        if launch is None or launch["attempt"] != self.launch["attempt"]:
            raise RunGone(f"attempt {self.launch['attempt']} was replaced")

    def _after_failed_publish(self, error: grpc.RpcError) -> None:
        """Return when the same request should be sent again."""
        code = error.code()
        log.info("Publish: %s %s", code.name, error.details())
        if code is Code.NOT_FOUND:
            raise RunGone(error.details())
        if code is Code.INVALID_ARGUMENT:
            raise Refused(error.details())
        if code not in (Code.RESOURCE_EXHAUSTED, Code.INTERNAL):
            self._lose_place(code)
        time.sleep(PAUSE_S)

    def _lose_place(self, code: grpc.StatusCode) -> None:
        if code is not Code.FAILED_PRECONDITION:
            self.close()
        time.sleep(LOST_PAUSE_S)
        raise LostPlace


def _capabilities_of(launch: "Mapping[str, Any]") -> str:
    told = launch.get("capabilities")
    return json.dumps(told) if told else ""
