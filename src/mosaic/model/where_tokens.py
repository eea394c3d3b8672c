"""The words of a condition on runs, and the error that points at one of them."""

import re
import unicodedata
from dataclasses import dataclass
from typing import Literal

from mosaic.model.errors import BadQuery

LONGEST = 10_000  # characters of a condition
SHOWN = 100  # characters of it in a message

# A word is whatever is not an operator: settings have dots, metrics slashes, environments dashes.
_TOKEN = re.compile(
    r"""\s*(?:
        (?P<text>"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')
      | (?P<operator>==|!=|<=|>=|[=<>~])
      | (?P<mark>[(),])
      | (?P<word>[^\s"'=!<>~(),]+)
      | (?P<end>\Z)
    )""",
    re.VERBOSE | re.DOTALL,
)


@dataclass(frozen=True)
class Token:
    kind: Literal["text", "operator", "mark", "word", "end"]
    text: str  # without its quotation marks
    at: int  # where it starts in the condition

    def is_word(self, *words: str) -> bool:
        """Whether it is one of these keywords; a quoted text never is."""
        return self.kind == "word" and self.text.lower() in words

    def is_mark(self, mark: str) -> bool:
        return self.kind == "mark" and self.text == mark

    @property
    def shown(self) -> str:
        return "the end" if self.kind == "end" else f"'{_cut(self.text)}'"


def tokens(condition: str) -> list[Token]:
    """All words of a condition; the last token is the end."""
    if len(condition) > LONGEST:
        raise BadQuery(f"The condition has {len(condition):,} characters; the maximum is {LONGEST:,}.")
    found: list[Token] = []
    at = 0
    while not found or found[-1].kind != "end":
        match = _TOKEN.match(condition, at)
        if match is None:
            raise _odd(condition, at)
        kind = match.lastgroup or "end"
        text = match[kind]
        start = match.start(kind)
        found.append(Token(kind, _unquoted(text) if kind == "text" else text, start))  # type: ignore[arg-type]
        at = match.end()
    return found


def bad(condition: str, at: int, why: str) -> BadQuery:
    """The error, with a caret under the place."""
    line = "".join(letter if letter.isprintable() else " " for letter in condition)
    first = max(0, min(at - SHOWN // 2, len(line) - SHOWN))
    before = ("…" if first else "") + line[first:at]
    after = line[at : first + SHOWN] + ("…" if first + SHOWN < len(line) else "")
    return BadQuery(f"The condition is not valid: {why}\n  {before}{after}\n  {' ' * _width(before)}^")


def _odd(condition: str, at: int) -> BadQuery:
    """What cannot begin a word: a quotation without an end, or a lone exclamation mark."""
    at += len(condition[at:]) - len(condition[at:].lstrip())
    if condition[at] in "\"'":
        return bad(condition, at, f"this quotation has no closing {condition[at]}.")
    return bad(condition, at, f"'{condition[at]}' is not an operator. Write not before the part, or != for unequal.")


def _unquoted(text: str) -> str:
    return re.sub(r"\\(.)", r"\1", text[1:-1], flags=re.DOTALL)


def _cut(text: str) -> str:
    return text if len(text) <= 40 else f"{text[:39]}…"


def _width(text: str) -> int:
    """The number of columns on a terminal."""
    return sum(0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text)
