"""The learner: updates the agent from a stream of batches. It runs as a thread of the agent process, or inline in
--script train."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import numpy as np

from dreamer_worker.checkpoint import Counters
from dreamer_worker.config import DreamerConfig
from dreamer_worker.findings import Findings, ThreadedFindings
from dreamer_worker.rpc import Caller, Client
from dreamer_worker.streams import REPORTS, RemoteStreams, StagedBatch, Streams
from dreamer_worker.timers import Rate, Timers, usage


class Learner:
    """Starts updates. While another thread holds `turn`, nothing is learned.

    For a large model, starting an update takes nearly as long as the device takes to run it. So the thread that calls
    `learn` does nothing else: the next batch is already on its way to the device, and findings are sent by `findings`.
    """

    def __init__(
        self,
        agent: Any,
        config: DreamerConfig,
        counters: Counters,
        streams: Streams,
        findings: Findings,
        logger: Caller,
        timers: Timers,
        stop: threading.Event | None = None,
    ) -> None:
        self.agent, self.config, self.counters = agent, config, counters
        self.streams, self.findings, self.logger = streams, findings, logger
        self.turn = threading.Lock()
        self.timers = timers
        self.rate = Rate()
        self._stop = stop or threading.Event()
        self._metrics: dict[str, Any] = {}

    @classmethod
    def connect(cls, agent: Any, config: DreamerConfig, counters: Counters) -> Learner:
        """A learner whose replay and logger are other processes."""
        stop, timers = threading.Event(), Timers()
        streams = RemoteStreams(agent, config, stop, timers)
        findings = ThreadedFindings(Client(config.replay_addr, config.secret, max_inflight=4), timers)
        logger = Client(config.logger_addr, config.secret, max_inflight=8)
        return cls(agent, config, counters, streams, findings, logger, timers, stop)

    def run(self, between: Callable[[], None]) -> None:
        """Learn until stopped; call `between` after each update, and about once a second while there is no batch."""
        carry = self.agent.init_train(self.config.batch_size)
        while not self._stop.is_set():
            with self.timers.section("wait"):
                batch = self.streams.next(timeout_s=1.0)
            if batch is not None:
                with self.turn:
                    if self._stop.is_set():
                        return
                    carry = self.learn(carry, batch)
            if not self._stop.is_set():
                between()

    def learn(self, carry: Any, batch: StagedBatch) -> Any:
        """One update, or several in one call; returns what the next one starts from."""
        with self.timers.section("train"):
            carry, outs, self._metrics = self.agent.train(carry, batch.data)
        updates = self.streams.updates
        self.counters.raise_to("updates", self.counters["updates"] + updates)
        self.rate.add(updates * self.config.batch_size * self.config.batch_length)
        self.streams.look_ahead()
        self.findings.give_back({**outs, "start": batch.starts})
        return carry

    def rests(self, timeout_s: float) -> bool:
        """Wait until no update is running; returns whether that is so. Compiling the first one takes minutes."""
        if not self.turn.acquire(timeout=timeout_s):
            return False
        self.turn.release()
        return True

    def log_update(self) -> None:
        """Send the numbers of the last update to the logger."""
        self.logger.call("metrics", "train", scalars_of(self._metrics))

    def report(self) -> None:
        """Send what the model predicts for training and for evaluation sequences to the logger: numbers and clips."""
        for name in REPORTS:
            batch = self.streams.report(name)
            if batch is not None:
                self._report(name, batch)

    def _report(self, name: str, batch: Any) -> None:
        with self.turn, self.timers.section("report"):
            _, found = self.agent.report(self.agent.init_report(self.config.batch_size), batch)
        self.logger.call("metrics", name, scalars_of(found))
        for key, clip in found.items():
            if np.ndim(clip) == 4:
                self.logger.call("clip", f"{name}_{key.replace('/', '_')}", np.asarray(clip))

    def stats(self) -> dict[str, float]:
        stats = {"fps": self.rate.per_second(), "updates": self.counters["updates"], **self.timers.stats(), **usage()}
        return stats | {f"rpc/replay/{name}": value for name, value in self.streams.stats().items()}

    def stop(self) -> None:
        """Start no further update."""
        self._stop.set()

    def close(self) -> None:
        self.stop()
        for part in (self.streams, self.findings, self.logger):
            part.close()


def scalars_of(metrics: dict[str, Any]) -> dict[str, float]:
    return {key: float(value) for key, value in metrics.items() if np.ndim(value) == 0}
