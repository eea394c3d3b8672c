"""Where the results of an evaluation are."""

import os
from collections.abc import Mapping
from typing import Any

from mosaic_sdk.manifest import AnalyticsManifest
from mosaic_sdk.names import CHECKPOINTS, WorkerEnv

VIDEOS = "videos"


def write_manifest(run_id: str, metadata: Mapping[str, Any]) -> None:
    """Write analytics.json, if the run has a folder."""
    if WorkerEnv.RUN_DIR not in os.environ:
        return
    AnalyticsManifest(run_id, "eval", checkpoints_dir=CHECKPOINTS, videos_dir=VIDEOS, metadata=metadata).write()
