"""Sends the frames of an env to MOSAIC's viewers. Nothing is rendered without a viewer."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

# Env processes get MOSAIC's own variable under this name. Otherwise its import hook would show the first process to
# start, and not the env that was requested.
HIDDEN = "DREAMER_FRAMES"


class Screen:
    """Shows one env if MOSAIC requested its frames; otherwise every call does nothing. It never interrupts the env."""

    def __init__(self, index: int, render: Callable[[], Any]) -> None:
        self._render = render
        self._lane = _open(index)

    def note(self, obs: dict[str, Any]) -> None:
        """After every reset and step."""
        if self._lane is None:
            return
        try:
            self._show(obs)
        except Exception as error:  # noqa: BLE001  a renderer may raise anything, and only the frames end
            from mosaic_sdk.fastlane.lane import note

            note(f"no more frames: {type(error).__name__}: {error}")
            self.close()

    def close(self) -> None:
        lane, self._lane = self._lane, None
        if lane is not None:
            lane.close()

    def _show(self, obs: dict[str, Any]) -> None:
        lane = self._lane
        if obs["is_first"]:
            lane.return_so_far = 0.0  # do not add up with an episode that was abandoned
        lane.steps += 1
        lane.return_so_far += float(obs["reward"])
        if obs["is_last"]:
            lane.end_episode()
        if lane.steps >= lane.next_look:
            lane.look(self._render, float(obs["reward"]))


def _open(index: int) -> Any:
    try:
        from mosaic_sdk.fastlane.lane import Lane
        from mosaic_sdk.fastlane.settings import Settings
        from mosaic_sdk.names import TelemetryEnv

        requested = os.environ.get(HIDDEN, os.environ.get(TelemetryEnv.FASTLANE_ONLY, "0"))
        settings = Settings.of({**os.environ, TelemetryEnv.FASTLANE_ONLY: requested})
        return Lane.open(settings, index) if settings.enabled and settings.shows(index) else None
    except (ImportError, OSError):
        return None


def hidden_request() -> dict[str, str]:
    """Variables for env processes, see HIDDEN."""
    from mosaic_sdk.names import TelemetryEnv

    return {HIDDEN: os.environ.get(TelemetryEnv.FASTLANE_ONLY, "0"), TelemetryEnv.FASTLANE_ONLY: "0"}
