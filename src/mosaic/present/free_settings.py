"""Settings that no schema describes, typed as lines of key=value."""

from typing import Any

from mosaic.catalog.typed_settings import split_setting, type_value
from mosaic.model.errors import BadConfig


def parse_lines(text: str) -> tuple[list[tuple[str, Any]], str]:
    """The settings, one per line, and the first line that is none, as a sentence."""
    found: list[tuple[str, Any]] = []
    problem = ""
    for line in filter(None, map(str.strip, text.splitlines())):
        try:
            found.append(split_setting(line))
        except BadConfig as error:
            problem = problem or f"{error}."
    return found, problem


def line_of(key: str, value: Any) -> str:
    return f"{key}={type_value(value)}"
