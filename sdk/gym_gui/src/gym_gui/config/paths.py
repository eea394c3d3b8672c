"""Folders, inside the run's folder."""

from mosaic_sdk.compat.paths import (
    VAR_CACHE_DIR,
    VAR_DATA_DIR,
    VAR_LOGS_DIR,
    VAR_OPERATORS_TELEMETRY_DIR,
    VAR_RECORDS_DIR,
    VAR_ROOT,
    VAR_TELEMETRY_DIR,
    VAR_TENSORBOARD_DIR,
    VAR_TMP_DIR,
    VAR_TRAINER_DIR,
    VAR_WANDB_DIR,
    ensure_var_directories,
)

__all__ = [
    "VAR_CACHE_DIR",
    "VAR_DATA_DIR",
    "VAR_LOGS_DIR",
    "VAR_OPERATORS_TELEMETRY_DIR",
    "VAR_RECORDS_DIR",
    "VAR_ROOT",
    "VAR_TELEMETRY_DIR",
    "VAR_TENSORBOARD_DIR",
    "VAR_TMP_DIR",
    "VAR_TRAINER_DIR",
    "VAR_WANDB_DIR",
    "ensure_var_directories",
]
