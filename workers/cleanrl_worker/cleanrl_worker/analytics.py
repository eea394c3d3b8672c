"""analytics.json: where to find the results of a run."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from mosaic_sdk.manifest import AnalyticsManifest

from cleanrl_worker import WORKER
from cleanrl_worker.config import CleanRLWorkerConfig


def write_manifest(config: CleanRLWorkerConfig, run_dir: Path, summary: Mapping[str, Any]) -> None:
    folder = run_dir / "checkpoints"
    files = sorted(str(path) for path in (*folder.glob("*.pt"), *folder.glob("best/*.pt")))
    models = sorted(str(path) for path in (run_dir / "runs").glob("*/*.cleanrl_model"))
    AnalyticsManifest(
        config.run_id,
        WORKER,
        tensorboard_dir=config.tensorboard_dir,
        wandb=_wandb(config, run_dir),
        checkpoints_dir="checkpoints",
        checkpoint_files=(*files, *models),
        videos_dir="videos" if any((run_dir / "videos").glob("**/*.mp4")) else None,
        # What actually ran: a config that names neither takes both from the checkpoint.
        metadata={
            "algo": summary.get("algo", config.algo),
            "env_id": summary.get("env_id", config.env_id),
            "mode": config.mode,
            "summary": dict(summary),
        },
    ).write(run_dir)


def _wandb(config: CleanRLWorkerConfig, run_dir: Path) -> "dict[str, Any] | None":
    if not config.track_wandb:
        return None
    runs = sorted(path.name for path in (run_dir / "wandb").glob("*run-*"))
    return {"project": config.algo_params.get("wandb_project_name", "cleanRL"), "directory": "wandb", "runs": runs}
