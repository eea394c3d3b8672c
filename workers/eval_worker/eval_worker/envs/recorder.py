"""Records the episodes of some agents of a game, each from the agent's own point of view."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from eval_worker.demonstrations import Recording
from eval_worker.envs.game import Outcome

_SAFE = re.compile(r"[^A-Za-z0-9_.-]")


class Recorder:
    """One episode. `act` is called before a step, `note` after it."""

    def __init__(self, folder: Path, stage: Any, options: Any, lane: str, seed: int | None) -> None:
        self._folder = folder
        self._game = stage.game
        self._open = {
            agent: Recording(
                {
                    "env": stage.choice.to_dict(),
                    "agent": _file_name(agent),
                    "operator": _file_name(operator),
                    "lane": _file_name(lane),
                    "episode_index": options.episode_index,
                    "seed": seed,
                    "action_space": stage.action_spaces[agent],
                    "observation_space": stage.observation_spaces[agent],
                }
            )
            for agent, operator in options.record.items()
        }

    def act(self, actions: Mapping[str, Any]) -> None:
        for agent, action in actions.items():
            if agent in self._open:
                self._open[agent].act(self._game.observation(agent), action)

    def note(self, outcome: Outcome) -> None:
        for agent in [agent for agent in self._open if agent in outcome.rewards]:
            recording = self._open[agent]
            recording.note(outcome.rewards[agent], outcome.terminated[agent], outcome.truncated[agent])
            if recording.is_over:
                self._save(agent)

    def close(self) -> None:
        """Save what has not ended: the episode was abandoned."""
        for agent in list(self._open):
            self._save(agent)

    def _save(self, agent: str) -> None:
        self._open.pop(agent).save(self._folder, self._game.observation(agent))


def _file_name(text: str) -> str:
    """A name that stays inside its folder."""
    return _SAFE.sub("_", text).lstrip(".") or "_"
