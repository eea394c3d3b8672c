"""The values of a condition: read from its text, and compared with those of a run."""

import json
import math
import operator as op
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from mosaic.model.durations import parse_duration
from mosaic.model.nearest import did_you_mean
from mosaic.model.run_fields import Kind
from mosaic.model.state_words import STATES
from mosaic.model.where_tokens import Token, bad

Test = Callable[[Any], bool]  # of a value of the run that is not None

ORDER: dict[str, Callable[[Any, Any], bool]] = {"<": op.lt, "<=": op.le, ">": op.gt, ">=": op.ge}
UNITS = {"k": 1e3, "m": 1e6, "g": 1e9, "%": 1.0}
_NUMBER = re.compile(r"([+-]?(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?)([kmg%]?)|([+-]?(?:nan|inf(?:inity)?))", re.IGNORECASE)


@dataclass(frozen=True)
class Value:
    text: str
    number: float | None = None  # None: it is not a number


def read_values(condition: str, kind: Kind, operator: str, found: Sequence[Token]) -> list[Value]:
    """The values behind an operator; BadQuery for one that does not fit the field."""
    return [_read(condition, kind, operator, token) for token in found]


def number_in(text: str) -> float | None:
    """400, 1e-4, 2.5k, 90%, nan; None for other texts."""
    found = _NUMBER.fullmatch(text)
    if not found:
        return None
    digits, unit, word = found.groups()
    return float(word) if word else float(digits) * UNITS.get(unit.lower(), 1.0)


def _read(condition: str, kind: Kind, operator: str, token: Token) -> Value:
    if kind == "duration":
        try:
            return Value(token.text, parse_duration(token.text))
        except ValueError as error:
            raise bad(condition, token.at, f"expected a duration. {error}") from None
    if kind == "state" and operator != "~" and token.text.lower() not in STATES:
        hint = did_you_mean(token.text, STATES, 1) or f"Choose from: {', '.join(STATES)}."
        raise bad(condition, token.at, f"{token.shown} is not a state. {hint}")
    number = number_in(token.text)
    if number is None and (kind == "number" or operator in ORDER):
        raise bad(condition, token.at, f"expected a number, not {token.shown}.")
    return Value(token.text, number)


def test_of(kind: Kind, operator: str, values: Sequence[Value]) -> Test:
    """The test that a run's value must pass."""
    if operator == "!=":
        is_equal = test_of(kind, "=", values)
        return lambda actual: not is_equal(actual)
    if operator in ORDER:
        return _ordered(ORDER[operator], values[0].number or 0.0)
    if kind == "state" and operator != "~":
        states = frozenset().union(*(STATES[value.text.lower()] for value in values))
        return lambda actual: actual in states
    if kind in ("number", "duration"):
        return _equal_number([value.number for value in values if value.number is not None])
    one = {"~": _contains, "==": _exactly}.get(operator, _same)([value.text for value in values])
    if kind == "tags":
        return lambda actual: any(map(one, actual))
    return one if kind in ("text", "state") else _of_any_type(one, operator, values)


def plain_text(value: Any) -> str:
    """The text of a setting as JSON has it: true, 0.001, [64,64]; a string is itself."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _ordered(compare: Callable[[Any, Any], bool], limit: float) -> Test:
    return lambda actual: is_number(actual) and compare(actual, limit)


def _equal_number(wanted: Sequence[float]) -> Test:
    wants_nan = any(map(math.isnan, wanted))
    numbers = frozenset(wanted)
    return lambda actual: actual in numbers or (wants_nan and actual != actual)


def _of_any_type(test_text: Callable[[str], bool], operator: str, values: Sequence[Value]) -> Test:
    """A setting may be a number in one run and text in another."""
    equals = _equal_number([value.number for value in values if value.number is not None])

    def test(actual: Any) -> bool:
        if operator != "~" and is_number(actual):
            return equals(actual)
        return test_text(plain_text(actual))

    return test


def _contains(parts: Sequence[str]) -> Callable[[str], bool]:
    low = [part.lower() for part in parts]
    return lambda text: any(part in text.lower() for part in low)


def _same(texts: Sequence[str]) -> Callable[[str], bool]:
    low = frozenset(text.lower() for text in texts)
    return lambda text: text.lower() in low


def _exactly(texts: Sequence[str]) -> Callable[[str], bool]:
    exact = frozenset(texts)
    return lambda text: text in exact
