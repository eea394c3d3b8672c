"""A game's actions in words, and which of them a model's answer names. What it says is data and is never executed."""

import json
import re
from collections.abc import Mapping, Sequence

_THINKING = re.compile(r"<think(?:ing)?>.*?(?:</think(?:ing)?>|\Z)", re.DOTALL | re.IGNORECASE)
_ACTION_LINE = re.compile(r"^\W*(?:final\s+)?(?:action|answer|move)\W*[:=]\s*(.+?)\s*$", re.IGNORECASE | re.MULTILINE)
_LONGEST_COMMAND = 200


class Actions:
    """Words that an answer may name, each with a description."""

    def __init__(self, described: Mapping[str, str]) -> None:
        self._described = dict(described)
        self._by_key = {_key(name): name for name in described}

    @property
    def names(self) -> list[str]:
        return list(self._described)

    def listed(self) -> str:
        """One line for each."""
        return "\n".join(f"- {name}: {text}" if text else f"- {name}" for name, text in self._described.items())

    def find(self, answer: str) -> str | None:
        """The action that an answer names; None if it names none, or several."""
        for part in candidates(answer):
            exact = self._by_key.get(_key(part))
            if exact is not None:
                return exact
        for part in candidates(answer):
            named = self._named_in(part)
            if len(named) == 1:
                return named.pop()
        return None

    def schema(self) -> dict[str, object]:
        return {"enum": self.names}

    def _named_in(self, text: str) -> set[str]:
        """The actions whose words occur in the text; the words of a longer one do not count again."""
        rest, found = f" {_key(text)} ", set()
        for key in sorted(self._by_key, key=len, reverse=True):
            if f" {key} " in rest:
                found.add(self._by_key[key])
                rest = rest.replace(f" {key} ", "  ")
        return found


class Commands(Actions):
    """A game that reads any line of text."""

    def __init__(self, examples: Sequence[str]) -> None:
        super().__init__(dict.fromkeys(examples, ""))

    def find(self, answer: str) -> str | None:
        for part in candidates(answer):
            command = " ".join(part.strip("\"'`*. \t").split())
            if command and len(command) <= _LONGEST_COMMAND and command.isprintable():
                return command.removeprefix("> ").strip()
        return None

    def schema(self) -> dict[str, object]:
        return {"type": "string", "minLength": 1, "maxLength": 60}


def candidates(answer: str) -> list[str]:
    """The parts of an answer that may be its action, the likeliest first: what is marked as one, the last line."""
    text = _THINKING.sub("", answer).strip()
    marked = [found for found in (_json_action(text), *reversed(_ACTION_LINE.findall(text))) if found]
    lines = [line for line in text.splitlines() if line.strip(" `\t")]
    # Without a mark, only a short last line is an action; a paragraph mentions many words.
    last = [lines[-1]] if lines and not marked and len(lines[-1].split()) <= 12 else []
    return marked[:1] + last


def _json_action(text: str) -> str:
    start, end = text.find("{"), text.rfind("}")
    try:
        value = json.loads(text[start : end + 1]) if 0 <= start < end else None
    except (ValueError, RecursionError):
        return ""
    action = value.get("action") if isinstance(value, dict) else None
    return action if isinstance(action, str) else ""


def _key(text: str) -> str:
    """`text` in lower case, its words separated by single spaces."""
    return " ".join(re.sub(r"[^0-9a-z]+", " ", text.lower()).split())
