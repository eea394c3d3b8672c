"""The stages of a curriculum and their conditions. Standard library only, so that checking them does not need torch.

    [{"env_id": "BabyAI-GoToRedBallNoDists-v0", "steps": 200000},
     {"env_id": "BabyAI-GoToRedBall-v0", "condition": "episodes>=500|episode_return>=0.9"},
     {"env_id": "BabyAI-GoToObj-v0"}]

A stage ends when any of its conditions holds; the default is steps>=100000. The last stage lasts until the end of the
training. All counts start at 0 in each stage. `episode_return` is the mean of the stage's last 100 episodes and is
ignored until there are 100: among parallel environments, the ones that succeed quickly finish their episodes first.
"""

import difflib
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mosaic_sdk.config import ConfigError

Document = Sequence[Mapping[str, Any]]

METRICS = ("steps", "episodes", "episode_return")
DEFAULT_CONDITION = "steps>=100000"
RETURN_EPISODES = 100

BABYAI_GOTO_CURRICULUM: Document = (
    {"env_id": "BabyAI-GoToRedBallNoDists-v0", "steps": 200_000},
    {"env_id": "BabyAI-GoToRedBall-v0", "steps": 200_000},
    {"env_id": "BabyAI-GoToObj-v0", "steps": 200_000},
    {"env_id": "BabyAI-GoToLocal-v0"},
)
BABYAI_DOORKEY_CURRICULUM: Document = (
    {"env_id": "MiniGrid-DoorKey-5x5-v0", "steps": 100_000},
    {"env_id": "MiniGrid-DoorKey-6x6-v0", "steps": 150_000},
    {"env_id": "MiniGrid-DoorKey-8x8-v0", "steps": 200_000},
    {"env_id": "MiniGrid-DoorKey-16x16-v0"},
)
PRESETS = {"babyai_goto": BABYAI_GOTO_CURRICULUM, "babyai_doorkey": BABYAI_DOORKEY_CURRICULUM}

_NUMBER = r"[0-9]+(\.[0-9]+)?([eE][-+]?[0-9]+)?"
_CLAUSE = rf"\s*((steps|episodes)\s*>=\s*[0-9]+|episode_return\s*>=\s*[-+]?{_NUMBER})\s*"
_KEYS = ("env_id", *METRICS, "condition")

# For the worker's schema: an invalid condition is rejected at submit.
SCHEDULE_SCHEMA: Mapping[str, Any] = {
    "type": ["array", "string", "null"],
    "default": None,
    "description": f"Stages of a curriculum, or the name of a preset: {', '.join(PRESETS)}.",
    "pattern": f"^({'|'.join(PRESETS)})$",
    "examples": list(PRESETS),
    "minItems": 1,
    "maxItems": 1000,
    "items": {
        "type": "object",
        "properties": {
            "env_id": {"type": "string", "minLength": 1},
            "steps": {"type": "integer", "minimum": 1},
            "episodes": {"type": "integer", "minimum": 1},
            "episode_return": {"type": "number"},
            "condition": {
                "type": "string",
                "pattern": rf"^{_CLAUSE}(\|{_CLAUSE})*$",
                "examples": ["steps>=100000", "episodes>=500|episode_return>=0.9"],
            },
        },
        "required": ["env_id"],
        "additionalProperties": False,
    },
}


@dataclass
class Progress:
    """Steps, episodes and returns of the current stage."""

    steps: int
    episodes: int
    returns: Sequence[float]

    def value(self, metric: str) -> float:
        if metric == "episode_return":
            latest = list(self.returns)[-RETURN_EPISODES:]
            return sum(latest) / len(latest) if len(latest) >= RETURN_EPISODES else -math.inf
        return self.steps if metric == "steps" else self.episodes


@dataclass(frozen=True)
class Condition:
    """Clauses of which at least one must hold."""

    clauses: tuple[tuple[str, float], ...]

    def holds(self, progress: Progress) -> bool:
        return any(progress.value(metric) >= bound for metric, bound in self.clauses)

    def __str__(self) -> str:
        return "|".join(f"{metric}>={bound:.15g}" for metric, bound in self.clauses)


@dataclass(frozen=True)
class Stage:
    env_id: str
    condition: Condition

    def to_dict(self) -> dict[str, str]:
        return {"env_id": self.env_id, "condition": str(self.condition)}


def parse_condition(text: str) -> Condition:
    """Parse `steps>=N`, `episodes>=N`, `episode_return>=X`, or several joined by |; ConfigError otherwise."""
    return Condition(tuple(_clause(part, text) for part in text.split("|")))


def read_schedule(document: Any) -> tuple[Stage, ...]:
    """The stages of `curriculum_schedule`, a list or the name of a preset; ConfigError names the invalid part."""
    if isinstance(document, str):
        document = _preset(document)
    if not isinstance(document, Sequence) or not document:
        raise ConfigError(
            'curriculum_schedule: must be a list of stages: [{"env_id": "MiniGrid-Empty-5x5-v0", "steps": 50000}].'
        )
    return tuple(_stage(part, f"curriculum_schedule[{number}]") for number, part in enumerate(document))


def _preset(name: str) -> Document:
    if name not in PRESETS:
        raise ConfigError(f"curriculum_schedule: there is no preset '{name}'. Available: {', '.join(PRESETS)}.")
    return PRESETS[name]


def _stage(part: Any, field: str) -> Stage:
    if not isinstance(part, Mapping):
        raise ConfigError(
            f'{field}: a stage is an object such as {{"env_id": "MiniGrid-Empty-5x5-v0", "steps": 50000}}.'
        )
    for key in part:
        if key not in _KEYS:
            near = difflib.get_close_matches(str(key), _KEYS, n=1)
            hint = f"Did you mean '{near[0]}'?" if near else f"Its keys are: {', '.join(_KEYS)}."
            raise ConfigError(f"{field}.{key}: a stage has no such key. {hint}")
    env_id = part.get("env_id")
    if not isinstance(env_id, str) or not env_id:
        raise ConfigError(f"{field}.env_id: a stage needs the ID of an environment.")
    return Stage(env_id, _condition(part, field))


def _condition(part: Mapping[str, Any], field: str) -> Condition:
    texts = [f"{metric}>={_bound(part[metric], metric, field)}" for metric in METRICS if part.get(metric) is not None]
    text = part.get("condition")
    if text is not None:
        if not isinstance(text, str):
            raise ConfigError(f"{field}.condition: must be a string such as 'steps>=100000', not {text!r}.")
        texts.append(text)
    try:
        return parse_condition("|".join(texts) or DEFAULT_CONDITION)
    except ConfigError as error:
        raise ConfigError(f"{field}.condition: {error}") from None


def _bound(value: Any, metric: str, field: str) -> float:
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)
    if metric == "episode_return":
        if not is_number:
            raise ConfigError(f"{field}.{metric}: must be a number, not {value!r}.")
        return float(value)
    if not is_number or value != int(value) or value < 1:
        raise ConfigError(f"{field}.{metric}: must be an integer of at least 1, not {value!r}.")
    return int(value)


def _clause(part: str, whole: str) -> tuple[str, float]:
    if not re.fullmatch(_CLAUSE, part):
        raise ConfigError(
            f"'{part.strip() or whole}' is not a valid condition. Write steps>=N, episodes>=N or episode_return>=X, "
            "several joined by |."
        )
    metric, bound = part.split(">=")
    return metric.strip(), float(bound)
