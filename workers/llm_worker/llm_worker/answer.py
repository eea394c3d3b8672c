"""A model's answer: the action in it, and the thought if there is one. What it says is data and is never executed."""

import json
import re
from typing import Any, NamedTuple

from mosaic_sdk.llm.reply import Reply, valid_text

from llm_worker.actions import Actions, IllegalAnswer
from llm_worker.config import TEXT, LlmConfig

LONGEST_TEXT = 4000  # of what is kept of an answer
_THINKING = re.compile(r"<think(?:ing)?>.*?(?:</think(?:ing)?>|\Z)", re.DOTALL | re.IGNORECASE)
_FENCE = re.compile(r"```(?:json)?\s*\n(.*?)```", re.DOTALL)
_ACTION_LINE = re.compile(r"^\W*(?:final\s+)?(?:action|answer|move)\W*[:=]\s*(.+?)\s*$", re.IGNORECASE | re.MULTILINE)


class Answer(NamedTuple):
    action: Any
    text: str  # what the model said about it


def read_answer(reply: Reply, config: LlmConfig, actions: Actions) -> Answer:
    """The action that a reply chooses. IllegalAnswer, with words for the model, if it chooses none that is legal."""
    if reply.refusal:
        raise IllegalAnswer("refusal", f"You must choose an action. Choose from: {actions.listed()}.")
    content = _THINKING.sub("", reply.content).strip()
    if not content:
        raise IllegalAnswer("empty", f"The answer is empty. Choose from: {actions.listed()}.")
    try:
        return _read_text(content, reply, actions) if config.output == TEXT else _read_json(content, reply, actions)
    except IllegalAnswer:
        if reply.finish_reason == "length":
            raise IllegalAnswer("truncated", "The answer was too long and was cut off. Be brief.") from None
        raise


def _read_json(content: str, reply: Reply, actions: Actions) -> Answer:
    fields = _object(content)
    if fields is None:
        raise IllegalAnswer("not_json", 'The answer is not a JSON object with "action".')
    if "action" not in fields:
        raise IllegalAnswer("no_action", f'The answer has no "action". Choose from: {actions.listed()}.')
    thought = fields.get("thought")
    said = thought if isinstance(thought, str) and thought else reply.reasoning
    return Answer(actions.parse(fields["action"]), valid_text(said[:LONGEST_TEXT]))


def _read_text(content: str, reply: Reply, actions: Actions) -> Answer:
    said = content[:LONGEST_TEXT]
    fields = _object(content)
    if fields is not None and "action" in fields:
        return Answer(actions.parse(fields["action"]), said)
    lines = _ACTION_LINE.findall(content)
    return Answer(actions.find(lines[-1] if lines else content), said)


def _object(content: str) -> dict[str, Any] | None:
    """The JSON object that the content is, or that it holds in a fenced block."""
    fenced = _FENCE.findall(content)
    for text in (content, *reversed(fenced)):
        try:
            value = json.loads(text)
        except (ValueError, RecursionError):
            continue
        if isinstance(value, dict):
            return value
    return None
