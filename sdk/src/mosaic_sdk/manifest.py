"""analytics.json: where a run's results are, for tools that read them later.

    {"version": 1, "run_id": "01…", "worker_type": "cleanrl",
     "artifacts": {"tensorboard": {"log_dir": "tensorboard"} | null,
                   "wandb":       {"project": …, "url": …}   | null,
                   "checkpoints": {"directory": "checkpoints", "files": []} | null,
                   "logs_dir": "logs", "videos_dir": "videos"},
     "metadata": {}}

Paths are relative to the run's folder, so that the folder can be moved.
"""

import os
from dataclasses import dataclass, field
from typing import Any, Dict, Mapping, Optional, Tuple

from mosaic_sdk.files import write_json
from mosaic_sdk.names import CONTRACT_VERSION, WorkerEnv

FILE_NAME = "analytics.json"


class ManifestError(Exception):
    """A manifest that cannot be written; the text says what to do."""


@dataclass(frozen=True)
class AnalyticsManifest:
    """The results of a run. Paths may be absolute or relative, and must be inside the run's folder."""

    run_id: str
    worker_type: str
    tensorboard_dir: Optional[str] = None
    wandb: Optional[Mapping[str, Any]] = None
    checkpoints_dir: Optional[str] = None
    checkpoint_files: Tuple[str, ...] = ()
    logs_dir: Optional[str] = "logs"
    videos_dir: Optional[str] = None
    metadata: Mapping[str, Any] = field(default_factory=dict)

    def to_dict(self, run_dir: str) -> Dict[str, Any]:
        return {
            "version": CONTRACT_VERSION,
            "run_id": self.run_id,
            "worker_type": self.worker_type,
            "artifacts": {
                "tensorboard": self._tensorboard(run_dir),
                "wandb": dict(self.wandb) if self.wandb else None,
                "checkpoints": self._checkpoints(run_dir),
                "logs_dir": _inside(run_dir, self.logs_dir),
                "videos_dir": _inside(run_dir, self.videos_dir),
            },
            "metadata": dict(self.metadata),
        }

    def write(self, run_dir: "Optional[str | os.PathLike[str]]" = None) -> str:
        """Write analytics.json atomically into the run's folder; returns its path."""
        folder = os.fspath(run_dir) if run_dir is not None else os.environ.get(WorkerEnv.RUN_DIR, "")
        if not folder:
            raise ManifestError(f"The folder for {FILE_NAME} is unknown. Pass run_dir, or set {WorkerEnv.RUN_DIR}.")
        path = os.path.join(folder, FILE_NAME)
        return write_json(path, self.to_dict(folder), indent=1)

    def _tensorboard(self, run_dir: str) -> Optional[Dict[str, Any]]:
        return {"log_dir": _inside(run_dir, self.tensorboard_dir)} if self.tensorboard_dir else None

    def _checkpoints(self, run_dir: str) -> Optional[Dict[str, Any]]:
        if not self.checkpoints_dir:
            return None
        files = [_inside(run_dir, path) for path in self.checkpoint_files]
        return {"directory": _inside(run_dir, self.checkpoints_dir), "files": files}


def _inside(run_dir: str, path: Optional[str]) -> Optional[str]:
    """`path` relative to the run's folder."""
    if path is None:
        return None
    root = os.path.realpath(run_dir)
    relative = os.path.relpath(os.path.realpath(os.path.join(root, path)), root)
    if relative == os.pardir or relative.startswith(os.pardir + os.sep):
        raise ManifestError(f"{path} is outside the run's folder {run_dir}. Write it there, or leave it out.")
    return relative
