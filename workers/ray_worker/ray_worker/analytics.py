"""analytics.json: where to find the results of a run."""

import os
from collections.abc import Mapping
from typing import Any

from mosaic_sdk.manifest import AnalyticsManifest
from mosaic_sdk.names import CHECKPOINTS, WorkerEnv

from ray_worker import WORKER
from ray_worker.config import RayWorkerConfig

TENSORBOARD = "tensorboard"


def write_manifest(config: RayWorkerConfig, summary: Mapping[str, Any]) -> None:
    if WorkerEnv.RUN_DIR not in os.environ:
        return  # started by hand
    about = {"algo": config.algo, "env_id": config.env_id, "mode": config.mode, "summary": dict(summary)}
    is_training = "total_steps" in summary
    AnalyticsManifest(
        config.run_id,
        WORKER,
        tensorboard_dir=TENSORBOARD if is_training else None,
        checkpoints_dir=CHECKPOINTS if is_training else None,
        metadata=about,
    ).write()
