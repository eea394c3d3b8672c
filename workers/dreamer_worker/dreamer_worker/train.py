"""--script train: the same agent, replay and logger in one process, for laptops and for debugging.

Its checkpoints are those of the parallel mode: a run may begin in the one and go on in the other.
"""

from __future__ import annotations

import logging
import secrets
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
from mosaic_sdk.cli import WorkerStopped

from dreamer_worker import agent_process, logger, replay
from dreamer_worker.actor import stack
from dreamer_worker.agent.spaces import BOOKKEEPING
from dreamer_worker.best import Evaluator
from dreamer_worker.checkpoint import Counters, Epochs, read_arrays, read_json, write_arrays, write_json
from dreamer_worker.config import DreamerConfig
from dreamer_worker.fastlane import Screen
from dreamer_worker.parallel import agent_for, make_env_of, make_logger_of, make_replay_of
from dreamer_worker.telemetry import Telemetry
from dreamer_worker.timers import Clock, Rate, Timers, usage

log = logging.getLogger(__name__)


class Table:
    """Envs that are played together, one step in each at a time: `train` draws its actions, `eval` takes the best."""

    def __init__(self, agent: Any, envs: list[Any], mode: str, show: Callable[[int, dict[str, Any]], None]) -> None:
        self.agent, self.envs, self.mode = agent, envs, mode
        self._show = show
        self._carry = agent.init_policy(len(envs))
        self._seen: list[dict[str, Any]] = []

    def play(self, timers: Timers) -> tuple[dict[str, Any], dict[str, Any]]:
        """What was seen and what was done about it, one row per env; then the envs move on."""
        if not self._seen:
            self._seen = [self._shown(index, env.reset()) for index, env in enumerate(self.envs)]
        obs = stack(self._seen)
        with timers.section("policy"):
            self._carry, actions, outs = self.agent.policy(self._carry, obs, self.mode)
        with timers.section("env"):
            self._seen = [self._moved(index, actions) for index in range(len(self.envs))]
        return obs, {**actions, **outs}

    def _moved(self, index: int, actions: dict[str, Any]) -> dict[str, Any]:
        env = self.envs[index]
        if self._seen[index]["is_last"]:
            return self._shown(index, env.reset())
        return self._shown(index, env.step({key: value[index] for key, value in actions.items()}))

    def _shown(self, index: int, obs: dict[str, Any]) -> dict[str, Any]:
        self._show(index, obs)
        return obs


class Training:
    """Plays a step in every env, learns what is owed for it, and again."""

    def __init__(self, config: DreamerConfig, tell: Telemetry) -> None:
        self.config = config
        self.tell = tell
        self.counters = Counters(Path(config.logdir) / "counters.bin")
        self.epochs = Epochs(config.checkpoint_dir)
        self.envs = [make_env_of(config, index) for index in range(config.envs + config.eval_envs)]
        self.screens = [Screen(index, env.render) for index, env in enumerate(self.envs[: config.envs])]
        self.agent = agent_for(self.envs[0], config)
        self.table = Table(self.agent, self.envs[: config.envs], "train", self._show)
        self.eval_table = Table(self.agent, self.envs[config.envs :], "eval", lambda index, obs: None)
        self.replay = make_replay_of(config)
        self.vault = replay.Vault(self.epochs)
        self.logger = make_logger_of(config)
        self.evaluator = Evaluator(self.agent, config, self.counters, self._tell_evaluation, self._tell_best)
        self.timers, self.acted, self.learned = Timers(), Rate(), Rate()
        self._name = secrets.token_hex(8)
        self._turns = self._told = 0
        self._episodes = [0] * config.envs
        self._lengths = [0] * config.envs
        self._metrics: dict[str, Any] = {}
        self._found: dict[str, Any] | None = None
        self._clocks = {name: Clock(getattr(config, f"{name}_every_s")) for name in ("log", "report", "save")}

    def run(self) -> None:
        self.restore()
        learning = self.agent.init_train(self.config.batch_size)
        with stop_wish() as stop:
            while self.counters["env_steps"] < self.config.steps and not stop.is_set():
                self.play()
                learning = self.learn(learning)
                self.look_at_clocks()
        self.save()
        self.logger.close()
        if stop.is_set():
            raise WorkerStopped

    def close(self) -> None:
        for part in (*self.screens, *self.envs):
            part.close()

    def play(self) -> None:
        """One step in each env."""
        obs, more = self.table.play(self.timers)
        with self.replay.limiter.open_to_inserts():  # here it only keeps the account, for nobody could wake us
            self._insert(self.replay.insert, obs, more)
        count = len(self.table.envs)
        self.acted.add(count)
        self._log(obs, self.counters.raise_to("env_steps", self.counters["env_steps"] + count), is_eval=False)
        if self.eval_table.envs:
            obs, more = self.eval_table.play(self.timers)
            self._insert(self.replay.insert_eval, obs, more)
            self._log(obs, self.counters["env_steps"], is_eval=True)
        self._turns += 1

    def learn(self, carry: Any) -> Any:
        """As many updates as the ratio owes by now."""
        while self.replay.limiter.available >= 1 and self.replay.limiter.is_ready():
            batch = self.replay.sample(self.config.batch_size)
            with self.timers.section("train"):
                carry, outs, self._metrics = self.agent.train(carry, batch)
            self.counters.raise_to("updates", self.counters["updates"] + 1)
            self.learned.add(self.config.batch_size * self.config.batch_length)
            found, self._found = self._found, {**outs, "start": batch["stepid"][:, 0]}
            if found is not None:
                found = {key: np.asarray(value) for key, value in found.items()}
                self.replay.update(found.pop("stepid"), _without(found), found["start"], found.get("priority"))
        return carry

    def look_at_clocks(self) -> None:
        if self._clocks["log"].is_due():
            self.write()
        if self._clocks["report"].is_due():
            self.report()
        if self.evaluator.is_due():
            with self.timers.section("evaluate"):
                self.evaluator.evaluate()
        if self._clocks["save"].is_due():
            self.save()

    def write(self) -> None:
        scalars = {key: float(value) for key, value in self._metrics.items() if np.ndim(value) == 0}
        self.logger.metrics("train", scalars)
        self.logger.metrics("replay", self.replay.stats())
        rates = {"fps/policy": self.acted.per_second(), "fps/train": self.learned.per_second()}
        self.logger.metrics("run", {**rates, **self.timers.stats(), **usage()})
        self.logger.write()

    def report(self) -> None:
        """What the model believes of training and of evaluation sequences."""
        length = min(self.config.report_length + 1, self.config.sequence_length)
        for prefix, name in (("report", "train"), ("eval", "eval")):
            batch = self.replay.report(self.config.batch_size, length, name)
            if batch is None:
                continue
            _, found = self.agent.report(self.agent.init_report(self.config.batch_size), batch)
            self.logger.metrics(prefix, {key: float(value) for key, value in found.items() if np.ndim(value) == 0})
            for key, clip in found.items():
                if np.ndim(clip) == 4:
                    self.logger.clip(f"{prefix}_{key.replace('/', '_')}", np.asarray(clip))

    def save(self) -> None:
        """A checkpoint, unless there is no room for one: then the one before stays in force."""
        epoch = self.epochs.next_number()
        try:
            self._save(epoch)
        except OSError as error:
            log.warning("no checkpoint this time: %s", error)
            self.epochs.abandon(epoch)

    def _save(self, epoch: int) -> None:
        folder = self.epochs.begin(epoch)
        write_arrays(folder / agent_process.PART, self.agent.save())
        write_json(folder / logger.PART, {"version": 1, "epoch": epoch, **self.logger.save()})
        self.vault.write(self.replay, self.replay.snapshot(), epoch)
        self.epochs.commit(epoch, self.counters.to_dict())
        self.vault.sweep(epoch)
        if "mosaic" in self.config.outputs:
            self.tell.checkpoint_saved(str(folder), epoch=epoch, step=self.counters["env_steps"])

    def _tell_evaluation(self, steps: int, played: list[Any]) -> None:
        self.logger.evaluated(steps, [asdict(episode) for episode in played])

    def _tell_best(self, path: str, steps: int, score: float) -> None:
        if "mosaic" in self.config.outputs:
            self.tell.checkpoint_saved(path, step=steps, best=True, score=score)

    def restore(self) -> None:
        epoch = self.epochs.newest()
        if epoch is None:
            return
        folder = self.epochs.path(epoch)
        self.agent.load(read_arrays(folder / agent_process.PART))
        self.vault.restore(self.replay, epoch)
        self.logger.load(read_json(folder / logger.PART))

    def _insert(self, insert: Callable[..., int], obs: dict[str, Any], more: dict[str, Any]) -> None:
        stored = {key: value for key, value in {**obs, **more}.items() if not key.startswith("log/")}
        count = len(obs["is_first"])
        insert(stored, [f"{self._name}:{index}" for index in range(count)], np.full(count, self._turns))

    def _log(self, obs: dict[str, Any], steps: int, is_eval: bool) -> None:
        self._told += 1
        told = {key: value for key, value in obs.items() if key.startswith("log/") or key in BOOKKEEPING}
        first = self.config.envs if is_eval else 0
        envs = first + np.arange(len(obs["is_first"]))
        self.logger.steps(self._name, self._told, steps, {**told, "env": envs, "is_eval": is_eval})

    def _show(self, index: int, obs: dict[str, Any]) -> None:
        self.screens[index].note(obs)
        if obs["is_first"]:
            self._lengths[index] = 0
        elif self.config.emit_steps:
            self.tell.step(
                self._lengths[index],
                float(obs["reward"]),
                env_index=index,
                episode_index=self._episodes[index],
                terminated=bool(obs["is_terminal"]),
                truncated=bool(obs["is_last"] and not obs["is_terminal"]),
            )
            self._lengths[index] += 1
        self._episodes[index] += bool(obs["is_last"])


def run_train(config: DreamerConfig, tell: Telemetry) -> dict[str, Any]:
    """The whole run; `config` comes from `prepare`, and `resume` has been called."""
    training = Training(config, tell)
    try:
        training.run()
    finally:
        training.close()
    counters = training.counters.to_dict()
    return {"total_steps": counters["env_steps"], **counters}


@contextmanager
def stop_wish() -> Iterator[threading.Event]:
    """SIGTERM asks the loop to end between two steps, so that what is saved is whole."""
    wish = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield wish
        return
    before = signal.signal(signal.SIGTERM, lambda number, frame: wish.set())
    try:
        yield wish
    finally:
        # Once stopped, further signals must not cut the last checkpoint short.
        signal.signal(signal.SIGTERM, signal.SIG_IGN if wish.is_set() else before)


def _without(found: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in found.items() if key not in ("start", "priority", "stepid")}
