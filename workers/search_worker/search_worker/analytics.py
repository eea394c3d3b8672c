"""Where the results of a search are."""

import os

from mosaic_sdk.manifest import AnalyticsManifest
from mosaic_sdk.names import CHECKPOINTS, WorkerEnv

from search_worker.config import SearchConfig
from search_worker.study import FILE


def write_analytics(config: SearchConfig) -> None:
    """Write analytics.json, if the run has a folder."""
    if WorkerEnv.RUN_DIR not in os.environ:
        return
    about = {"experiment": config.experiment, "study": f"{CHECKPOINTS}/{FILE}"}
    AnalyticsManifest(config.run_id, "search", checkpoints_dir=CHECKPOINTS, metadata=about).write()
