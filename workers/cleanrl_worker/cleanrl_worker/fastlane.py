"""Frames. The SDK's import hook shows every env that `gymnasium.make` creates; this module passes it the settings.

Procgen and envpool create whole batches of envs without `make`. Of those, the first env's observation is shown.
"""

import os
from typing import Any

from mosaic_sdk.names import TelemetryEnv, VideoModes

from cleanrl_worker.config import CleanRLWorkerConfig


def environment(config: CleanRLWorkerConfig) -> dict[str, str]:
    """Variables for the launcher's process. MOSAIC sets the same ones, but a worker started by hand has only these."""
    if TelemetryEnv.FASTLANE_ONLY in os.environ:
        return {}
    return {
        TelemetryEnv.FASTLANE_ONLY: "0" if config.fastlane_video_mode == VideoModes.OFF else "1",
        TelemetryEnv.FASTLANE_VIDEO_MODE: config.fastlane_video_mode,
        TelemetryEnv.FASTLANE_SLOT: str(config.fastlane_slot),
        TelemetryEnv.FASTLANE_GRID_LIMIT: str(config.fastlane_grid_limit),
    }


def show_batches(envs: Any) -> None:
    """Show the observations of envs that are stepped as one batch, with the step() of gym 0.23."""
    from mosaic_sdk.fastlane import is_fastlane_enabled, maybe_wrap_env

    if hasattr(envs, "envs") or not hasattr(envs, "step") or not is_fastlane_enabled():
        return  # it consists of single envs, which are shown already; or there is no env at all
    first = _First()
    shown = maybe_wrap_env(first)
    if shown is first:
        return
    step = envs.step

    def step_shown(actions: Any) -> Any:
        outcome = step(actions)
        first.outcome = outcome
        shown.step(None)
        return outcome

    envs.step = step_shown


class _First:
    """The first env of a batch, as the result of the batch's step shows it."""

    render_mode = "rgb_array"
    spec = None

    def __init__(self) -> None:
        self.outcome: Any = None

    def step(self, action: Any) -> Any:
        _, rewards, dones, _ = self.outcome
        return None, float(rewards[0]), bool(dones[0]), {}

    def render(self) -> Any:
        """Procgen returns images (height × width × 3); the others four greyscale ones, newest last, and then planes."""
        picture = self.outcome[0][0]
        return picture[3] if 4 <= picture.shape[0] < 16 else picture

    def reset(self) -> Any:
        return None

    def close(self) -> None:
        pass
