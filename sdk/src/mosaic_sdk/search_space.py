"""The space of a hyper-parameter search: how one setting may vary, as users write it.

    log:1e-5:1e-2        a number, uniform in its logarithm
    float:0:0.1          a number; float:0:1:0.05 in steps
    int:1:8              an integer; int:16:256:16 in steps
    logint:16:1024       an integer, uniform in its logarithm
    choice:64,128,256    one of these values

`mosaic search` checks it before anything is submitted, and the search worker passes it to Optuna.
"""

import json
import math
from typing import Any, List, NamedTuple, Optional, Tuple

KINDS = ("log", "float", "int", "logint", "choice")
HOW = "Write log:LOW:HIGH, float:LOW:HIGH[:STEP], int:LOW:HIGH[:STEP], logint:LOW:HIGH or choice:A,B,…"


class Dimension(NamedTuple):
    """One setting of a space: a range, or choices."""

    kind: str
    low: float = 0.0
    high: float = 0.0
    step: Optional[float] = None
    choices: Tuple[Any, ...] = ()

    @property
    def is_integer(self) -> bool:
        return self.kind in ("int", "logint")

    @property
    def ends(self) -> List[Any]:
        """The values that decide whether a worker accepts all of them: the choices, or both ends of the range."""
        if self.kind == "choice":
            return list(self.choices)
        return [int(self.low), int(self.high)] if self.is_integer else [self.low, self.high]


def parse_dimension(name: str, text: Any) -> Dimension:
    """The dimension that `text` describes; ValueError, in one sentence, if it describes none."""
    kind, _, rest = str(text).partition(":")
    if kind not in KINDS:
        raise ValueError(f"{name}: '{text}' is not a valid range. {HOW}")
    if kind == "choice":
        return Dimension(kind, choices=tuple(_choices(name, rest)))
    parts = rest.split(":")
    if not 2 <= len(parts) <= (3 if kind in ("float", "int") else 2):
        raise ValueError(f"{name}: '{text}' needs a lowest and a highest value. {HOW}")
    low, high, *steps = (_number(name, part, kind in ("int", "logint")) for part in parts)
    if not low < high:
        raise ValueError(
            f"{name}: the lowest value must be less than the highest; '{text}' has {parts[0]}, {parts[1]}."
        )
    if kind.startswith("log") and low <= 0:
        raise ValueError(f"{name}: a logarithmic range starts above 0; '{text}' starts at {parts[0]}.")
    if steps and not 0 < steps[0] <= high - low:
        raise ValueError(f"{name}: the step must be more than 0 and fit into the range; '{text}' has {parts[2]}.")
    return Dimension(kind, low, high, steps[0] if steps else None)


def _number(name: str, text: str, is_integer: bool) -> float:
    try:
        number = float(text)
    except ValueError:
        raise ValueError(f"{name}: '{text}' is not a number. {HOW}") from None
    if not math.isfinite(number) or (is_integer and not number.is_integer()):
        raise ValueError(f"{name}: '{text}' is not {'an integer' if is_integer else 'a finite number'}.")
    return number


def _choices(name: str, text: str) -> List[Any]:
    found = [_value(part.strip()) for part in text.split(",") if part.strip()]
    if len(found) < 2:
        raise ValueError(
            f"{name}: 'choice:{text}' has {len(found)} value{'' if len(found) == 1 else 's'}; give at least 2."
        )
    if len({json.dumps(value) for value in found}) < len(found):
        raise ValueError(f"{name}: 'choice:{text}' has a value twice.")
    return found


def _value(text: str) -> Any:
    """A number, true, false or null as in JSON; anything else is a string."""
    try:
        value = json.loads(text)
    except ValueError:
        return text
    return value if not isinstance(value, (dict, list)) else text
