"""The results of a run: TensorBoard's files, checkpoints, logs."""

import os

from mosaic_sdk.manifest import AnalyticsManifest
from mosaic_sdk.names import CHECKPOINTS, WorkerEnv

from xuance_worker import UPSTREAM_VERSION, WORKER
from xuance_worker.config import POLICY_EVAL, XuanceConfig
from xuance_worker.library import TENSORBOARD


def write_manifest(config: XuanceConfig, preset: str) -> None:
    """Write analytics.json, if the run has a folder."""
    if WorkerEnv.RUN_DIR not in os.environ:
        return
    AnalyticsManifest(
        config.run_id,
        WORKER,
        tensorboard_dir=TENSORBOARD,
        checkpoints_dir=None if config.mode == POLICY_EVAL else CHECKPOINTS,
        metadata={"algo": config.algo, "env_id": config.env_id, "preset": preset, "xuance": UPSTREAM_VERSION},
    ).write()
