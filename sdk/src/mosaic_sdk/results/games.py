"""Rows of a multi-agent evaluation as games between operators.

An evaluation is a competition if the returns of every episode add up to 0, or one agent alone was punished (for an
illegal move) and nobody else got anything, and at least one episode had a winner. Whoever has the higher return has
won. In other evaluations the agents share a goal or have different ones, and nobody beats anybody.
"""

import itertools
import math
from typing import Any, Dict, List, Mapping, Sequence, Tuple

from mosaic_sdk.results.averages import mean
from mosaic_sdk.results.ratings import Game

Row = Mapping[str, Any]


def episode_key(row: Row) -> Tuple[Any, ...]:
    """What the rows of one episode have in common."""
    return row["lane"], row["env_index"], row["episode_index"]


def episodes_of(rows: Sequence[Row]) -> List[List[Row]]:
    """The rows of each episode together: one per agent."""
    found: Dict[Any, List[Row]] = {}
    for row in rows:
        found.setdefault(episode_key(row), []).append(row)
    return list(found.values())


def is_multi_agent(rows: Sequence[Row]) -> bool:
    return any(len(episode) > 1 for episode in episodes_of(rows))


def is_competition(rows: Sequence[Row]) -> bool:
    episodes = [[row["return"] for row in episode] for episode in episodes_of(rows)]
    return (
        all(len(returns) > 1 and _is_a_game(returns) for returns in episodes)
        and any(len(set(returns)) > 1 for returns in episodes)
        and bool(games_of(rows))
    )


def _is_a_game(returns: Sequence[float]) -> bool:
    size = max(map(abs, returns))
    if abs(math.fsum(returns)) <= 1e-6 * size:
        return True
    return sorted(returns)[1:] == [0.0] * (len(returns) - 1)  # the one that is left is negative


def games_of(rows: Sequence[Row]) -> List[Game]:
    """One game for every two operators that met in an episode."""
    return [game for episode in episodes_of(rows) for game in _games(episode)]


def _games(episode: Sequence[Row]) -> List[Game]:
    returns: Dict[str, List[float]] = {}
    for row in episode:
        returns.setdefault(row["operator"], []).append(row["return"])
    scores = {name: mean(values) for name, values in returns.items()}
    seed = episode[0]["seed"]
    group = episode_key(episode[0]) if seed is None else seed
    return [
        Game(a, b, 0.5 if scores[a] == scores[b] else float(scores[a] > scores[b]), group)
        for a, b in itertools.combinations(sorted(scores), 2)
        if scores[a] != scores[b] or scores[a] == 0  # equal and not 0: they won or lost together
    ]
