"""What a run trains or evaluates, read from its settings: the columns of a listing that differ most between runs."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

# The names that workers use, the usual one first. Dots nest, as in the settings in force.
ALGO_NAMES = ("algo", "algorithm", "extras.algo")
ENV_NAMES = ("env_id", "env", "task", "env.id", "script.env", "script.env.id", "extras.env_id")
SEED_NAMES = ("seed", "extras.seed")
LONGEST = 200  # characters of a text in a listing


@dataclass(frozen=True)
class Task:
    """Empty, and None for the seed, if the settings do not say."""

    algo: str = ""
    env_id: str = ""
    seed: int | None = None

    @classmethod
    def of(cls, settings: Mapping[str, Any]) -> "Task":
        """From settings under dotted keys."""
        return cls(_text(settings, ALGO_NAMES), _text(settings, ENV_NAMES), _seed(settings))


def _text(settings: Mapping[str, Any], names: tuple[str, ...]) -> str:
    texts = (settings.get(name) for name in names)
    found = next((text for text in texts if isinstance(text, str) and text), "")
    # JSON may contain half a surrogate pair, which neither SQLite nor the wire can encode.
    return found[:LONGEST].encode(errors="replace").decode()


def _seed(settings: Mapping[str, Any]) -> int | None:
    values = (settings.get(name) for name in SEED_NAMES)
    # A bool is an int in Python; a number of more than 64 bits fits neither SQLite nor the wire.
    whole = (value for value in values if isinstance(value, int) and not isinstance(value, bool))
    return next((value for value in whole if -(2**63) <= value < 2**63), None)
