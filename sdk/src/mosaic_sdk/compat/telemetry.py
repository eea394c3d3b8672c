"""TelemetryEmitter: a worker's lifecycle, one JSON line per call."""

import logging
import threading
import time
from typing import IO, Any, Dict, Mapping, Optional

from mosaic_sdk import emit, names
from mosaic_sdk.compat.log_constants import LogConstant, log_constant


class TelemetryEmitter:
    """Emits lifecycle lines to stdout, or to `sink`. Threads may share it. `constant` is also logged to `logger`."""

    def __init__(self, run_id: str, *, sink: Optional[IO[str]] = None, logger: Optional[logging.Logger] = None) -> None:
        self._run_id = run_id
        self._sink = sink
        self._logger = logger
        self._lock = threading.Lock()

    def run_started(self, payload: Mapping[str, Any], *, constant: Optional[LogConstant] = None) -> None:
        self._emit(names.RUN_STARTED, payload, constant)

    def run_completed(self, payload: Mapping[str, Any], *, constant: Optional[LogConstant] = None) -> None:
        self._emit(names.RUN_COMPLETED, payload, constant)

    def run_failed(
        self,
        payload: Mapping[str, Any],
        *,
        constant: Optional[LogConstant] = None,
        exc_info: Optional[BaseException] = None,
    ) -> None:
        self._emit(names.RUN_FAILED, payload, constant, exc_info)

    def run_cancelled(self, payload: Mapping[str, Any], *, constant: Optional[LogConstant] = None) -> None:
        self._emit(names.RUN_CANCELLED, payload, constant)

    def heartbeat(self, payload: Optional[Mapping[str, Any]] = None, *, constant: Optional[LogConstant] = None) -> None:
        self._emit(names.HEARTBEAT, payload or {}, constant)

    def checkpoint_saved(self, payload: Mapping[str, Any], *, constant: Optional[LogConstant] = None) -> None:
        self._emit(names.CHECKPOINT_SAVED, payload, constant)

    def checkpoint_loaded(self, payload: Mapping[str, Any], *, constant: Optional[LogConstant] = None) -> None:
        self._emit(names.CHECKPOINT_LOADED, payload, constant)

    def _emit(
        self,
        event: str,
        payload: Mapping[str, Any],
        constant: Optional[LogConstant],
        error: Optional[BaseException] = None,
    ) -> None:
        line = {"event": event, "run_id": self._run_id, "timestamp": time.time(), "payload": dict(payload)}
        self._write(line)
        if constant and self._logger:
            log_constant(self._logger, constant, extra={"run_id": self._run_id, **payload}, exc_info=error)

    def _write(self, line: Dict[str, Any]) -> None:
        if self._sink is None:
            emit.stdout().write_line(emit.to_json(line) + "\n")
            return
        with self._lock:
            print(emit.to_json(line), file=self._sink, flush=True)
