"""The messages of one decision: instructions, the last turns of the episode, and what the agent sees now."""

import hashlib
import json
from collections import deque
from collections.abc import Mapping
from typing import Any, NamedTuple

from mosaic_sdk.llm.reply import valid_text
from mosaic_sdk.player import Agent, CommandError, Request, plain

from llm_worker.actions import Actions, Named
from llm_worker.config import BOTH, IMAGE, JSON_SCHEMA, TEXT, LlmConfig
from llm_worker.template import choose_template

Message = dict[str, Any]
_PNG = "iVBORw0KGgo"  # how base64 of a PNG begins
_LONGEST_TEXT = 100_000
_LONGEST_ANSWER = 4000  # of what a model is shown again of its own nonsense


class Turn(NamedTuple):
    """A former turn: what the model was shown, without images, and what it answered."""

    shown: str
    answer: str


class Prompt:
    """The conversation with one agent's model over one episode."""

    def __init__(self, config: LlmConfig, agent: Agent) -> None:
        self._config = config
        self._agent = agent
        self._template = choose_template(config, agent.env_id)
        self._turns: deque[Turn] = deque(maxlen=config.history)
        self._note = ""

    def messages(self, request: Request, actions: Actions, step_index: int) -> list[Message]:
        """What is sent for a request."""
        values = self._values(request, actions, step_index)
        system = self._template.system_text(values)
        former = [message for turn in self._turns for message in _exchange(turn)]
        return [_message("system", system), *former, _message("user", self._content(values, request))]

    def remember(self, messages: list[Message], answer: str, note: str = "") -> None:
        """Keep the decision for later turns. `note` is told to the model in the next one."""
        self._turns.append(Turn(_text_of(messages[-1]), answer))
        self._note = note

    def _values(self, request: Request, actions: Actions, step_index: int) -> dict[str, str]:
        # Moves that differ from turn to turn belong to the turn; then the system message stays the same, and cached.
        has_own_moves = bool(request.command.get("actions"))
        return {
            "env_id": self._agent.env_id,
            "agent_id": str(self._agent.agent_id or "the agent"),
            "mission": _mission(request),
            "actions": "" if has_own_moves else actions.all_listed(),
            "answer": answer_format(self._config, actions),
            "step": str(step_index),
            "reward": "" if request.is_first else f"{request.reward:g}",
            "note": self._note,
            "observation": _observation(request)
            if self._config.observation in (TEXT, BOTH)
            else "The picture shows it.",
            "legal_actions": actions.listed() if has_own_moves or actions.is_limited else "",
        }

    def _content(self, values: Mapping[str, str], request: Request) -> Any:
        text = self._template.turn_text(values)
        if self._config.observation == TEXT:
            return text
        picture = {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{_image(request)}"}}
        return [{"type": "text", "text": valid_text(text)}, picture]


def correction(answer: str, problem: str) -> list[Message]:
    """What is added to the messages when an answer could not be used."""
    return [
        _message("assistant", answer[:_LONGEST_ANSWER] or "(no answer)"),
        _message("user", f"{problem} Answer again."),
    ]


def answer_format(config: LlmConfig, actions: Actions) -> str:
    """How to answer, in words."""
    example: dict[str, Any] = {"action": "…"}
    if config.reasoning:
        example = {"thought": "…", **example}
    if config.output == TEXT:
        return "Answer with the line: Action: NAME" + (
            " after a short thought." if config.reasoning else " and no more."
        )
    what = "the name of one action" if isinstance(actions, Named) else actions.listed()
    return f'Answer with a JSON object and nothing else: {json.dumps(example, ensure_ascii=False)}. "action" is {what}.'


def written(config: LlmConfig, name: Any, text: str) -> str:
    """A decision as the model should have written it, for the history."""
    if config.output == TEXT:
        return text or f"Action: {name}"
    thought = {"thought": text} if config.reasoning and text else {}
    return json.dumps({**thought, "action": name}, ensure_ascii=False)


def response_format(config: LlmConfig, actions: Actions) -> dict[str, Any] | None:
    """How to answer, for the server."""
    if config.output == TEXT:
        return None
    if config.output != JSON_SCHEMA:
        return {"type": "json_object"}
    # The thought comes first: a model that has named its action has nothing left to think about.
    fields = {"thought": {"type": "string"}} if config.reasoning else {}
    properties = {**fields, "action": actions.schema()}
    schema = {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}
    return {"type": "json_schema", "json_schema": {"name": "decision", "strict": True, "schema": schema}}


def digest(body: Mapping[str, Any]) -> str:
    """A hash of all that is sent to the model."""
    text = json.dumps(body, sort_keys=True, separators=(",", ":"), default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def _observation(request: Request) -> str:
    text = request.command.get("text")
    if not isinstance(text, str) or not text.strip():
        text = f"Observation: {json.dumps(_without_mission(plain(request.observation)), default=str)}"
    if len(text) > _LONGEST_TEXT:
        raise CommandError("observation: is too large to be shown as text. Use observation=image.")
    return text


def _mission(request: Request) -> str:
    seen = request.observation
    found = seen.get("mission") if isinstance(seen, Mapping) else None
    return str(found or request.info.get("mission") or "")


def _without_mission(seen: Any) -> Any:
    return {name: part for name, part in seen.items() if name != "mission"} if isinstance(seen, dict) else seen


def _image(request: Request) -> str:
    image = request.command.get("image")
    if not isinstance(image, str) or not image.startswith(_PNG):
        raise CommandError(f"image: the environment gave no picture, and observation is {IMAGE} or {BOTH}. Use text.")
    return image


def _exchange(turn: Turn) -> list[Message]:
    return [_message("user", turn.shown), _message("assistant", turn.answer)]


def _message(role: str, content: Any) -> Message:
    return {"role": role, "content": valid_text(content) if isinstance(content, str) else content}


def _text_of(message: Message) -> str:
    content = message["content"]
    return content if isinstance(content, str) else "".join(part.get("text", "") for part in content)
