"""The settings of several runs side by side, and which of them differ."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mosaic.present.text import printable

ABSENT = "-"


@dataclass(frozen=True)
class SettingRow:
    key: str
    values: tuple[str, ...]  # one per run; "-" where a run does not have the setting
    differs: bool


def compare_settings(settings: Sequence[Mapping[str, Any] | None]) -> list[SettingRow]:
    """A row per setting, by key. None: the settings of that run are unknown, so it differs from no other."""
    keys = sorted({key for each in settings if each for key in each})
    return [_row(key, settings) for key in keys]


def as_tsv(rows: Sequence[SettingRow], names: Sequence[str], first: str = "setting") -> str:
    lines = [(first, *names), *((row.key, *row.values) for row in rows)]
    return "".join("\t".join(printable(cell) for cell in line) + "\n" for line in lines)


def _row(key: str, settings: Sequence[Mapping[str, Any] | None]) -> SettingRow:
    values = tuple(setting_text(each[key]) if each and key in each else ABSENT for each in settings)
    known = {value for value, each in zip(values, settings, strict=True) if each is not None}
    return SettingRow(key, values, len(known) > 1)


def setting_text(value: Any) -> str:
    """A value in a table."""
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e15:
        return str(int(value))  # 1e6 and 1000000 are the same number of steps
    return printable(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))
