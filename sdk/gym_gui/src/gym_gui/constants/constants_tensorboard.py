"""Where a run's event files are."""

from mosaic_sdk.compat.paths import build_tensorboard_log_dir, build_tensorboard_relative_path

__all__ = ["build_tensorboard_log_dir", "build_tensorboard_relative_path"]
