"""Trains an algorithm, from the beginning or from a checkpoint."""

import math
from typing import Any

from mosaic_sdk import emit
from mosaic_sdk.checkpoints import CheckpointError
from mosaic_sdk.cli import WorkerStopped
from mosaic_sdk.evaluation import FIRST_SEED
from mosaic_sdk.heartbeat import Heartbeat

from xuance_worker import checkpoint, library
from xuance_worker.analytics import write_manifest
from xuance_worker.config import RESUME, XuanceConfig
from xuance_worker.stopping import Stopping
from xuance_worker.telemetry import Callback, forward_metrics


class XuanceRuntime:
    """Runs one training to its end."""

    def __init__(self, config: XuanceConfig) -> None:
        self.config = config
        self.callback = Callback(self._at_safe_point)
        self.stopping = Stopping()
        self._setup: library.Setup | None = None
        self._last_saved = 0

    def run(self) -> dict[str, Any]:
        with Heartbeat(progress=self._progress, total=self.config.total_timesteps), self.stopping:
            start = self._load_start()
            first = start.step if start else 0
            # A resumed training must not repeat the episodes that it began with, nor use the seeds of evaluations.
            env_seed = (self.config.first_seed + first) % FIRST_SEED
            self._setup = setup = library.build(self.config, env_seed=env_seed, callback=self.callback)
            agent = setup.agent
            forward_metrics(agent)
            if start:
                self._restore(agent, start)
            try:
                agent.train(math.ceil((self.config.total_timesteps - first) / agent.n_envs))
                self._save_last()
            except WorkerStopped:  # raised at a safe point
                self._save_last()
                raise
            finally:
                agent.finish()
                setup.envs.close()
        write_manifest(self.config, setup.preset)
        return {"total_steps": int(agent.current_step), "episodes": self.callback.episodes}

    def _progress(self) -> int:
        return int(self._setup.agent.current_step) if self._setup else 0

    def _load_start(self) -> checkpoint.Saved | None:
        if self.config.mode != RESUME:
            return None
        found = checkpoint.about(self.config.policy_path)
        found.require(algo=self.config.algo, env_id=self.config.env_id)
        start = checkpoint.load(self.config.policy_path, self.config)
        if start.step >= self.config.total_timesteps:
            raise CheckpointError(
                f"{start.path} is at step {start.step}, but total_timesteps is {self.config.total_timesteps}: "
                "nothing is left to train. Increase total_timesteps."
            )
        self.config = with_params_of(self.config, start.config)
        return start

    def _restore(self, agent: Any, start: checkpoint.Saved) -> None:
        from xuance_worker.state import NOT_SAVED, restore

        restore(agent, start.state)
        self._last_saved = start.step
        emit.checkpoint_loaded(start.path, step=start.step, not_carried_on=NOT_SAVED)

    def _at_safe_point(self) -> None:
        self.stopping.check()
        every, step = self.config.checkpoint_every, self._progress()
        if every and step - self._last_saved >= every:
            self._save()

    def _save(self) -> None:
        assert self._setup is not None
        checkpoint.save(self._setup.agent, self.config, self._setup.preset)
        self._last_saved = self._progress()

    def _save_last(self) -> None:
        if self._progress() > self._last_saved:
            self._save()


def with_params_of(config: XuanceConfig, trained: XuanceConfig) -> XuanceConfig:
    """The config with the hyperparameters of its training. CheckpointError if it has others."""
    for name, value in config.params.items():
        if name not in trained.params or trained.params[name] != value:
            had = repr(trained.params[name]) if name in trained.params else "XuanCe's default"
            raise CheckpointError(
                f"extras.algo_params.{name}: the training had {had}, and a resumed training keeps its hyperparameters. "
                "Leave it out, or start a new training."
            )
    document = config.to_dict()
    document["extras"]["algo_params"] = trained.params
    return XuanceConfig.from_dict(document)
