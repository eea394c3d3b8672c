"""Batches of replayed sequences: a stream each for training, for reports and for evaluation reports.

The replay draws them (`factories.make_stream`); the learner reads them, from another process or from its own.
"""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Callable, Mapping
from concurrent.futures import TimeoutError as Late
from typing import Any, NamedTuple, Protocol

import numpy as np

from dreamer_worker.config import DreamerConfig
from dreamer_worker.rpc import Client, Disconnected, RpcError
from dreamer_worker.timers import Timers

log = logging.getLogger(__name__)

METHODS = {"train": "sample", "report": "sample_report", "eval": "sample_eval"}  # stream → method of the replay
REPORTS = ("report", "eval")
PREFETCH = 2
REPORT_TIMEOUT_S = 30.0

Stream = Callable[..., Any]  # `train`: (count, first) → batch; `report` and `eval`: (count, length) → batch or None


class StagedBatch(NamedTuple):
    data: Any  # on its way to the device
    starts: np.ndarray  # the first step of each sequence


class Streams(Protocol):
    """The learner's side of the streams."""

    updates: int  # per batch of `next`

    def next(self, timeout_s: float) -> StagedBatch | None: ...
    def look_ahead(self) -> None: ...
    def report(self, name: str) -> Any: ...
    def stats(self) -> dict[str, float]: ...
    def close(self) -> None: ...


class LocalStreams:
    """The streams of a replay in this process."""

    def __init__(self, agent: Any, config: DreamerConfig, streams: Mapping[str, Stream]) -> None:
        self._agent, self._config, self._streams = agent, config, streams
        self.updates = config.updates_per_call

    def next(self, timeout_s: float = 0.0) -> StagedBatch:
        sampled = self._streams["train"](self.updates * self._config.batch_size, self._agent.needs_first)
        return StagedBatch(self._agent.stage(sampled, self.updates), sampled["stepid"][:, 0])

    def look_ahead(self) -> None:
        pass

    def report(self, name: str) -> Any:
        """A batch to report on, or None while there is none."""
        return self._streams[name](self._config.batch_size, self._config.report_sequence_length)

    def stats(self) -> dict[str, float]:
        return {}

    def close(self) -> None:
        pass


class RemoteStreams:
    """The streams of the replay process: a few batches are requested ahead, and one of them is on its way to the
    device while the learner uses another."""

    def __init__(self, agent: Any, config: DreamerConfig, stop: threading.Event, timers: Timers) -> None:
        self._agent, self._config, self._stop, self._timers = agent, config, stop, timers
        self._train = Client(config.replay_addr, config.secret, max_inflight=PREFETCH)
        self._reports = Client(config.replay_addr, config.secret, max_inflight=1)
        self._coming: deque[Any] = deque()
        self._ahead: StagedBatch | None = None
        self.updates = config.updates_per_call

    def next(self, timeout_s: float) -> StagedBatch | None:
        """The next batch; None when the limiter holds it back for longer than `timeout_s`."""
        batch, self._ahead = self._ahead, None
        return batch or self._take(timeout_s)

    def look_ahead(self) -> None:
        """Send the next batch to the device if it has arrived."""
        with self._timers.section("stage"):
            if self._ahead is None and self._coming and self._coming[0].done():
                self._ahead = self._take(0)

    def report(self, name: str) -> Any:
        """A batch to report on, or None while there is none."""
        size, length = self._config.batch_size, self._config.report_sequence_length
        try:
            return self._reports.ask(METHODS[name], size, length, timeout_s=REPORT_TIMEOUT_S)
        except (Late, RpcError) as error:
            log.warning("no %s: %s", name, error)
            return None

    def stats(self) -> dict[str, float]:
        return self._train.stats()

    def close(self) -> None:
        self._train.close()
        self._reports.close()

    def _take(self, timeout_s: float) -> StagedBatch | None:
        try:
            self._request()
            sampled: dict[str, Any] = self._coming[0].result(timeout_s)
            self._coming.popleft()
            self._request()
        except Late:
            return None
        except Disconnected:
            self._coming.clear()
            return None
        except RpcError as error:
            # The replay is closing, or this request failed: the next one may succeed.
            log.warning("no batch: %s", error)
            self._coming.popleft()
            self._stop.wait(timeout_s)
            return None
        return StagedBatch(self._agent.stage(sampled, self.updates), sampled["stepid"][:, 0])

    def _request(self) -> None:
        sequences = self.updates * self._config.batch_size
        while len(self._coming) < PREFETCH:
            self._coming.append(self._train.call(METHODS["train"], sequences, self._agent.needs_first))
