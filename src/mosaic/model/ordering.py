"""The order of a list of runs by their values: numbers before text, missing values last in either direction."""

from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from mosaic.model.where_values import is_number, plain_text

T = TypeVar("T")


def sort_names(text: str) -> list[tuple[str, bool]]:
    """`-return,seed` as names, each with whether it is descending."""
    names = (part.strip() for part in text.split(","))
    return [(name.removeprefix("-"), name.startswith("-")) for name in names if name.strip("-")]


def ordered(items: Iterable[T], names: Iterable[tuple[str, bool]], value: Callable[[T, str], Any]) -> list[T]:
    """The items by the first name, equal ones by the next; what is equal in all stays in the order it had."""
    found = list(items)
    for name, is_descending in reversed(list(names)):
        found = _by(found, lambda item, name=name: value(item, name), is_descending)  # type: ignore[misc]
    return found


def _by(items: list[T], value: Callable[[T], Any], is_descending: bool) -> list[T]:
    pairs = [(value(item), item) for item in items]
    known = [pair for pair in pairs if not _is_missing(pair[0])]
    # `reverse` keeps the order of equal ones.
    known.sort(key=lambda pair: _key(pair[0]), reverse=is_descending)
    return [item for _, item in known] + [item for found, item in pairs if _is_missing(found)]


def _is_missing(value: Any) -> bool:
    return value is None or value != value  # NaN has no place among numbers


def _key(value: Any) -> tuple[int, float, str]:
    return (0, value, "") if is_number(value) else (1, 0.0, plain_text(value).lower())
