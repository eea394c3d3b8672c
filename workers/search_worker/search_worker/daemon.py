"""The daemon, as a driver may call it: the five calls of its token, repeated until a daemon answers."""

import json
import os
import time
from collections.abc import Generator, Mapping
from typing import Any

import grpc
from mosaic_sdk.cli import WorkFailed
from mosaic_sdk.names import WorkerEnv

from search_worker import driver_pb2 as pb

CALL_TIMEOUT_S = 30.0
WATCH_INTERVAL_MS = 200
PAUSE_S = 0.1
POINTS = 2000
_SERVICE = "/mosaic.v1.TrainerService/"
_OPTIONS = (
    # gRPC's own backoff grows to minutes.
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.max_reconnect_backoff_ms", 300),
    ("grpc.enable_http_proxy", 0),
)
_BROKEN = (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.CANCELLED, grpc.StatusCode.DEADLINE_EXCEEDED)
_SCARCE = grpc.StatusCode.RESOURCE_EXHAUSTED  # a full disk: it may have room again


class Refused(Exception):
    """The daemon answered, and refused the call."""

    def __init__(self, code: Any, sentence: str) -> None:
        super().__init__(sentence)
        self.code = code

    @property
    def is_of_config(self) -> bool:
        """The config of a run is invalid; another one may be valid."""
        return bool(self.code in (grpc.StatusCode.INVALID_ARGUMENT, grpc.StatusCode.FAILED_PRECONDITION))

    @property
    def is_key_taken(self) -> bool:
        return bool(self.code is grpc.StatusCode.ALREADY_EXISTS)

    @property
    def is_unknown_run(self) -> bool:
        """The run was deleted: it is not one of the experiment any more."""
        return bool(self.code in (grpc.StatusCode.PERMISSION_DENIED, grpc.StatusCode.NOT_FOUND))

    @property
    def has_no_curve(self) -> bool:
        return bool(self.code is grpc.StatusCode.FAILED_PRECONDITION)


class Daemon:
    """Calls wait for a daemon without a limit: the trials continue without one, and so does the search."""

    def __init__(self, environment: Mapping[str, str] = os.environ) -> None:
        try:
            address, token = environment[WorkerEnv.DRIVER_ADDRESS], environment[WorkerEnv.DRIVER_TOKEN]
            run_id = environment[WorkerEnv.RUN_ID]
        except KeyError:
            raise WorkFailed("This run is not a driver. Start a search with: mosaic search") from None
        self._metadata = (("authorization", f"Bearer {token}"), ("mosaic-run-id", run_id))
        self._channel = grpc.insecure_channel(address, options=_OPTIONS)

    def submit(self, config: Mapping[str, Any], key: str) -> Any:
        """The run of this key; it is made if there is none yet."""
        request = pb.SubmitRunRequest(config_json=json.dumps(config), idempotency_key=key)
        return self._ask("SubmitRun", request, pb.RunInfo)

    def get(self, run_id: str) -> Any:
        return self._ask("GetRun", pb.RunRequest(run_id=run_id), pb.RunInfo)

    def cancel(self, run_id: str, reason: str) -> Any:
        return self._ask("CancelRun", pb.RunRequest(run_id=run_id, reason=reason), pb.RunInfo)

    def curve(self, run_id: str, name: str, from_step: int | None = None) -> Any:
        request = pb.QueryCurveRequest(run_id=run_id, name=name, points=POINTS, from_step=from_step)
        return self._ask("QueryCurve", request, pb.Curve)

    def watch(self, run_ids: list[str]) -> Generator[Any, None, None]:
        """Changes of these runs, without end; all of them again after a daemon was restarted."""
        request = pb.WatchRunsRequest(interval_ms=WATCH_INTERVAL_MS, run_ids=run_ids)
        call = self._channel.unary_stream(
            f"{_SERVICE}WatchRuns", pb.WatchRunsRequest.SerializeToString, pb.ListRunsReply.FromString
        )
        while True:
            replies = call(request, metadata=self._metadata, wait_for_ready=True)
            try:
                yield from replies
            except grpc.RpcError as error:
                _refuse(error)
            finally:
                replies.cancel()
            time.sleep(PAUSE_S)

    def _ask(self, method: str, request: Any, reply: Any) -> Any:
        call = self._channel.unary_unary(f"{_SERVICE}{method}", type(request).SerializeToString, reply.FromString)
        while True:
            try:
                return call(request, metadata=self._metadata, timeout=CALL_TIMEOUT_S, wait_for_ready=True)
            except grpc.RpcError as error:
                _refuse(error)
            time.sleep(PAUSE_S)


def _refuse(error: Any) -> None:
    """Return if the call is worth repeating; raise otherwise."""
    code = error.code()
    if code in _BROKEN or code is _SCARCE:
        return
    if code is grpc.StatusCode.UNAUTHENTICATED:
        raise WorkFailed(f"The daemon does not accept the token of this driver. Resume the search. {error.details()}")
    raise Refused(code, error.details() or code.name) from None
