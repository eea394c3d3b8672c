"""The teams of a multi-agent evaluation: lanes with their copies, which share the seeds among them."""

import re
from typing import Any, Dict, List, Sequence, Set, Tuple

from mosaic_sdk.results.games import Row

_COPY = re.compile(r"\.[0-9]+$")  # lane.1, lane.2 …


def with_teams(rows: Sequence[Row]) -> List[Dict[str, Any]]:
    """The rows with `team`: the name of their lane, without the number if all copies have the same operators."""
    names = _team_names(rows)
    return [{**row, "team": names[row["lane"]]} for row in rows]


def _team_names(rows: Sequence[Row]) -> Dict[str, str]:
    seats: Dict[str, Set[Tuple[str, str]]] = {}
    for row in rows:
        seats.setdefault(row["lane"], set()).add((row["agent_id"], row["operator"]))
    copies: Dict[str, List[str]] = {}
    for lane in seats:
        copies.setdefault(_COPY.sub("", lane), []).append(lane)
    return {
        lane: base if base not in seats and all(seats[lane] == seats[other] for other in lanes) else lane
        for base, lanes in copies.items()
        for lane in lanes
    }
