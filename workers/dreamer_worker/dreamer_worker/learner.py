"""The learner: sequences from replay, updates of the agent, and what it found back to replay."""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import TimeoutError as Late
from typing import Any, NamedTuple

import numpy as np

from dreamer_worker.checkpoint import Counters
from dreamer_worker.config import DreamerConfig
from dreamer_worker.rpc import Client, Disconnected, RpcError
from dreamer_worker.timers import Clock, Rate, Timers, usage

log = logging.getLogger(__name__)

PREFETCH = 2


class Learner:
    """Learns in a loop. While `turn` is held by another, nothing is learned.

    Its thread does nothing but start updates, which for a large model is nearly as long as the device takes for one:
    the next batch is on its way to the device by then, and another thread gives back what was found.
    """

    def __init__(self, agent: Any, config: DreamerConfig, counters: Counters) -> None:
        self.agent = agent
        self.config = config
        self.counters = counters
        self.turn = threading.Lock()
        self.timers = Timers()
        self.rate = Rate()
        self.save: Callable[[], Any] = lambda: None
        self.evaluate: Callable[[], Any] = lambda: None
        self.tell: Callable[[], dict[str, float]] = dict  # what else of this process is to be logged
        self.logger = Client(config.logger_addr, config.secret, max_inflight=8)
        self._stop = threading.Event()
        self._batches = Batches(agent, config, self._stop)
        self._findings = Findings(Client(config.replay_addr, config.secret, max_inflight=4), self.timers)
        self._reports = Client(config.replay_addr, config.secret, max_inflight=1)
        self._log_clock = Clock(config.log_every_s)
        self._report_clock = Clock(config.report_every_s)
        self._save_clock = Clock(config.save_every_s)
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
        for part in (self._batches.client, self._findings, self._reports, self.logger):
            part.close()

    def _learn(self, carry: Any, batch: Batch) -> Any:
        with self.timers.section("train"):
            carry, outs, self._metrics = self.agent.train(carry, batch.data)
        self.counters.raise_to("updates", self.counters["updates"] + 1)
        self.rate.add(self.config.batch_size * self.config.batch_length)
        with self.timers.section("stage"):
            self._batches.look_ahead()
        with self.timers.section("give_back"):
            self._findings.give_back({**outs, "start": batch.starts})
        return carry

    def _look_at_clocks(self) -> None:
        try:
            if self._log_clock.is_due():
                self._log()
            if self._report_clock.is_due():
                self._report("report", "sample_report")
                self._report("eval", "sample_eval")
            self.evaluate()
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


class Batch(NamedTuple):
    data: Any  # on its way to the device
    starts: np.ndarray  # the first step of each sequence


class Batches:
    """Batches from replay: a few are asked for, and one is on its way to the device, while another is learned from."""

    def __init__(self, agent: Any, config: DreamerConfig, stop: threading.Event) -> None:
        self.client = Client(config.replay_addr, config.secret, max_inflight=PREFETCH)
        self._agent = agent
        self._size = config.batch_size
        self._coming: deque[Any] = deque()
        self._ahead: Batch | None = None
        self._stop = stop

    def next(self, timeout_s: float) -> Batch | None:
        """The next batch; None when the limiter holds it back for longer than that."""
        batch, self._ahead = self._ahead, None
        return batch or self._take(timeout_s)

    def look_ahead(self) -> None:
        """The batch after this one goes to the device, if it is here."""
        if self._ahead is None and self._coming and self._coming[0].done():
            self._ahead = self._take(0)

    def _take(self, timeout_s: float) -> Batch | None:
        try:
            self._ask()
            sampled: dict[str, Any] = self._coming[0].result(timeout_s)
            self._coming.popleft()
            self._ask()
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
        return Batch(self._agent.stage(sampled), sampled["stepid"][:, 0])

    def _ask(self) -> None:
        while len(self._coming) < PREFETCH:
            self._coming.append(self.client.call("sample", self._size, self._agent.needs_first))


class Findings:
    """What updates found, back to replay, by a thread of their own: fetching waits for the device.

    One at a time. So the learner is never further ahead of the device than the update that it just started, and a
    policy call, which the device takes up after all that was started before, does not wait for more than that.
    """

    def __init__(self, client: Client, timers: Timers) -> None:
        self._client = client
        self._timers = timers
        self._changed = threading.Condition()
        self._given: dict[str, Any] | None = None  # until it is sent
        self._error: Exception | None = None
        self._is_closed = False
        threading.Thread(target=self._run, name="findings", daemon=True).start()

    def give_back(self, found: dict[str, Any]) -> None:
        """Returns when what was given before is on its way."""
        with self._changed:
            self._changed.wait_for(lambda: self._given is None or self._is_closed)
            if self._error:
                raise self._error
            self._given = found
            self._changed.notify_all()

    def close(self) -> None:
        self._client.close()
        with self._changed:
            self._is_closed = True
            self._changed.notify_all()

    def _run(self) -> None:
        while (found := self._next()) is not None:
            try:
                self._send(found)
            except Disconnected:
                pass  # closing
            except Exception as error:  # noqa: BLE001  # a thread's edge: the device failed, and the learner is told
                self._error = error
            with self._changed:
                self._given = None
                self._changed.notify_all()

    def _next(self) -> dict[str, Any] | None:
        with self._changed:
            self._changed.wait_for(lambda: self._given is not None or self._is_closed)
            return None if self._is_closed else self._given

    def _send(self, found: dict[str, Any]) -> None:
        with self._timers.section("fetch"):
            fetched = {key: np.asarray(value) for key, value in found.items()}
        ids, starts, priority = (fetched.pop(key, None) for key in ("stepid", "start", "priority"))
        self._client.call("update", ids, fetched, starts, priority)


def _scalars(metrics: dict[str, Any]) -> dict[str, float]:
    return {key: float(value) for key, value in metrics.items() if np.ndim(value) == 0}
