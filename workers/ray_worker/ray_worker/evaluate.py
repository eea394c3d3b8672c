"""mode=policy_eval: plays a checkpoint's policy on seeds that its training did not use; writes eval_summary.json."""

from typing import Any

from mosaic_sdk.library import evaluating

from ray_worker import WORKER, checkpoint
from ray_worker.config import RayWorkerConfig
from ray_worker.runtime import prepare_process


def evaluate(config: RayWorkerConfig) -> dict[str, Any]:
    return evaluating.evaluate(config, WORKER, lambda: Stage(config))


class Stage:
    """A checkpoint's policies and one environment."""

    def __init__(self, config: RayWorkerConfig) -> None:
        self.found = checkpoint.find(config)
        self.config = config.filled_from(self.found.settings)
        prepare_process(config)
        from ray_worker.envs import make_env  # imports the libraries
        from ray_worker.policy import Policies

        self.policies, self.env = Policies(self.found, self.config), make_env(self.config)

    def play(self, seed: int) -> evaluating.Played:
        from ray_worker.play import play

        return play(self.policies, self.env, seed, self.config.eval_max_episode_steps)

    def close(self) -> None:
        self.env.close()
