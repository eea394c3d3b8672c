"""What the toy worker leaves behind: nothing but its logs."""

import os

from mosaic_sdk.names import WorkerEnv

from toy_worker.config import ToyConfig


def write_manifest(config: ToyConfig) -> None:
    """analytics.json in the run's folder, if there is one."""
    if WorkerEnv.RUN_DIR not in os.environ or config.no_telemetry:
        return
    from mosaic_sdk.manifest import AnalyticsManifest  # not needed before the end

    AnalyticsManifest(config.run_id, "toy", metadata={"steps": config.steps}).write()
