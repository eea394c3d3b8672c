"""The seeds of an evaluation: one for each episode, the same for every lane.

0-19                              a range, both ends included
[1, 5, 9]                         a list
{first: 1000, count: 20}          consecutive ones
{procedural: 7, count: 20}        different ones, drawn from a generator with this seed
{fixed: 7, count: 5}              the same one again and again
"""

import random
import re
from typing import Any, Dict, List, Mapping, Optional

from mosaic_sdk.config import ConfigError
from mosaic_sdk.evaluation import FIRST_SEED
from mosaic_sdk.operators.document import refuse_unknown
from mosaic_sdk.values import checked, shown

LARGEST_SEED = 2**31 - 1
MOST_EPISODES = 100_000
DEFAULT_COUNT = 10
_RANGE = re.compile(r"\s*(\d+)\s*-\s*(\d+)\s*\Z")
_LONGEST_PART = 40  # characters; Python refuses to convert numbers of thousands of digits
_KINDS = ("first", "procedural", "fixed")
_SEED = {"minimum": 0, "maximum": LARGEST_SEED}
_COUNT = {"minimum": 1, "maximum": MOST_EPISODES}


def parse_seeds(value: Any, episodes: Any = None) -> List[int]:
    """The seeds of a script; `episodes` is their number, where the seeds themselves do not say it."""
    count = None if episodes is None else checked(episodes, ["integer"], _COUNT, "episodes")
    if value is None:
        value = {"first": FIRST_SEED}
    seeds = _from_object(value, count) if isinstance(value, Mapping) else _listed(value)
    if count is not None and len(seeds) != count:
        raise ConfigError(f"episodes: is {count}, but seeds has {len(seeds)}. Remove one of the two.")
    if seeds[-1] > LARGEST_SEED:
        raise ConfigError(f"seeds: must be at most {LARGEST_SEED}; the last one would be {seeds[-1]}.")
    return seeds


def _listed(value: Any) -> List[int]:
    if isinstance(value, str):
        return _range(value)
    given = value if isinstance(value, (list, tuple)) else [value]
    if not given:
        raise ConfigError("seeds: must have at least one seed.")
    if len(given) > MOST_EPISODES:
        raise ConfigError(f"seeds: must be at most {MOST_EPISODES} seeds, not {len(given)}.")
    path = "seeds" if not isinstance(value, (list, tuple)) else "seeds[{}]"
    return [checked(one, ["integer"], _SEED, path.format(place)) for place, one in enumerate(given)]


def _range(text: str) -> List[int]:
    """Ranges and numbers between commas: "0-19", "3", "1,5,9", "0-4,100-104"."""
    seeds: List[int] = []
    for part in text.split(","):
        if len(part.strip()) > _LONGEST_PART:
            raise ConfigError(f"seeds: must be at most {LARGEST_SEED}, not {shown(part.strip())}.")
        match = _RANGE.match(part)
        first, last = (int(match[1]), int(match[2])) if match else (_number(part, text), _number(part, text))
        if last < first:
            raise ConfigError(f"seeds: {shown(part.strip())} ends before it begins.")
        if last > LARGEST_SEED:
            raise ConfigError(f"seeds: must be at most {LARGEST_SEED}, not {last}.")
        if len(seeds) + last - first >= MOST_EPISODES:
            raise ConfigError(f"seeds: must be at most {MOST_EPISODES} seeds; {shown(text)} has more.")
        seeds.extend(range(first, last + 1))
    return seeds


def _number(part: str, text: str) -> int:
    if not part.strip().isdecimal():
        raise ConfigError(f"seeds: must look like 0-19 or 1,5,9; {shown(text)} does not.")
    return int(part)


def _from_object(value: Mapping[str, Any], episodes: Optional[int]) -> List[int]:
    refuse_unknown(value, (*_KINDS, "count"), "seeds")
    kinds = [kind for kind in _KINDS if value.get(kind) is not None]
    if len(kinds) != 1:
        raise ConfigError(f"seeds: must have one of {', '.join(_KINDS)}, not {len(kinds) or 'none'}.")
    first = checked(value[kinds[0]], ["integer"], _SEED, f"seeds.{kinds[0]}")
    given = value.get("count")
    count = checked(given, ["integer"], _COUNT, "seeds.count") if given is not None else episodes or DEFAULT_COUNT
    make: Dict[str, Any] = {
        "first": lambda: list(range(first, first + count)),
        "fixed": lambda: [first] * count,
        "procedural": lambda: _drawn(first, count),
    }
    seeds: List[int] = make[kinds[0]]()
    return seeds


def _drawn(first: int, count: int) -> List[int]:
    """Different seeds. From bits, not by `sample`: a script must mean the same seeds in every version of Python."""
    rng = random.Random(f"procedural:{first}")
    found: Dict[int, None] = {}
    while len(found) < count:
        found[rng.getrandbits(31)] = None
    return list(found)
