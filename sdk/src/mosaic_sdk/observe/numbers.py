"""Numbers of all libraries as Python's."""

from typing import Any, Optional


def as_number(value: Any) -> float:
    """The float of a number, or of an array or tensor with one element on any device."""
    if type(value) is float:
        return value
    plain = value.tolist() if hasattr(value, "tolist") else value
    while isinstance(plain, list) and len(plain) == 1:
        plain = plain[0]
    return float(plain)


def number_or_none(value: Any) -> Optional[float]:
    """The number, or None if it is none: a text, a picture, an array, a value that a graph has not computed yet."""
    if type(value) is float:
        return value
    if value is None or isinstance(value, (str, bytes, dict)):
        return None
    try:
        return as_number(value) if _elements(value) == 1 else None
    except Exception:  # noqa: BLE001  # the value belongs to a library, and may raise anything
        return None


def _elements(value: Any) -> int:
    """So that a picture is not converted into a list first."""
    count = getattr(value, "numel", None)
    if callable(count):
        return int(count())
    size = getattr(value, "size", 1)
    return 1 if callable(size) else int(size)
