"""Prompt templates: a file with a [system] part, sent once, and a [turn] part, sent with every observation.

Placeholders are {env_id} {agent_id} {mission} {actions} {answer} {step} {reward} {note} {observation}
{legal_actions}. A line is left out when one of its placeholders has no value: "Goal: {mission}" disappears in an
environment without a mission. What the environment says is inserted as it is, once: braces in it mean nothing.
"""

import difflib
import os
import re
from collections.abc import Mapping
from importlib import resources
from typing import NamedTuple

from mosaic_sdk.config import ConfigError

from llm_worker.config import AUTO, LlmConfig

PLACEHOLDERS = (
    "env_id",
    "agent_id",
    "mission",
    "actions",
    "answer",
    "step",
    "reward",
    "note",
    "observation",
    "legal_actions",
)
_PLACEHOLDER = re.compile(r"\{([A-Za-z_]+)\}")
_PARTS = re.compile(r"^\[(system|turn)\]\s*$", re.MULTILINE)
_LARGEST_FILE = 256 * 1024
# The first pattern that an environment's id contains decides.
_FAMILIES = (
    (r"multigrid", "multigrid"),
    (r"minigrid|babyai", "minigrid"),
    (r"frozenlake|cliffwalking|taxi-v|blackjack", "toy_text"),
    (r"^ale/|noframeskip|-ram-v", "atari"),
    (r"connect_four|tictactoe|chess|\bgo_v|leduc|texas|hanabi|rps_|gin_rummy|checkers|open_spiel", "board_games"),
)


class Template(NamedTuple):
    name: str
    system: str
    turn: str

    def system_text(self, values: Mapping[str, str]) -> str:
        return fill(self.system, values)

    def turn_text(self, values: Mapping[str, str]) -> str:
        return fill(self.turn, values)


def choose_template(config: LlmConfig, env_id: str) -> Template:
    """The user's own template, that of the chosen family, or that of the environment's."""
    if config.prompt_file:
        return _parse("prompt_file", _read(os.path.expanduser(config.prompt_file)))
    family = family_of(env_id) if config.family == AUTO else config.family
    return _parse(family, (resources.files("llm_worker") / "prompts" / f"{family}.txt").read_text("utf-8"))


def family_of(env_id: str) -> str:
    return next((family for pattern, family in _FAMILIES if re.search(pattern, env_id, re.IGNORECASE)), "generic")


def fill(text: str, values: Mapping[str, str]) -> str:
    """`text` with its placeholders replaced, in one pass, and without the lines that have nothing to say."""
    lines = [line for line in text.split("\n") if all(values.get(name) for name in _PLACEHOLDER.findall(line))]
    return "\n".join(_PLACEHOLDER.sub(lambda found: values[found[1]], line) for line in lines).strip()


def _read(path: str) -> str:
    try:
        with open(path, "rb") as file:
            data = file.read(_LARGEST_FILE + 1)
    except OSError as error:
        raise ConfigError(f"prompt_file: cannot read {path}: {error.strerror}.") from None
    if len(data) > _LARGEST_FILE:
        raise ConfigError(f"prompt_file: {path} is larger than {_LARGEST_FILE // 1024} KiB.")
    return data.decode("utf-8", "replace")


def _parse(name: str, text: str) -> Template:
    pieces = _PARTS.split(text)
    parts = dict(zip(pieces[1::2], pieces[2::2], strict=True))
    if set(parts) != {"system", "turn"}:
        raise ConfigError(f"{name}: needs a line [system] and a line [turn], each followed by its text.")
    for found in _PLACEHOLDER.findall(text):
        if found not in PLACEHOLDERS:
            near = difflib.get_close_matches(found, PLACEHOLDERS, n=1)
            advice = f"Did you mean {{{near[0]}}}?" if near else f"Choose from: {', '.join(PLACEHOLDERS)}."
            raise ConfigError(f"{name}: there is no placeholder {{{found}}}. {advice}")
    return Template(name, parts["system"].strip(), parts["turn"].strip())
