"""--script train: the same agent, replay and logger in one process, for laptops and for debugging.

Its checkpoints are those of the parallel mode: a run may begin in the one and go on in the other.
"""

from __future__ import annotations

import secrets
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from mosaic_sdk.cli import WorkerStopped

from dreamer_worker import agent_process, logger, replay
from dreamer_worker.actor import stack
from dreamer_worker.checkpoint import Counters, Epochs, read_arrays, read_json, write_arrays, write_json
from dreamer_worker.config import DreamerConfig
from dreamer_worker.fastlane import Screen
from dreamer_worker.parallel import agent_for, make_env_of, make_logger_of, make_replay_of
from dreamer_worker.telemetry import Telemetry
from dreamer_worker.timers import Clock, Rate, Timers, usage


class Training:
    """Plays a step in every env, learns what is owed for it, and again."""

    def __init__(self, config: DreamerConfig, tell: Telemetry) -> None:
        self.config = config
        self.tell = tell
        self.counters = Counters(Path(config.logdir) / "counters.bin")
        self.epochs = Epochs(config.checkpoint_dir)
        self.envs = [make_env_of(config, index) for index in range(config.envs)]
        self.screens = [Screen(index, env.render) for index, env in enumerate(self.envs)]
        self.agent = agent_for(self.envs[0], config)
        self.replay = make_replay_of(config)
        self.vault = replay.Vault(self.epochs)
        self.logger = make_logger_of(config)
        self.timers, self.acted, self.learned = Timers(), Rate(), Rate()
        self._name = secrets.token_hex(8)
        self._turns = 0
        self._episodes = [0] * config.envs
        self._lengths = [0] * config.envs
        self._metrics: dict[str, Any] = {}
        self._found: dict[str, Any] | None = None
        self._clocks = {name: Clock(getattr(config, f"{name}_every_s")) for name in ("log", "report", "save")}

    def run(self) -> None:
        self.restore()
        carry = self.agent.init_policy(len(self.envs))
        learning = self.agent.init_train(self.config.batch_size)
        seen = [self._show(index, env.reset()) for index, env in enumerate(self.envs)]
        with stop_wish() as stop:
            while self.counters["env_steps"] < self.config.steps and not stop.is_set():
                carry, seen = self.play(carry, seen)
                learning = self.learn(learning)
                self.look_at_clocks()
        self.save()
        self.logger.close()
        if stop.is_set():
            raise WorkerStopped

    def close(self) -> None:
        for part in (*self.screens, *self.envs):
            part.close()

    def play(self, carry: Any, seen: list[dict[str, Any]]) -> tuple[Any, list[dict[str, Any]]]:
        """One step in each env."""
        obs = stack(seen)
        with self.timers.section("policy"):
            carry, actions, outs = self.agent.policy(carry, obs, "train")
        self._keep({**obs, **actions, **outs}, obs)
        with self.timers.section("env"):
            chosen = [{key: value[index] for key, value in actions.items()} for index in range(len(seen))]
            seen = [
                self._show(index, env.reset() if old["is_last"] else env.step(action))
                for index, (env, old, action) in enumerate(zip(self.envs, seen, chosen, strict=True))
            ]
        return carry, seen

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
        length = min(self.config.report_length + 1, self.config.sequence_length)
        batch = self.replay.report(self.config.batch_size, length)
        if batch is None:
            return
        _, found = self.agent.report(self.agent.init_report(self.config.batch_size), batch)
        self.logger.metrics("report", {key: float(value) for key, value in found.items() if np.ndim(value) == 0})
        for name, clip in found.items():
            if np.ndim(clip) == 4:
                self.logger.clip(f"report_{name.replace('/', '_')}", np.asarray(clip))

    def save(self) -> None:
        epoch = self.epochs.next_number()
        folder = self.epochs.begin(epoch)
        write_arrays(folder / agent_process.PART, self.agent.save())
        write_json(folder / logger.PART, {"version": 1, "epoch": epoch, **self.logger.save()})
        self.vault.write(self.replay, self.replay.snapshot(), epoch)
        self.epochs.commit(epoch, self.counters.to_dict())
        self.vault.sweep(epoch)
        if "mosaic" in self.config.outputs:
            self.tell.checkpoint_saved(str(folder), epoch=epoch)

    def restore(self) -> None:
        epoch = self.epochs.newest()
        if epoch is None:
            return
        folder = self.epochs.path(epoch)
        self.agent.load(read_arrays(folder / agent_process.PART))
        self.vault.restore(self.replay, epoch)
        self.logger.load(read_json(folder / logger.PART))

    def _keep(self, rows: dict[str, Any], obs: dict[str, Any]) -> None:
        count = len(obs["is_first"])
        stored = {key: value for key, value in rows.items() if not key.startswith("log/")}
        streams = [f"{self._name}:{index}" for index in range(count)]
        # Past the limiter: here it only keeps the account, for nobody could wake us.
        with self.replay.limiter.open_to_inserts():
            self.replay.insert(stored, streams, np.full(count, self._turns))
        steps = self.counters.raise_to("env_steps", self.counters["env_steps"] + count)
        self._turns += 1
        self.acted.add(count)
        told = {
            key: obs[key]
            for key in obs
            if key.startswith("log/") or key in ("reward", "is_first", "is_last", "is_terminal")
        }
        self.logger.steps(self._name, self._turns, steps, {**told, "env": np.arange(count), "is_eval": False})

    def _show(self, index: int, obs: dict[str, Any]) -> dict[str, Any]:
        self.screens[index].note(obs)
        if obs["is_first"]:
            self._lengths[index] = 0
        elif self.config.emit_steps:
            ends = {
                "terminated": bool(obs["is_terminal"]),
                "truncated": bool(obs["is_last"] and not obs["is_terminal"]),
            }
            place = {"env_index": index, "episode_index": self._episodes[index]}
            self.tell.step(self._lengths[index], float(obs["reward"]), **place, **ends)
            self._lengths[index] += 1
        self._episodes[index] += bool(obs["is_last"])
        return obs


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
