"""mode=policy_eval: plays a checkpoint's policy on seeds that its training did not use."""

from typing import Any

from mosaic_sdk.library import evaluating

from tianshou_worker import WORKER
from tianshou_worker.config import TianshouConfig


def evaluate(config: TianshouConfig) -> dict[str, Any]:
    def load() -> evaluating.Stage:
        from tianshou_worker.play import Stage  # imports torch

        return Stage(config)

    return evaluating.evaluate(config, WORKER, load)
