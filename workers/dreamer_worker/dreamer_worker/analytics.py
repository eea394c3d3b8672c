"""The analytics manifest of a run."""

import os
from typing import Any

from mosaic_sdk.manifest import AnalyticsManifest
from mosaic_sdk.names import WorkerEnv

from dreamer_worker.config import DreamerConfig


def write_manifest(config: DreamerConfig, summary: dict[str, Any]) -> None:
    """Write analytics.json into the run's folder, if MOSAIC gave one."""
    folder = os.environ.get(WorkerEnv.RUN_DIR)
    if not folder:
        return
    has = {name: os.path.isdir(os.path.join(folder, name)) for name in ("tensorboard", "checkpoints", "videos")}
    AnalyticsManifest(
        config.run_id,
        "dreamer",
        tensorboard_dir="tensorboard" if has["tensorboard"] else None,
        checkpoints_dir="checkpoints" if has["checkpoints"] else None,
        videos_dir="videos" if has["videos"] else None,
        metadata={"script": config.script, "env": config.env, "size": config.size, **summary},
    ).write(folder)
