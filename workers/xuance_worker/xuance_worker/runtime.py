"""Trains an algorithm, from the beginning or from a checkpoint."""

import math
from typing import Any

from mosaic_sdk.checkpoints import Checkpoint, CheckpointError
from mosaic_sdk.evaluation import FIRST_SEED
from mosaic_sdk.library.training import Training

from xuance_worker import UPSTREAM_VERSION, WORKER, checkpoint, library
from xuance_worker.config import XuanceConfig
from xuance_worker.telemetry import Callback, forward_metrics


def train(config: XuanceConfig) -> dict[str, Any]:
    return XuanceTraining(config).run()


class XuanceTraining(Training):
    """Runs one training to its end."""

    worker, suffix, checkpoint_format = WORKER, ".pt", checkpoint.FORMAT
    patience_s = None  # XuanCe has `except:` clauses, which would swallow a handler's exception
    _setup: library.Setup | None = None

    @property
    def steps(self) -> int:
        return int(self._setup.agent.current_step) if self._setup else 0

    def build(self, start: Checkpoint | None) -> None:
        if start:
            refuse_other_params(self.asked, XuanceConfig.from_dict({**start.settings, "run_id": self.config.run_id}))
        # A resumed training must not repeat the episodes that it began with, nor use the seeds of evaluations.
        env_seed = (self.config.seed + (start.step or 0 if start else 0)) % FIRST_SEED
        self._setup = library.build(self.config, env_seed=env_seed, callback=Callback(self))
        forward_metrics(self._setup.agent)
        if start:
            from xuance_worker.state import restore

            restore(self._setup.agent, checkpoint.load(start))

    def learn(self) -> None:
        assert self._setup is not None
        agent = self._setup.agent
        agent.train(math.ceil((self.config.total_timesteps - self.steps) / agent.n_envs))

    def write(self, path: str) -> None:
        assert self._setup is not None
        checkpoint.write(self._setup.agent, path)

    def about(self) -> dict[str, Any]:
        return {"preset": self._setup.preset if self._setup else "", "upstream": UPSTREAM_VERSION}

    def close(self) -> None:
        assert self._setup is not None
        self._setup.agent.finish()
        self._setup.envs.close()


def refuse_other_params(asked: XuanceConfig, trained: XuanceConfig) -> None:
    """CheckpointError for hyperparameters other than those of the training."""
    for name, value in asked.algo_params.items():
        if name not in trained.algo_params or trained.algo_params[name] != value:
            had = repr(trained.algo_params[name]) if name in trained.algo_params else "XuanCe's default"
            raise CheckpointError(
                f"extras.algo_params.{name}: the training had {had}, and a resumed training keeps its hyperparameters. "
                "Leave it out, or start a new training."
            )
