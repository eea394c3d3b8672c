"""mode=policy_eval: plays a checkpoint's policy on seeds that its training did not use."""

from typing import Any

from mosaic_sdk.library import evaluating

from stable_baselines3_worker import WORKER
from stable_baselines3_worker.config import StableBaselines3Config


def evaluate(config: StableBaselines3Config) -> dict[str, Any]:
    def load() -> evaluating.Stage:
        from stable_baselines3_worker.play import Stage  # imports torch

        return Stage(config, config.eval_capture_video)

    return evaluating.evaluate(config, WORKER, load)
