"""The learner: sequences from replay, updates of the agent, and what it found back to replay."""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import TimeoutError as Late
from typing import Any

import numpy as np

from dreamer_worker.checkpoint import Counters
from dreamer_worker.config import DreamerConfig
from dreamer_worker.rpc import Client, Disconnected, RpcError
from dreamer_worker.timers import Clock, Rate, Timers, usage

log = logging.getLogger(__name__)

PREFETCH = 2


class Learner:
    """Learns in a loop. While `turn` is held by another, nothing is learned."""

    def __init__(self, agent: Any, config: DreamerConfig, counters: Counters) -> None:
        self.agent = agent
        self.config = config
        self.counters = counters
        self.turn = threading.Lock()
        self.timers = Timers()
        self.rate = Rate()
        self.save: Callable[[], Any] = lambda: None
        self.tell: Callable[[], dict[str, float]] = dict  # what else of this process is to be logged
        self.logger = Client(config.logger_addr, config.secret, max_inflight=8)
        self._stop = threading.Event()
        self._batches = Batches(config, self._stop)
        self._updates = Client(config.replay_addr, config.secret, max_inflight=4)
        self._reports = Client(config.replay_addr, config.secret, max_inflight=1)
        self._log_clock = Clock(config.log_every_s)
        self._report_clock = Clock(config.report_every_s)
        self._save_clock = Clock(config.save_every_s)
        self._found: dict[str, Any] | None = None
        self._metrics: dict[str, Any] = {}

    def run(self) -> None:
        """Learn until closed."""
        carry = self.agent.init_train(self.config.batch_size)
        while not self._stop.is_set():
            with self.timers.section("wait"):
                batch = self._batches.next(timeout_s=1.0)
            if batch is not None:
                with self.turn:
                    if self._stop.is_set():
                        return
                    carry = self._learn(carry, batch)
            if not self._stop.is_set():
                self._look_at_clocks()

    def rests(self, timeout_s: float) -> bool:
        """Wait until no update is under way; whether it came to that. The first one is compiled, for minutes."""
        if not self.turn.acquire(timeout=timeout_s):
            return False
        self.turn.release()
        return True

    def stop(self) -> None:
        """Begin no further update."""
        self._stop.set()

    def close(self) -> None:
        self.stop()
        for client in (self._batches.client, self._updates, self._reports, self.logger):
            client.close()

    def _learn(self, carry: Any, batch: dict[str, Any]) -> Any:
        with self.timers.section("train"):
            carry, outs, self._metrics = self.agent.train(carry, batch)
        self.counters.raise_to("updates", self.counters["updates"] + 1)
        self.rate.add(self.config.batch_size * self.config.batch_length)
        # One update late: this one's results are still being computed.
        found, self._found = self._found, {**outs, "start": batch["stepid"][:, 0]}
        if found is not None:
            with self.timers.section("give_back"):
                self._give_back(found)
        return carry

    def _give_back(self, found: dict[str, Any]) -> None:
        found = {key: np.asarray(value) for key, value in found.items()}
        ids, starts, priority = found.pop("stepid"), found.pop("start"), found.pop("priority", None)
        try:
            self._updates.call("update", ids, found, starts, priority)
        except Disconnected:
            pass  # closing

    def _look_at_clocks(self) -> None:
        try:
            if self._log_clock.is_due():
                self._log()
            if self._report_clock.is_due():
                self._report("report", "sample_report")
                self._report("eval", "sample_eval")
            if self._save_clock.is_due():
                self.save()
        except Disconnected:
            pass  # closing

    def _log(self) -> None:
        told = {"fps": self.rate.per_second(), "updates": self.counters["updates"], **self.timers.stats(), **usage()}
        told |= {f"rpc/replay/{name}": value for name, value in self._batches.client.stats().items()}
        if not self.logger.wait_connected(0):
            return
        self.logger.call("metrics", "train", _scalars(self._metrics))
        self.logger.call("metrics", "learner", told)
        self.logger.call("metrics", "actor", self.tell())

    def _report(self, prefix: str, method: str) -> None:
        """What the model believes of sequences, as numbers and as clips."""
        size, length = self.config.batch_size, self.config.report_length + 1
        try:
            batch = self._reports.ask(method, size, min(length, self.config.sequence_length), timeout_s=30)
        except (Late, RpcError) as error:
            log.warning("no %s: %s", prefix, error)
            return
        if batch is None:
            return
        with self.turn, self.timers.section("report"):
            _, found = self.agent.report(self.agent.init_report(size), batch)
        self.logger.call("metrics", prefix, _scalars(found))
        for name, clip in found.items():
            if np.ndim(clip) == 4:
                self.logger.call("clip", f"{prefix}_{name.replace('/', '_')}", np.asarray(clip))


class Batches:
    """Batches from replay, a few of them on their way while one is learned from."""

    def __init__(self, config: DreamerConfig, stop: threading.Event) -> None:
        self.client = Client(config.replay_addr, config.secret, max_inflight=PREFETCH)
        self._size = config.batch_size
        self._coming: deque[Any] = deque()
        self._stop = stop

    def next(self, timeout_s: float) -> dict[str, Any] | None:
        """The next batch; None when the limiter holds it back for longer than that."""
        try:
            while len(self._coming) < PREFETCH:
                self._coming.append(self.client.call("sample", self._size))
            batch: dict[str, Any] = self._coming[0].result(timeout_s)
        except Late:
            return None
        except Disconnected:
            self._coming.clear()
            return None
        except RpcError as error:
            # A replay that is being closed, or could not do it this time: the next one may.
            log.warning("no batch: %s", error)
            self._coming.popleft()
            self._stop.wait(timeout_s)
            return None
        self._coming.popleft()
        return batch


def _scalars(metrics: dict[str, Any]) -> dict[str, float]:
    return {key: float(value) for key, value in metrics.items() if np.ndim(value) == 0}
