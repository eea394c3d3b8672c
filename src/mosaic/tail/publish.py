"""The tailer's connection to the daemon: register, publish, and start over when the daemon was restarted.

Requests are sent on one stream, each after the previous one is acknowledged. A refusal ends the stream, and its status
says what to do with the request:

    UNAVAILABLE, DEADLINE_EXCEEDED, …   the daemon is gone; only a new registration shows whether it was stored
    FAILED_PRECONDITION                 it does not start where the store ends; a new registration returns that offset
    RESOURCE_EXHAUSTED, INTERNAL        the store cannot accept it now; keep it and retry
    INVALID_ARGUMENT                    it will never be accepted; the caller builds another request for the range
    NOT_FOUND                           the run was deleted
    none, but the stream has ended      the daemon is stopping; treated as gone
"""

import json
import logging
import time
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import grpc

from mosaic.model.durable import read_json
from mosaic.model.rundir import RunDir
from mosaic.tail.parse import Request
from mosaic.tail.stream import Ended, PublishStream
from mosaic.wire import mosaic_pb2 as pb
from mosaic.wire.mosaic_pb2_grpc import TrainerServiceStub
from mosaic.wire.names import NONCE, RUN_ID

RETRY_S = 1.0
REGISTER_AGAIN_S = 0.1  # a daemon that refuses every offset must not be asked in a busy loop
CALL_LIMIT_S = 60.0
SLOWEST_DISK = 20e6  # bytes/s: the daemon reads a whole file again before it answers the last piece
OPTIONS = [
    ("grpc.enable_http_proxy", 0),
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.min_reconnect_backoff_ms", 100),
    ("grpc.max_reconnect_backoff_ms", 300),
    ("grpc.max_send_message_length", 64 << 20),
    ("grpc.max_receive_message_length", 64 << 20),
]

Code = grpc.StatusCode
log = logging.getLogger(__name__)


class Finder(Protocol):
    """How this tailer reaches the daemon: see daemon_finder.py and far_daemon.py."""

    def channel(self, options: Sequence[tuple[str, Any]]) -> grpc.Channel: ...
    def note_answer(self) -> None: ...
    def note_no_answer(self) -> None: ...


class CursorLost(Exception):
    """The store's offset is unknown: register again and continue from the cursor in the reply."""


class Refused(Exception):
    """The daemon will never accept this request."""


class RunGone(Exception):
    """There is nothing left to do: the run was deleted, or a newer attempt owns it."""


class Publisher:
    """Registers and publishes for one run. Waits for a daemon, and for space in its store, as long as it takes."""

    def __init__(self, run: RunDir, finder: Finder) -> None:
        self._run = run
        self._finder = finder
        launch = read_json(run.launch)
        if launch is None:
            raise RunGone(f"{run.launch} is missing")
        if launch.get("run_id") != run.run_id:  # with its nonce, our lines would be stored as that run's
            raise RunGone(f"{run.launch} belongs to another run")
        self.launch = launch
        self._run_id = (RUN_ID, str(launch["run_id"]))
        self._channel: grpc.Channel | None = None
        self._stub: TrainerServiceStub | None = None  # one per channel, because it is expensive to create
        self.session: list[tuple[str, str]] = []  # the metadata of a call; empty before the first registration
        self._stream: PublishStream | None = None

    def register(self) -> pb.Cursor:
        """Register, and return where the store ends, for both streams."""
        request = pb.RegisterWorkerRequest(
            run_id=self.launch["run_id"],
            attempt=self.launch["attempt"],
            nonce=self.launch["nonce"],
            worker_id=self.launch.get("worker_id", ""),
            capabilities_json=_capabilities_of(self.launch),
        )
        while True:
            try:
                reply: pb.RegisterWorkerReply = self._connect().RegisterWorker(
                    request, timeout=CALL_LIMIT_S, metadata=[self._run_id, (NONCE, str(request.nonce))]
                )
            except grpc.RpcError as error:
                self._after_failed_registration(error)
                if error.code() is Code.INVALID_ARGUMENT:
                    request.capabilities_json = ""  # launch.json was edited; the run continues without capabilities
                continue
            self._finder.note_answer()
            self.session = [self._run_id, ("authorization", f"Bearer {reply.session_token}")]
            return reply.cursor

    def publish(self, request: Request) -> pb.PublishTelemetryReply:
        """Return when the request is stored."""
        while True:
            try:
                return self._open_stream().publish(request)
            except Ended:
                self._lose_cursor(Code.UNAVAILABLE)
            except grpc.RpcError as error:
                self._close_stream()
                self._after_failed_publish(error)

    def report(self, started_json: str = "", exit_json: str = "", left_behind: str = "") -> None:
        """Return when the daemon has stored these control files of a run on this node."""
        request = pb.ReportRunRequest(
            run_id=self._run_id[1], started_json=started_json, exit_json=exit_json, left_behind=left_behind
        )
        self._call("ReportRun", request)

    def put_file(self, request: pb.PutFileRequest) -> int:
        """How much of a file the daemon has after this piece; its size: the whole of it."""
        request.run_id = self._run_id[1]
        reply: pb.PutFileReply = self._call("PutFile", request, CALL_LIMIT_S + request.size / SLOWEST_DISK)
        return int(reply.next_offset)

    def _call(self, method: str, request: Any, limit_s: float = CALL_LIMIT_S) -> Any:
        """One call of this session, repeated as a publish would be."""
        while True:
            try:
                return getattr(self._connect(), method)(request, timeout=limit_s, metadata=self.session)
            except grpc.RpcError as error:
                self._after_failed_publish(error)

    def pause(self) -> None:
        """Close the stream of a silent run, so that neither side keeps one open. The next publish opens another."""
        self._close_stream()

    def close(self) -> None:
        self._close_stream()
        if self._channel:
            self._channel.close()
        self._channel = self._stub = None

    def _open_stream(self) -> PublishStream:
        if self._stream is None or not self._stream.is_usable:
            self._close_stream()
            self._stream = PublishStream(self._connect(), self.session)
        return self._stream

    def _close_stream(self) -> None:
        if self._stream:
            self._stream.close()
        self._stream = None

    def _connect(self) -> TrainerServiceStub:
        if self._stub is None:
            self._channel = self._finder.channel(OPTIONS)
            self._stub = TrainerServiceStub(self._channel)  # type: ignore[no-untyped-call]  # generated code
        return self._stub

    def _after_failed_registration(self, error: grpc.RpcError) -> None:
        """Return when it makes sense to retry."""
        code = error.code()
        log.info("Registration: %s %s", code.name, error.details())
        self.stop_if_deleted()
        if code is Code.NOT_FOUND:
            raise RunGone(error.details())
        if code in (Code.PERMISSION_DENIED, Code.UNAUTHENTICATED):
            self._stop_if_replaced()
        if code in (Code.UNAVAILABLE, Code.DEADLINE_EXCEEDED):
            self.close()
            self._finder.note_no_answer()
        else:
            time.sleep(RETRY_S)

    def stop_if_deleted(self) -> None:
        """Without its folder a run has no store, and no retry will find one."""
        if not self._run.is_in_place:
            gone = self._run.path if self._run.has_control else self._run.control
            raise RunGone(f"{gone} was deleted")

    def _stop_if_replaced(self) -> None:
        """The daemon compares with launch.json: once that is not ours any more, no retry will be accepted."""
        launch = read_json(self._run.launch)
        mine = (self.launch["run_id"], self.launch["attempt"])
        if launch is None or (launch.get("run_id"), launch.get("attempt")) != mine:
            raise RunGone(f"attempt {self.launch['attempt']} was replaced")

    def _after_failed_publish(self, error: grpc.RpcError) -> None:
        """Return when the same request should be sent again, after a pause."""
        code = error.code()
        log.info("Publish: %s %s", code.name, error.details())
        self.stop_if_deleted()
        if code is Code.NOT_FOUND:
            raise RunGone(error.details())
        if code is Code.INVALID_ARGUMENT:
            raise Refused(error.details())
        if code not in (Code.RESOURCE_EXHAUSTED, Code.INTERNAL):
            self._lose_cursor(code)
        time.sleep(RETRY_S)

    def _lose_cursor(self, code: grpc.StatusCode) -> None:
        if code is not Code.FAILED_PRECONDITION:
            self.close()
        time.sleep(REGISTER_AGAIN_S)
        raise CursorLost


def _capabilities_of(launch: "Mapping[str, Any]") -> str:
    capabilities = launch.get("capabilities")
    return json.dumps(capabilities) if capabilities else ""
