"""Settings and numbers in the files of other programs."""

import json
import math
import re
from collections.abc import Iterator, Mapping
from typing import Any

MOST_SETTINGS = 2000
DEEPEST = 8
LONGEST_VALUE = 2000  # characters of a text, or of a list as JSON
_INTEGER = re.compile(r"[-+]?\d{1,18}")


def flatten(values: Mapping[Any, Any]) -> dict[str, Any]:
    """Settings under dotted keys; what is too deep, too long or too many is left out."""
    found: dict[str, Any] = {}
    for key, value in _leaves(values, "", 0):
        if len(found) >= MOST_SETTINGS:
            break
        found[key] = value
    return found


def _leaves(values: Mapping[Any, Any], prefix: str, depth: int) -> Iterator[tuple[str, Any]]:
    for key, value in values.items():
        name = f"{prefix}{key}"[:200]
        if isinstance(value, Mapping):
            if depth < DEEPEST:
                yield from _leaves(value, f"{name}.", depth + 1)
        elif (plain := _plain(value)) is not None or value is None:
            yield name, plain


def _plain(value: Any) -> Any:
    """A value as it is stored; None for what cannot be."""
    if isinstance(value, bool | str):
        return value[:LONGEST_VALUE] if isinstance(value, str) else value
    if isinstance(value, int):
        return value if -(2**63) <= value < 2**63 else str(value)[:100]
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if isinstance(value, list | tuple):
        try:
            text = json.dumps(value)
        except (TypeError, ValueError, RecursionError):
            return None
        return json.loads(text) if len(text) <= LONGEST_VALUE else None
    return str(value)[:LONGEST_VALUE] if value is not None else None


def typed(text: str) -> Any:
    """The value that a program printed: `True` is a bool, `3e-4` a number, `None` null, anything else text."""
    text = text.strip()
    if text in ("True", "False", "true", "false"):
        return text.lower() == "true"
    if text in ("None", "null"):
        return None
    if _INTEGER.fullmatch(text):
        return int(text)
    try:
        number = float(text)
    except ValueError:
        return _listed(text)
    return number if math.isfinite(number) else text


def _listed(text: str) -> Any:
    if text[:1] in "[{" and len(text) <= LONGEST_VALUE:
        try:
            return json.loads(text)
        except (ValueError, RecursionError):
            return text
    return text[:LONGEST_VALUE]


def number_of(value: Any) -> float | None:
    """A JSON value as a number; None for text, lists and null. NaN and Infinity are numbers, `true` is 1."""
    if isinstance(value, int | float):
        try:
            return float(value)
        except OverflowError:
            return None
    return (
        {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}.get(value) if isinstance(value, str) else None
    )


def cell_number(text: str) -> float | None:
    """A cell of a CSV file as a number; None if it is empty or text."""
    try:
        return float(text) if text and len(text) < 64 else None
    except ValueError:
        return {"True": 1.0, "False": 0.0}.get(text)


def step_of(value: Any) -> int | None:
    """A number of steps; None for what cannot be one."""
    number = number_of(value)
    if number is None or not math.isfinite(number) or not -(2**63) <= number < 2**63:
        return None
    return value if isinstance(value, int) and not isinstance(value, bool) else int(number)


def ns_of(seconds: float) -> int:
    """Unix seconds as nanoseconds; 0 for what is not a time."""
    return int(seconds * 1e9) if 0 < seconds < 4e9 else 0


def numbers_in(values: Mapping[str, Any], skipped: frozenset[str] = frozenset()) -> dict[str, float]:
    """The numbers in a nested object, under keys joined by slashes."""
    found: dict[str, float] = {}
    waiting = [("", values, 0)]
    while waiting:
        prefix, here, depth = waiting.pop()
        for key, value in here.items():
            if not prefix and key in skipped:
                continue
            if isinstance(value, Mapping) and depth < DEEPEST:
                waiting.append((f"{prefix}{key}/", value, depth + 1))
            elif not isinstance(value, bool) and (number := number_of(value)) is not None:
                found[f"{prefix}{key}"] = number
    return found
