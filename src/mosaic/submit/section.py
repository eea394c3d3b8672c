"""One object inside a config, read field by field. Every error names the field by its full path."""

import difflib
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any

from mosaic.model.errors import BadConfig

_TYPES = {dict: "an object", list: "a list", str: "a string", bool: "true or false", int: "an integer"}
MAX_SECONDS = 10 * 365 * 86_400.0  # ten years: a longer limit is a mistake, and timers would overflow


class Section:
    """An object in a config and its path. A missing or null field has its default."""

    def __init__(self, values: dict[str, Any], path: str) -> None:
        self.values = values
        self.path = path

    def of(self, name: str) -> str:
        return f"{self.path}.{name}" if self.path else name

    def bad(self, name: str, why: str) -> BadConfig:
        return BadConfig(self.of(name), why)

    def section(self, name: str) -> "Section":
        return Section(self._typed(name, dict, {}), self.of(name))

    def text(self, name: str) -> str:
        return str(self._typed(name, str, ""))

    def flag(self, name: str) -> bool:
        return bool(self._typed(name, bool, False))

    def whole(self, name: str, low: int, high: int) -> int:
        number = int(self._typed(name, int, low))
        if not low <= number <= high:
            raise self.bad(name, f"must be between {low} and {high}, not {_shown(number)}.")
        return number

    def number(self, name: str, high: float) -> float | None:
        """A number, 0 or more; None if it is missing."""
        value = self.values.get(name)
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise self.bad(name, f"must be a number, not {_shown(value)}.")
        if not 0 <= value <= high:  # compared, not converted; see seconds()
            raise self.bad(name, f"must be between 0 and {high:g}, not {_shown(value)}.")
        return float(value)

    def seconds(self, name: str, zero_allowed: bool = False) -> float | None:
        """A duration; None if it is missing."""
        value = self.values.get(name)
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise self.bad(name, f"must be a number of seconds, not {_shown(value)}.")
        if zero_allowed and value == 0:
            return 0.0
        # Compared, not converted: an integer in JSON may be too large for a float. NaN fails the comparison too.
        if not 0 < value <= MAX_SECONDS:
            least = "0 (never), or more than 0" if zero_allowed else "more than 0"
            raise self.bad(name, f"must be {least} and at most {MAX_SECONDS:.0f} seconds, not {_shown(value)}.")
        return float(value)

    def texts(self, name: str) -> tuple[str, ...]:
        values = self._typed(name, list, [])
        for number, value in enumerate(values):
            if not isinstance(value, str):
                raise self.bad(f"{name}[{number}]", f"must be a string, not {_shown(value)}.")
        return tuple(values)

    def refuse_unknown(self, known: Iterable[str], elsewhere: Mapping[str, str] = MappingProxyType({})) -> None:
        """BadConfig for the first unknown field: it would have no effect. `elsewhere`: paths of all fields by name."""
        names = sorted(known)
        for name in self.values:
            if name not in names:
                moved = f"Did you mean '{elsewhere[name]}'?" if name in elsewhere else ""
                hint = _nearest(name, names) or moved or f"Valid fields: {', '.join(names)}."
                raise self.bad(name, f"unknown field. {hint}")

    def _typed(self, name: str, kind: type, default: Any) -> Any:
        value = self.values.get(name)
        if value is None:
            return default
        if kind is int and isinstance(value, float) and value.is_integer():
            return int(value)  # in JSON, 2.0 and 1e3 are integers
        # In Python a bool is an int; in a config it is not.
        if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
            raise self.bad(name, f"must be {_TYPES[kind]}, not {_shown(value)}.")
        return value


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 40 else f"{text[:37]}…"


def _nearest(name: str, known: list[str]) -> str:
    near = difflib.get_close_matches(name.lower(), known, n=1, cutoff=0.65)
    return f"Did you mean '{near[0]}'?" if near else ""
