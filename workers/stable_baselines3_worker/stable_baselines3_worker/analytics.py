"""analytics.json: where to find the results of a run."""

import os
from collections.abc import Mapping
from typing import Any

from mosaic_sdk.manifest import AnalyticsManifest
from mosaic_sdk.names import CHECKPOINTS, WorkerEnv

from stable_baselines3_worker import WORKER
from stable_baselines3_worker.config import StableBaselines3Config

TENSORBOARD, VIDEOS = "tensorboard", "videos"


def write_manifest(config: StableBaselines3Config, summary: Mapping[str, Any]) -> None:
    if WorkerEnv.RUN_DIR not in os.environ:
        return  # started by hand
    about = {"algo": config.algo, "env_id": config.env_id, "mode": config.mode, "summary": dict(summary)}
    AnalyticsManifest(
        config.run_id,
        WORKER,
        tensorboard_dir=TENSORBOARD,
        checkpoints_dir=CHECKPOINTS,
        videos_dir=VIDEOS if config.eval_capture_video else None,
        metadata=about,
    ).write()
