"""What a model is shown: the goal, a window of former turns, and the newest view.

system     the goal, the actions, and how to answer
user       a former view               ┐ at most `history` turns; a view's passing part is shown only once
assistant  the action that was taken   ┘ (chain_of_thought: with the reasoning, in the last `thought_history` turns)
user       the newest view, with its passing part
"""

from collections import deque
from typing import Any

from balrog_worker.actions import Commands
from balrog_worker.config import CHAIN_OF_THOUGHT, JSON_SCHEMA, BalrogConfig
from balrog_worker.games.game import Game, View

Message = dict[str, Any]
_BRIEF = "Answer with exactly one action from the list and nothing else."
_BRIEF_COMMAND = "Answer with exactly one command and nothing else."
_THINK = (
    "First think step by step about what to do next. Then end your answer with a line of this form:\nACTION: <action>"
)
_JSON = 'Answer with a JSON object: {"action": "<action>"}'
_JSON_THINK = 'Answer with a JSON object: {"thought": "<what you think>", "action": "<action>"}'


class Turn:
    """A view, what was answered, and what was done."""

    def __init__(self, view: View, action: str, thought: str, was_invalid: bool) -> None:
        self.view, self.action, self.thought, self.was_invalid = view, action, thought, was_invalid


class Prompt:
    """The dialogue of one episode."""

    def __init__(self, config: BalrogConfig, game: Game) -> None:
        self._thinks = config.agent == CHAIN_OF_THOUGHT
        self._is_json = config.output == JSON_SCHEMA
        self._thoughts = config.thought_history
        self._turns: deque[Turn] = deque(maxlen=config.history)
        self._last: Turn | None = None
        self._system = f"{game.goal}\n\n{self._listed(game)}\n\n{self._rule(game)}"

    def messages(self, view: View) -> list[Message]:
        found = [_message("system", self._system)]
        first_thought = len(self._turns) - self._thoughts
        for number, turn in enumerate(self._turns):
            found.append(_message("user", turn.view.lasting))
            found.append(_message("assistant", self._answer(turn, number >= first_thought)))
        return [*found, _message("user", self._newest(view))]

    def remember(self, turn: Turn) -> None:
        self._turns.append(turn)
        self._last = turn

    def _newest(self, view: View) -> str:
        parts = [view.passing, view.lasting]
        if self._last is not None and self._last.was_invalid:
            # Published as feedback_on_invalid_action.
            parts.insert(0, f"Your last answer named no valid action, so this one was taken: {self._last.action}")
        return "\n\n".join(part for part in parts if part)

    def _answer(self, turn: Turn, is_recent: bool) -> str:
        if self._thinks and is_recent and turn.thought:
            return f"{turn.thought}\nACTION: {turn.action}"
        return f"ACTION: {turn.action}" if self._thinks else turn.action

    def _listed(self, game: Game) -> str:
        head = "You may type any command, such as:" if isinstance(game.actions, Commands) else "Your actions:"
        return f"{head}\n{game.actions.listed()}"

    def _rule(self, game: Game) -> str:
        if self._is_json:
            return _JSON_THINK if self._thinks else _JSON
        if self._thinks:
            return _THINK
        return _BRIEF_COMMAND if isinstance(game.actions, Commands) else _BRIEF


def response_format(config: BalrogConfig, game: Game) -> dict[str, Any] | None:
    """What constrains the server's answer to an action; None for free text."""
    if config.output != JSON_SCHEMA:
        return None
    fields: dict[str, Any] = {"thought": {"type": "string"}} if config.agent == CHAIN_OF_THOUGHT else {}
    fields["action"] = game.actions.schema()
    schema = {"type": "object", "properties": fields, "required": list(fields), "additionalProperties": False}
    return {"type": "json_schema", "json_schema": {"name": "decision", "strict": True, "schema": schema}}


def _message(role: str, content: str) -> Message:
    return {"role": role, "content": content}
