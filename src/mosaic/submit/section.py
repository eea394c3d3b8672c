"""One object inside a config, read field by field; every complaint names the field by its whole path."""

import difflib
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any

from mosaic.model.errors import BadConfig

_TYPES = {dict: "an object", list: "a list", str: "a text", bool: "true or false", int: "a whole number"}
MAX_SECONDS = 10 * 365 * 86_400.0  # beyond it a limit is a mistake, and timers overflow


class Section:
    """An object and the path that leads to it. A missing or null field is its default."""

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
            raise self.bad(name, f"it must lie between {low} and {high}, not be {_told(number)}.")
        return number

    def number(self, name: str, high: float) -> float | None:
        """A number from 0 on, fractions allowed; None when it is not given."""
        value = self.values.get(name)
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise self.bad(name, f"it must be a number, not {_told(value)}.")
        if not 0 <= value <= high:  # compared, never converted; see seconds()
            raise self.bad(name, f"it must be between 0 and {high:g}, not {_told(value)}.")
        return float(value)

    def seconds(self, name: str, zero_allowed: bool = False) -> float | None:
        """A duration; None when it is not given."""
        value = self.values.get(name)
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise self.bad(name, f"it must be a number of seconds, not {_told(value)}.")
        if zero_allowed and value == 0:
            return 0.0
        # Compared, never converted: JSON's whole numbers may be too long for a float. NaN fails it too.
        if not 0 < value <= MAX_SECONDS:
            least = "0 (never), or more than 0" if zero_allowed else "more than 0"
            raise self.bad(name, f"it must be {least} and at most {MAX_SECONDS:.0f} seconds, not {_told(value)}.")
        return float(value)

    def texts(self, name: str) -> tuple[str, ...]:
        values = self._typed(name, list, [])
        for number, value in enumerate(values):
            if not isinstance(value, str):
                raise self.bad(f"{name}[{number}]", f"it must be a text, not {_told(value)}.")
        return tuple(values)

    def refuse_unknown(self, known: Iterable[str], elsewhere: Mapping[str, str] = MappingProxyType({})) -> None:
        """Every field must be known: nobody would read another one. `elsewhere`: paths of fields by their name."""
        names = sorted(known)
        for name in self.values:
            if name not in names:
                moved = f"Did you mean '{elsewhere[name]}'?" if name in elsewhere else ""
                hint = _nearest(name, names) or moved or f"Known: {', '.join(names)}."
                raise self.bad(name, f"there is no such field. {hint}")

    def _typed(self, name: str, kind: type, default: Any) -> Any:
        value = self.values.get(name)
        if value is None:
            return default
        if kind is int and isinstance(value, float) and value.is_integer():
            return int(value)  # 2.0 and 1e3 are whole numbers to JSON
        # A bool is an int to Python, not to the person who wrote the config.
        if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
            raise self.bad(name, f"it must be {_TYPES[kind]}, not {_told(value)}.")
        return value


def _told(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 40 else f"{text[:37]}…"


def _nearest(name: str, known: list[str]) -> str:
    near = difflib.get_close_matches(name.lower(), known, n=1, cutoff=0.65)
    return f"Did you mean '{near[0]}'?" if near else ""
