"""A game with its family: what does not change between episodes."""

from typing import Any

from mosaic_sdk.operators import spaces

from eval_worker.envs.choice import EnvChoice
from eval_worker.envs.families import family_of
from eval_worker.envs.making import make_game


class Stage:
    def __init__(self, choice: EnvChoice) -> None:
        self.choice = choice
        self.game = make_game(choice)
        self.family = family_of(self.game)
        game = self.game
        self.action_spaces = {agent: spaces.describe(game.action_space(agent)) for agent in game.agents}
        self.observation_spaces = {agent: spaces.describe(game.observation_space(agent)) for agent in game.agents}

    def describe(self) -> dict[str, Any]:
        game = self.game
        return {
            "env_id": self.choice.id,
            "multi_agent": game.is_multi_agent,
            "agents": game.agents,
            "spaces": {
                agent: {"action": self.action_spaces[agent], "observation": self.observation_spaces[agent]}
                for agent in game.agents
            },
            "actions": {agent: self.family.actions(agent) for agent in game.agents},
        }
