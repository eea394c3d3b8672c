"""PettingZoo's card games, and rock paper scissors."""

from collections.abc import Sequence
from typing import Any

from eval_worker.envs.families.family import Family, Name

_LIMIT: tuple[Name, ...] = (("call", "c"), ("raise", "r"), ("fold", "f"), ("check", "k"))
_NO_LIMIT: tuple[Name, ...] = (
    ("fold", "f"),
    ("check or call", "c"),
    ("raise half the pot", "h"),
    ("raise the pot", "r"),
    ("all in", "i"),
)


class Poker(Family):
    """Leduc and Texas hold'em. The text has the player's own cards only."""

    is_competitive = True

    def action_names(self, agent: str) -> Sequence[Name]:
        return _LIMIT if int(self.game.action_space(agent).n) == len(_LIMIT) else _NO_LIMIT

    def text(self, agent: str, observation: Any) -> str:
        table = self.game.unwrapped.env.get_state(self.game.agents.index(agent))["raw_obs"]
        public = table.get("public_cards", table.get("public_card"))
        chips = ", ".join(f"{name} {count}" for name, count in zip(self.game.agents, table["all_chips"], strict=False))
        pot = f" The pot is {table['pot']}." if "pot" in table else ""
        cards = f"Your cards: {_cards(table['hand'])}. On the table: {_cards(public)}."
        return f"You are {agent}. {cards}\nChips bet: {chips}.{pot}"


class Hanabi(Family):
    """OpenSpiel's own words for the state and the moves: they hide the player's cards from it."""

    def action_names(self, agent: str) -> Sequence[Name]:
        state, player = self._state, self.game.agents.index(agent)
        return [(state.action_to_string(player, move).strip("()").lower(),) for move in range(self._count(agent))]

    def text(self, agent: str, observation: Any) -> str:
        return f"You are {agent}.\n{self._state.observation_string(self.game.agents.index(agent)).strip()}"

    @property
    def _state(self) -> Any:
        return self.game.unwrapped.hanabi_env.game_state

    def _count(self, agent: str) -> int:
        return int(self.game.action_space(agent).n)


class RockPaperScissors(Family):
    is_competitive = True
    names: tuple[Name, ...] = (("rock", "r"), ("paper", "p"), ("scissors", "s"), ("lizard", "l"), ("spock", "k"))

    def action_names(self, agent: str) -> Sequence[Name]:
        return self.names[: int(self.game.action_space(agent).n)]

    def text(self, agent: str, observation: Any) -> str:
        shown = int(observation)
        known = self.action_names(agent)
        last = known[shown][0] if shown < len(known) else "nothing yet"
        return f"You are {agent}. Your opponent's last move: {last}."


def _cards(cards: Any) -> str:
    listed = [cards] if isinstance(cards, str) else list(cards or [])
    return " ".join(str(card) for card in listed) or "none"
