"""The results of a toy run: its logs, and checkpoints if it was asked for them."""

import os

from mosaic_sdk.names import CHECKPOINTS, WorkerEnv

from toy_worker.config import ToyConfig


def write_manifest(config: ToyConfig) -> None:
    """Write analytics.json, if the run has a folder."""
    if WorkerEnv.RUN_DIR not in os.environ or config.no_telemetry:
        return
    from mosaic_sdk.manifest import AnalyticsManifest  # only needed at the end

    saves = config.checkpoint_every or config.eval_every
    folder = CHECKPOINTS if saves else None
    AnalyticsManifest(config.run_id, "toy", checkpoints_dir=folder, metadata={"steps": config.steps}).write()
