"""What the toy worker leaves behind: its logs, and checkpoints where it was asked for them."""

import os

from mosaic_sdk.names import WorkerEnv

from toy_worker.config import ToyConfig


def write_manifest(config: ToyConfig) -> None:
    """analytics.json in the run's folder, if there is one."""
    if WorkerEnv.RUN_DIR not in os.environ or config.no_telemetry:
        return
    from mosaic_sdk.manifest import AnalyticsManifest  # not needed before the end

    saves = config.checkpoint_every or config.eval_every
    folder = "checkpoints" if saves else None
    AnalyticsManifest(config.run_id, "toy", checkpoints_dir=folder, metadata={"steps": config.steps}).write()
