"""Custom scripts: trainings of several phases, each a shell script with a description at its top.

#!/usr/bin/env bash
# @description: what it does, in one line
# @env_family: babyai
# @phases: 2
# @total_timesteps: 50000

mosaic run --script babyai_quick_test --env-of cleanrl --set total_timesteps=20000
"""

import re
from dataclasses import dataclass
from pathlib import Path

from mosaic_sdk.config import ConfigError

FOLDER = Path(__file__).parent
HEADER_LINES = 30
_TAG = re.compile(r"#\s*@(\w+)\s*:?\s*(.*)")
_ENVIRONMENT = re.compile(r'^(?:PHASE|LEVEL)\d+_ENV="?([^"\s]+)"?', re.MULTILINE)


@dataclass(frozen=True)
class CustomScript:
    """The description of a script, from the tags at its top."""

    path: Path
    description: str
    phases: int
    total_timesteps: int
    env_family: str = ""
    environments: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        return self.path.stem


def shipped() -> list[CustomScript]:
    return [read_script(path) for path in sorted(FOLDER.glob("*.sh"))]


def read_script(path: Path) -> CustomScript:
    """The description of the script at `path`; ConfigError if a required tag is missing or not a valid number."""
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise ConfigError(f"{path} cannot be read: {error.strerror}.") from None
    lines = text.splitlines()[:HEADER_LINES]
    tags = {found[1]: found[2].strip() for found in map(_TAG.match, lines) if found}
    return CustomScript(
        path,
        _tag(tags, "description", path),
        _number(tags, "phases", path),
        _number(tags, "total_timesteps", path),
        tags.get("env_family", ""),
        tuple(_ENVIRONMENT.findall(text)),
    )


def _tag(tags: dict[str, str], name: str, path: Path) -> str:
    if not tags.get(name):
        raise ConfigError(f"{path} has no @{name} in its first {HEADER_LINES} lines. Add: # @{name}: …")
    return tags[name]


def _number(tags: dict[str, str], name: str, path: Path) -> int:
    text = _tag(tags, name, path).replace("_", "").replace(",", "")
    if not text.isdigit() or int(text) < 1:
        raise ConfigError(f"{path}: @{name} must be an integer of at least 1, not '{text}'.")
    return int(text)
