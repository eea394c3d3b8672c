"""Conditions on runs: `algo=ppo and env_id~CartPole and return>400`. Only their grammar: nothing here reads a run.

condition  = all { "or" all }
all        = part { "and" part }
part       = "not" part | "(" condition ")" | NAME operator VALUE { "," VALUE } | NAME "is" [ "not" ] "missing"
operator   = "=" | "!=" | "==" | "<" | "<=" | ">" | ">=" | "~"

NAME is a field of `run_fields.py`, a setting or a metric. Quotation marks are needed only around blanks and operators.
Text is compared without regard to case, except with ==. Several values after = or ~ mean any of them.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NoReturn

from mosaic.model.run_fields import kind_of
from mosaic.model.where_tokens import Token, bad, tokens
from mosaic.model.where_values import ORDER, Test, read_values, test_of

DEEPEST = 50  # parentheses and "not" within each other
NEEDS_OPERATOR = "expected =, !=, <, <=, >, >=, ~ or is missing"


@dataclass(frozen=True)
class Comparison:
    name: str
    test: Test  # of the value, which is not None


@dataclass(frozen=True)
class Missing:
    name: str


@dataclass(frozen=True)
class Not:
    part: "Condition"


@dataclass(frozen=True)
class All:
    parts: "tuple[Condition, ...]"


@dataclass(frozen=True)
class Either:
    parts: "tuple[Condition, ...]"


Condition = Comparison | Missing | Not | All | Either


def parse_where(text: str) -> Condition:
    """Understand a condition, or raise BadQuery with a caret under the place and what was expected there."""
    return _Parser(text).whole()


def names_in(condition: Condition) -> Iterator[str]:
    """Every name that the condition mentions, in order."""
    if isinstance(condition, Comparison | Missing):
        yield condition.name
    elif isinstance(condition, Not):
        yield from names_in(condition.part)
    else:
        for part in condition.parts:
            yield from names_in(part)


class _Parser:
    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens = tokens(text)
        self._at = 0
        self._depth = 0

    def whole(self) -> Condition:
        found = self._any()
        if self._next.kind != "end":
            self._refuse(f"expected and, or, or the end, not {self._next.shown}.")
        return found

    def _any(self) -> Condition:
        parts = [self._all()]
        while self._takes_word("or"):
            parts.append(self._all())
        return parts[0] if len(parts) == 1 else Either(tuple(parts))

    def _all(self) -> Condition:
        parts = [self._part()]
        while self._takes_word("and"):
            parts.append(self._part())
        return parts[0] if len(parts) == 1 else All(tuple(parts))

    def _part(self) -> Condition:
        self._depth += 1
        if self._depth > DEEPEST:
            self._refuse(f"more than {DEEPEST} parts are within each other.")
        found = self._inner_part()
        self._depth -= 1
        return found

    def _inner_part(self) -> Condition:
        if self._takes_word("not"):
            return Not(self._part())
        if not self._next.is_mark("("):
            return self._comparison()
        opened = self._take()
        found = self._any()
        if not self._next.is_mark(")"):
            self._refuse(f"expected ) for the ( at character {opened.at + 1}, not {self._next.shown}.")
        self._take()
        return found

    def _comparison(self) -> Condition:
        name = self._take_name()
        if self._takes_word("is"):
            is_not = self._takes_word("not")
            if not self._takes_word("missing"):
                self._refuse(f"expected missing{'' if is_not else ' or not missing'} after is, not {self._next.shown}.")
            return Not(Missing(name.text)) if is_not else Missing(name.text)
        if self._next.kind != "operator":
            self._refuse(f"{NEEDS_OPERATOR} after '{name.text}', not {self._next.shown}.")
        operator = self._take()
        values = [self._take_value(operator)]
        while self._next.is_mark(","):
            self._take()
            values.append(self._take_value(operator))
        return Comparison(name.text, self._test(name, operator, values))

    def _test(self, name: Token, operator: Token, values: list[Token]) -> Test:
        kind = kind_of(name.text)
        if len(values) > 1 and operator.text not in ("=", "==", "!=", "~"):
            raise bad(self._text, values[1].at, f"expected one value after {operator.text}, not several.")
        if operator.text == "~" and kind in ("number", "duration"):
            raise bad(self._text, operator.at, f"{name.text} is a number: expected =, !=, <, <=, > or >=.")
        if operator.text in ORDER and kind in ("text", "state", "tags"):
            raise bad(self._text, operator.at, f"{name.text} is text: expected =, !=, == or ~.")
        return test_of(kind, operator.text, read_values(self._text, kind, operator.text, values))

    def _take_name(self) -> Token:
        token = self._next
        if token.kind not in ("word", "text") or token.is_word("and", "or", "not", "is") or not token.text:
            self._refuse(f"expected the name of a field, a setting or a metric, not {token.shown}.")
        return self._take()

    def _take_value(self, operator: Token) -> Token:
        token = self._next
        if token.kind not in ("word", "text"):
            self._refuse(f"expected a value after {operator.text}, not {token.shown}.")
        return self._take()

    @property
    def _next(self) -> Token:
        return self._tokens[self._at]

    def _take(self) -> Token:
        self._at += 1
        return self._tokens[self._at - 1]

    def _takes_word(self, word: str) -> bool:
        is_next = self._next.is_word(word)
        self._at += is_next
        return is_next

    def _refuse(self, why: str) -> NoReturn:
        raise bad(self._text, self._next.at, why)
