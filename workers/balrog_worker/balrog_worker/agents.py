"""Who plays: a language model, chance, or nobody."""

import os
from random import Random
from typing import NamedTuple

from balrog_worker.config import NOOP, BalrogConfig
from balrog_worker.games.game import Game, View
from balrog_worker.plan import Episode

NAME = "balrog"
LEDGER = os.path.join("operators", f"{NAME}.ledger.jsonl")


class Decision(NamedTuple):
    """An action. `is_valid`: whether the agent named it; if not, it is the game's default."""

    action: str
    is_valid: bool = True
    text: str = ""
    tokens_in: int = 0
    tokens_out: int = 0
    cost: float | None = None


class Agent:
    """Chooses actions; `begin` starts an episode, whose game was reset."""

    def begin(self, episode: Episode, game: Game) -> None: ...

    def act(self, view: View, step: int) -> Decision:
        raise NotImplementedError

    def close(self) -> None: ...


class RandomAgent(Agent):
    """Each action with the same probability, by the episode's seed."""

    def begin(self, episode: Episode, game: Game) -> None:
        self._game = game
        self._random = Random(f"{episode.task}:{episode.seed}")

    def act(self, view: View, step: int) -> Decision:
        return Decision(self._random.choice(self._game.choices()))


class NoopAgent(Agent):
    """Does nothing, in each game's own way."""

    def begin(self, episode: Episode, game: Game) -> None:
        self._game = game

    def act(self, view: View, step: int) -> Decision:
        return Decision(self._game.noop)


def make_agent(config: BalrogConfig, run_dir: str, former_ledger: str = "") -> Agent:
    if config.asks_a_model:
        # Here, because the client takes a second to import, and the other agents need none.
        from balrog_worker.model_agent import ModelAgent

        return ModelAgent(config, run_dir, former_ledger)
    return NoopAgent() if config.agent == NOOP else RandomAgent()
