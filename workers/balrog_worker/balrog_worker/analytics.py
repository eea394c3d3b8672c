"""Where the results of an evaluation are."""

import os

from mosaic_sdk.manifest import AnalyticsManifest
from mosaic_sdk.names import CHECKPOINTS, WorkerEnv

from balrog_worker.config import BalrogConfig
from balrog_worker.results import JSON_FILE, TABLE_FILE


def write_analytics(config: BalrogConfig) -> None:
    """Write analytics.json, if the run has a folder."""
    if WorkerEnv.RUN_DIR not in os.environ:
        return
    about = {"agent": config.agent, "model": config.model, "results": JSON_FILE, "table": TABLE_FILE}
    AnalyticsManifest(config.run_id, "balrog", checkpoints_dir=CHECKPOINTS, metadata=about).write()
