"""The public MOSAIC's folders, inside the run's folder.

A worker that writes to VAR_TRAINER_DIR/runs/{run_id} writes to the run's own folder: `runs/{run_id}` is a link to it.
Outside a run the folders are below the current one.
"""

import os
from contextlib import suppress
from pathlib import Path

from mosaic_sdk.names import WorkerEnv

_RUN_DIR = os.environ.get(WorkerEnv.RUN_DIR, "")
_RUN_ID = os.environ.get(WorkerEnv.RUN_ID, "")

VAR_ROOT = Path(_RUN_DIR or os.getcwd()) / "var"
VAR_RECORDS_DIR = VAR_ROOT / "records"
VAR_TELEMETRY_DIR = VAR_ROOT / "telemetry"
VAR_OPERATORS_TELEMETRY_DIR = VAR_ROOT / "operators" / "telemetry"
VAR_CACHE_DIR = VAR_ROOT / "cache"
VAR_TMP_DIR = VAR_ROOT / "tmp"
VAR_LOGS_DIR = VAR_ROOT / "logs"
VAR_DATA_DIR = VAR_ROOT / "data"
VAR_TRAINER_DIR = VAR_ROOT / "trainer"
VAR_TENSORBOARD_DIR = VAR_TRAINER_DIR / "runs"
VAR_WANDB_DIR = VAR_TRAINER_DIR / "runs"
_ALL = (
    *(VAR_ROOT, VAR_RECORDS_DIR, VAR_TELEMETRY_DIR, VAR_OPERATORS_TELEMETRY_DIR, VAR_CACHE_DIR, VAR_TMP_DIR),
    *(VAR_LOGS_DIR, VAR_DATA_DIR, VAR_TRAINER_DIR, VAR_TENSORBOARD_DIR),
)


def ensure_var_directories() -> None:
    """Create the folders that do not exist."""
    for folder in _ALL:
        folder.mkdir(parents=True, exist_ok=True)
    _link_run()


def build_tensorboard_log_dir(run_id: str, worker_id: "str | None" = None) -> Path:
    """The folder for this run's event files."""
    return (VAR_TENSORBOARD_DIR / run_id / "tensorboard").resolve()


def build_tensorboard_relative_path(run_id: str, worker_id: "str | None" = None) -> str:
    return f"var/trainer/runs/{run_id}/tensorboard"


def _link_run() -> None:
    """Created at import: workers make their folder below `runs` themselves."""
    if not (_RUN_DIR and _RUN_ID):
        return
    with suppress(OSError):  # it exists, or the folder cannot be written: then the worker's own error says so
        VAR_TENSORBOARD_DIR.mkdir(parents=True, exist_ok=True)
        (VAR_TENSORBOARD_DIR / _RUN_ID).symlink_to(os.path.join("..", "..", ".."))


_link_run()
