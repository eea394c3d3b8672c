"""The settings in force of a run: which were given, which are defaults, and how their keys and values are written."""

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from mosaic.present.text import printable

if TYPE_CHECKING:
    from mosaic.client import Run


@dataclass(frozen=True)
class SettingRow:
    key: str  # as it is typed: `learning_rate`
    value: str
    is_given: bool  # in the config of the run; otherwise a default
    path: str  # the whole key: `extras.algo_params.learning_rate`


def settings_rows(run: "Run") -> list[SettingRow]:
    """Every setting; empty for a run of an older version, which recorded none."""
    values = run.settings or {}
    given = _given(run.config or {})
    # Without a schema a key cannot be shortened, because nothing would put it back in its place.
    short = {key: key for key in values} if run.settings_note else _short_keys(values)
    return [
        SettingRow(printable(short[key]), _format(value), bool(run.origin) or key in given, key)
        for key, value in values.items()
    ]


def _short_keys(keys: Iterable[str]) -> dict[str, str]:
    """`learning_rate` for `extras.algo_params.learning_rate`; the whole key where short keys would be ambiguous."""
    short = {key: key.removeprefix("extras.").removeprefix("algo_params.") for key in keys}
    counts = Counter(short.values())
    return {key: name if counts[name] == 1 else key for key, name in short.items()}


def _given(config: Mapping[str, Any]) -> set[str]:
    """The dotted keys that the config sets, at every level."""
    metadata = config.get("metadata", {})
    return set(_keys(metadata.get("worker", {}).get("config") or {}, ""))


def _keys(settings: Mapping[str, Any], path: str) -> Iterator[str]:
    for name, value in settings.items():
        yield f"{path}{name}"
        if isinstance(value, Mapping):
            yield from _keys(value, f"{path}{name}.")


def _format(value: object) -> str:
    return printable(value if isinstance(value, str) and value else json.dumps(value, default=str))
