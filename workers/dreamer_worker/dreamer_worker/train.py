"""--script train: the same agent, actor, learner, replay and logger in one process and one thread, for laptops and for
debugging.

Its checkpoints are those of the parallel mode: a run may start in one mode and continue in the other.
"""

from __future__ import annotations

import logging
import signal
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from mosaic_sdk.cli import WorkerStopped

from dreamer_worker import settings
from dreamer_worker.actor import Actor, Forwarder, stack
from dreamer_worker.agent_process import PART, restore
from dreamer_worker.best import Evaluator
from dreamer_worker.checkpoint import Counters, Epochs, write_arrays
from dreamer_worker.config import DreamerConfig
from dreamer_worker.factories import make_agent_for, make_env, make_logger, make_replay, make_streams
from dreamer_worker.fastlane import Screen
from dreamer_worker.findings import LateFindings
from dreamer_worker.learner import Learner
from dreamer_worker.logger import Logger, announcer, restore_part, write_part
from dreamer_worker.replay import Replay, Vault
from dreamer_worker.rpc import LocalClient
from dreamer_worker.schedule import Schedule
from dreamer_worker.streams import LocalStreams
from dreamer_worker.telemetry import Telemetry
from dreamer_worker.timers import Rate, Timers, usage

log = logging.getLogger(__name__)

Show = Callable[[int, dict[str, Any]], None]


class Table:
    """Envs that are played together, one step in each at a time."""

    def __init__(self, actor: Actor, envs: Mapping[int, Any], is_eval: bool, show: Show) -> None:
        self.actor, self.is_eval, self._show = actor, is_eval, show
        self.envs = list(envs.values())
        self._indices = list(envs)
        self._carry = actor.agent.init_policy(len(envs))
        self._seen: list[dict[str, Any]] = []

    def play(self) -> None:
        """Choose an action in each env, pass the steps on, and move the envs."""
        if not self._seen:
            self._seen = [self._shown(index, env.reset()) for index, env in enumerate(self.envs)]
        obs, timers = stack(self._seen), self.actor.timers
        with timers.section("policy"):
            self._carry, actions, outs = self.actor.choose(self._carry, obs, self.is_eval)
        with timers.section("env"):
            self._seen = [self._moved(index, actions) for index in range(len(self.envs))]
        self.actor.pass_on(self._indices, {**obs, **actions, **outs}, self.is_eval)

    def _moved(self, index: int, actions: dict[str, Any]) -> dict[str, Any]:
        env = self.envs[index]
        if self._seen[index]["is_last"]:
            return self._shown(index, env.reset())
        return self._shown(index, env.step({key: value[index] for key, value in actions.items()}))

    def _shown(self, index: int, obs: dict[str, Any]) -> dict[str, Any]:
        self._show(index, obs)
        return obs


class Training:
    """Plays a step in every env, does the updates that are due for it, and repeats."""

    def __init__(self, config: DreamerConfig, telemetry: Telemetry) -> None:
        self.config = config
        self.counters = Counters(Path(config.logdir) / "counters.bin")
        self.epochs = Epochs(config.checkpoint_dir)
        self.envs = [make_env(config, index) for index in range(config.envs + config.eval_envs)]
        self.watcher = Watcher(config, self.envs[: config.envs], telemetry)
        self.agent = make_agent_for(self.envs[0], config)
        self.replay = make_replay(config)
        self.vault = Vault(self.epochs)
        self.logger = make_logger(config)
        self.timers, self.acted = Timers(), Rate()
        self._connect(telemetry)
        self.schedule = Schedule(config, self.log, self.report, self.evaluate, self.save)

    def _connect(self, telemetry: Telemetry) -> None:
        """The actor and the learner of the agent process, with a replay and a logger in this one."""
        config = self.config
        to_replay, to_logger = local_replay(self.replay), local_logger(self.logger, announcer(telemetry, config))
        actor = Actor(self.agent, self.counters, Forwarder(to_replay, to_replay, to_logger), self.timers)
        self.streams = LocalStreams(self.agent, config, make_streams(self.replay))
        findings = LateFindings(to_replay)
        self.learner = Learner(self.agent, config, self.counters, self.streams, findings, to_logger, self.timers)
        self.evaluator = Evaluator(self.agent, config, self.counters, to_logger)
        self._to_logger = to_logger
        envs = dict(enumerate(self.envs))
        training = {index: env for index, env in envs.items() if index < config.envs}
        self.table = Table(actor, training, is_eval=False, show=self.watcher.note)
        evaluation = {index: env for index, env in envs.items() if index >= config.envs}
        self.eval_table = Table(actor, evaluation, is_eval=True, show=lambda index, obs: None)

    def run(self) -> None:
        self.restore()
        learning = self.agent.init_train(self.config.batch_size)
        with stop_request() as stop:
            while self.counters["env_steps"] < self.config.steps and not stop.is_set():
                self.play()
                learning = self.learn(learning)
                self.schedule.run_due()
        self.save()
        self.logger.close()
        if stop.is_set():
            raise WorkerStopped

    def close(self) -> None:
        for part in (self.watcher, *self.envs):
            part.close()

    def play(self) -> None:
        """One step in each env."""
        self.table.play()
        self.acted.add(len(self.table.envs))
        if self.eval_table.envs:
            self.eval_table.play()

    def learn(self, carry: Any) -> Any:
        """As many updates as the train ratio asks for by now."""
        limiter = self.replay.limiter
        due = 1 + (self.streams.updates - 1) * self.config.batch_size
        while limiter.available >= due and limiter.is_ready():
            carry = self.learner.learn(carry, self.streams.next())
        return carry

    def log(self) -> None:
        self.learner.log_update()
        rates = {"fps/policy": self.acted.per_second(), "fps/train": self.learner.rate.per_second()}
        self.logger.metrics("replay", self.replay.stats())
        self.logger.metrics("run", {**rates, **self.timers.stats(), **usage()})
        self.logger.write()

    def report(self) -> None:
        self.learner.report()

    def evaluate(self) -> None:
        if self.evaluator.is_due():
            with self.timers.section("evaluate"):
                self.evaluator.evaluate()

    def save(self) -> None:
        """Save a checkpoint. If the disk is full, the previous one stays in force."""
        epoch = self.epochs.next_number()
        try:
            self._save(epoch)
        except OSError as error:
            log.warning("this checkpoint was skipped: %s", error)
            self.epochs.abandon(epoch)

    def _save(self, epoch: int) -> None:
        folder = self.epochs.begin(epoch)
        write_arrays(folder / PART, self.agent.save())
        write_part(folder, epoch, self.logger.save())
        self.vault.write(self.replay, self.replay.snapshot(), epoch)
        counters = self.counters.to_dict()
        self.epochs.commit(epoch, counters, settings.kept(self.config))
        self.vault.sweep(epoch)
        self._to_logger.call("saved", str(folder), {"epoch": epoch, "step": counters["env_steps"]})

    def restore(self) -> None:
        epoch = restore(self.agent, self.epochs)
        if epoch is not None:
            self.vault.restore(self.replay, epoch)
            restore_part(self.logger, self.epochs.path(epoch))


class Watcher:
    """Shows the training envs to MOSAIC's viewers, and reports their single steps if `emit_steps` asks for it."""

    def __init__(self, config: DreamerConfig, envs: list[Any], telemetry: Telemetry) -> None:
        self._screens = [Screen(index, env.render) for index, env in enumerate(envs)]
        self._emits_steps, self._telemetry = config.emit_steps, telemetry
        self._episodes = [0] * len(envs)
        self._lengths = [0] * len(envs)

    def note(self, index: int, obs: dict[str, Any]) -> None:
        self._screens[index].note(obs)
        if obs["is_first"]:
            self._lengths[index] = 0
        elif self._emits_steps:
            self._emit(index, obs)
            self._lengths[index] += 1
        self._episodes[index] += bool(obs["is_last"])

    def close(self) -> None:
        for screen in self._screens:
            screen.close()

    def _emit(self, index: int, obs: dict[str, Any]) -> None:
        self._telemetry.step(
            self._lengths[index],
            float(obs["reward"]),
            env_index=index,
            episode_index=self._episodes[index],
            terminated=bool(obs["is_terminal"]),
            truncated=bool(obs["is_last"] and not obs["is_terminal"]),
        )


def local_replay(replay: Replay) -> LocalClient:
    """The methods of the replay process that actor and learner call."""

    def insert(*args: Any) -> int:
        # The limiter only keeps count here: if it blocked, no other thread could release it.
        with replay.limiter.open_to_inserts():
            return replay.insert(*args)

    return LocalClient({"insert": insert, "insert_eval": replay.insert_eval, "update": replay.update})


def local_logger(logger: Logger, announce: Callable[[str, dict[str, Any]], None]) -> LocalClient:
    """The methods of the logger process that actor, learner and evaluator call."""
    methods = {name: getattr(logger, name) for name in ("steps", "metrics", "clip", "evaluated")}
    return LocalClient({**methods, "saved": announce})


def run_train(config: DreamerConfig, telemetry: Telemetry) -> dict[str, Any]:
    """The whole run; `config` comes from `prepare`, and `resume` has been called."""
    training = Training(config, telemetry)
    try:
        training.run()
    finally:
        training.close()
    counters = training.counters.to_dict()
    return {"total_steps": counters["env_steps"], **counters}


@contextmanager
def stop_request() -> Iterator[threading.Event]:
    """SIGTERM ends the loop between two steps, so that the last checkpoint is consistent."""
    request = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield request
        return
    before = signal.signal(signal.SIGTERM, lambda number, frame: request.set())
    try:
        yield request
    finally:
        # Once stopped, further signals must not cut the last checkpoint short.
        signal.signal(signal.SIGTERM, signal.SIG_IGN if request.is_set() else before)
