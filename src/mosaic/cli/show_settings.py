"""The settings of a run, as `mosaic show` prints them: those from its config, then the defaults in one paragraph."""

import json
import shutil
import textwrap
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from mosaic.cli.terminal_text import paint, printable

if TYPE_CHECKING:
    from mosaic.client import Run

LONGEST_VALUE = 60
WIDEST = 120


def settings_section(run: "Run") -> str:
    """The settings as text; empty for a run of an older version, which recorded none."""
    values = run.settings or {}
    given = [key for key in values if key in _given(run.config or {})]
    # Without a schema a key cannot be shortened, because nothing would put it back in its place.
    short = {key: key for key in values} if run.settings_note else _short_keys(values)
    width = max((len(short[key]) for key in given), default=0)
    lines = [f"{printable(short[key]):<{width}}  {_format(values[key])}" for key in given]
    defaults = [f"{printable(short[key])}={_format(values[key])}" for key in values if key not in given]
    defaults.sort()
    if defaults:
        columns = min(shutil.get_terminal_size().columns, WIDEST)
        lines += [paint(line, "dim") for line in _wrapped(f"defaults: {'  '.join(defaults)}", columns)]
    return "\n".join([paint("settings", "bold"), *lines]) if lines else ""


def unchecked(run: "Run") -> str:
    """`unchecked: the worker publishes no schema`; empty if the settings were checked."""
    return f"unchecked: {printable(run.settings_note)}" if run.settings_note else ""


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
    text = value if isinstance(value, str) and value else json.dumps(value, default=str)
    text = printable(text)
    return text if len(text) <= LONGEST_VALUE else f"{text[: LONGEST_VALUE - 1]}…"


def _wrapped(text: str, columns: int) -> list[str]:
    return textwrap.wrap(text, max(columns, 40), break_long_words=False, break_on_hyphens=False, subsequent_indent="  ")
