"""The training: Tianshou's own trainer."""

import os
from typing import Any

from mosaic_sdk.checkpoints import Checkpoint
from mosaic_sdk.library.saving import run_folder
from mosaic_sdk.library.training import TENSORBOARD, Training

from tianshou_worker import WORKER, checkpoint
from tianshou_worker.algorithms import ON_POLICY
from tianshou_worker.config import TianshouConfig
from tianshou_worker.envs import make_env


def train(config: TianshouConfig) -> dict[str, Any]:
    return TianshouTraining(config).run()


class TianshouTraining(Training):
    """One training, new or resumed."""

    worker, suffix = WORKER, ".pt"
    count = 0  # of steps; `Counted` advances it

    @property
    def steps(self) -> int:
        return self.count

    def build(self, start: Checkpoint | None) -> None:
        os.environ.setdefault("OMP_NUM_THREADS", str(self.config.num_threads))  # read when torch is imported
        envs = [make_env(self.config) for _ in range(self.config.n_envs)]
        import numpy as np
        from tianshou.env import DummyVectorEnv
        from torch.utils.tensorboard import SummaryWriter

        from tianshou_worker import model
        from tianshou_worker.telemetry import Counted, Metrics

        first = envs[0]
        self.algorithm = model.create(self.config, first.observation_space, first.action_space)
        if start:
            checkpoint.restore(self.algorithm, start)
            self.count = start.step or 0
        makers = [lambda env=env, place=place: Counted(env, self, place) for place, env in enumerate(envs)]
        self.envs = DummyVectorEnv(makers)
        # A resumed training must not repeat the episodes that it began with.
        self.envs.seed(self.config.seed + self.count)
        np.random.seed((self.config.seed + self.count) % 2**32)
        self.logger = Metrics(SummaryWriter(os.path.join(run_folder(), TENSORBOARD)), self)

    def learn(self) -> None:
        from tianshou.data import Collector, VectorReplayBuffer
        from tianshou.trainer import OffPolicyTrainerParams, OnPolicyTrainerParams

        params, is_on_policy = self.config.params, self.config.algo in ON_POLICY
        size = params["collection_step_num_env_steps"] + self.config.n_envs if is_on_policy else params["buffer_size"]
        buffer = VectorReplayBuffer(max(size, self.config.n_envs), self.config.n_envs)
        collector = Collector(self.algorithm, self.envs, buffer, exploration_noise=not is_on_policy)
        collector.reset()
        if not is_on_policy:
            left = self.config.total_timesteps - self.steps
            collector.collect(n_step=max(min(params["start_steps"], left), self.config.n_envs), random=True)
        names = ("collection_step_num_env_steps", "batch_size")
        own = "update_step_num_repetitions" if is_on_policy else "update_step_num_gradient_steps_per_sample"
        kind = OnPolicyTrainerParams if is_on_policy else OffPolicyTrainerParams
        left = self.config.total_timesteps - self.steps
        if left > 0:
            settings = {name: params[name] for name in (*names, own)}
            shown: dict[str, Any] = {"logger": self.logger, "verbose": False, "show_progress": False}
            length = {"max_epochs": 1, "epoch_num_steps": left}
            self.algorithm.run_training(kind(training_collector=collector, **length, **settings, **shown))

    def write(self, path: str) -> None:
        checkpoint.write(self.algorithm, path)

    def close(self) -> None:
        self.envs.close()
        self.logger.finalize()
