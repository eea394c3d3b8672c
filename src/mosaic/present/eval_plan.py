"""What an evaluation script is going to play, as facts to show before it starts."""

from typing import TYPE_CHECKING

from mosaic.present.lane_cards import describe_operator
from mosaic.present.scores import count
from mosaic.present.text import printable

if TYPE_CHECKING:
    from mosaic_sdk.operators.script import EvalScript

MOST_SEEDS = 6
MOST_OPERATORS = 12


def facts_of(script: "EvalScript") -> list[tuple[str, str]]:
    """Pairs such as `("Seeds", "0, 1, 2 … 19 (20)")`."""
    copies = f", {script.parallel} copies of each" if script.parallel > 1 else ""
    rotations = ", and every rotation" if script.rotate else ""
    facts = [
        ("Name", printable(script.name)),
        ("Environment", printable(str(script.env["id"]))),
        ("Operators", _operators(script)),
        ("Lanes", f"{lane_names(script)}{rotations}{copies}"),
        ("Seeds", _seeds(script.seeds)),
        ("Episodes", _episodes(script)),
        ("Longest episode", count(script.max_steps, "step") if script.max_steps else ""),
        ("Pace", f"{script.pace:g} steps/s" if script.pace else ""),
        ("Clips", f"{count(script.video, 'episode')} of each lane" if script.video else ""),
        ("Demonstrations of", ", ".join(map(printable, script.record))),
    ]
    return [(name, value) for name, value in facts if value]


def lane_names(script: "EvalScript") -> str:
    names = [str(lane.get("name") or lane.get("operator") or "lane") for lane in script.lanes or []]
    return ", ".join(printable(name) for name in names or script.operators)


def people_of(script: "EvalScript") -> list[str]:
    """The operators that are people: somebody has to answer for them."""
    return [name for name, spec in script.operators.items() if spec["kind"] == "human"]


def _operators(script: "EvalScript") -> str:
    lines = [f"{printable(name)}: {describe_operator(spec)}" for name, spec in script.operators.items()]
    left = len(lines) - MOST_OPERATORS
    return "\n".join([*lines[:MOST_OPERATORS], *([f"… and {left} more"] if left > 0 else [])])


def _seeds(seeds: list[int]) -> str:
    if len(seeds) <= MOST_SEEDS:
        return ", ".join(map(str, seeds))
    return f"{', '.join(map(str, seeds[:3]))} … {seeds[-1]} ({len(seeds):,})"


def _episodes(script: "EvalScript") -> str:
    lanes = len(script.lanes or script.operators)
    each = count(len(script.seeds), "episode")
    if script.rotate or lanes == 1:
        return f"{each} in each lane" if script.rotate else each
    return f"{lanes * len(script.seeds):,}, {each} in each of {lanes} lanes"
