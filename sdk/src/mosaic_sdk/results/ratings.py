"""Ratings of players from the games between them: Bradley and Terry's model on the scale of Elo.

A rating difference of 400 means odds of ten to one. Ratings are relative: their mean is 1000. Each player also draws
one imaginary game against an average opponent, so that a player who has won every game gets a finite rating. Such a
rating is only a bound, and is marked as one.
"""

import math
from dataclasses import asdict, dataclass
from random import Random
from typing import Any, Dict, Hashable, List, Optional, Sequence, Tuple

from mosaic_sdk.results.averages import mean, quantile
from mosaic_sdk.results.resampling import SEED, Interval

AVERAGE = 1000.0
SCALE = 400 / math.log(10)
PRIOR = 1.0  # imaginary games of each player
RESAMPLES = 1_000
_ROUNDS = 500
_CLOSE = 1e-6  # of a strength's logarithm, 0.0002 points of rating


@dataclass(frozen=True)
class Game:
    """One game between two players. `score` is what `a` got: 1 for a win, 0.5 for a draw, 0 for a loss."""

    a: str
    b: str
    score: float
    group: Hashable  # games of one group (one seed) are resampled together


@dataclass(frozen=True)
class Rating:
    rating: float
    interval: Optional[Interval]  # 95 %; None if the rating is a bound, or for a single game
    bound: str  # "lower" if every game was won, "upper" if every game was lost, else ""
    games: int
    wins: int
    draws: int
    losses: int

    def to_dict(self) -> Dict[str, Any]:
        return {**asdict(self), "interval": None if self.interval is None else list(self.interval)}


Strengths = Dict[str, float]  # the odds of a against b are strength[a] : strength[b]
Table = Dict[Tuple[str, str], List[float]]  # (a, b): [games, points of a]


def rate(games: Sequence[Game]) -> Dict[str, Rating]:
    """The rating of every player, best first."""
    players = sorted({name for game in games for name in (game.a, game.b)})
    strength = _strengths(dict.fromkeys(players, 1.0), _table(games))
    values, samples = _on_scale(strength), _resampled(strength, games)
    ranked = sorted(players, key=lambda name: (-values[name], name))
    return {name: _rating(name, values[name], samples[name], games) for name in ranked}


def _rating(name: str, value: float, sample: List[float], games: Sequence[Game]) -> Rating:
    points = [game.score if game.a == name else 1 - game.score for game in games if name in (game.a, game.b)]
    wins, losses = points.count(1), points.count(0)
    bound = "lower" if wins == len(points) else "upper" if losses == len(points) else ""
    interval = None if bound or not sample else (quantile(sample, 0.025), quantile(sample, 0.975))
    return Rating(value, interval, bound, len(points), wins, len(points) - wins - losses, losses)


def _resampled(strength: Strengths, games: Sequence[Game]) -> Dict[str, List[float]]:
    groups: Dict[Hashable, List[Game]] = {}
    for game in games:
        groups.setdefault(game.group, []).append(game)
    # All games on one seed: then each game is a sample of its own.
    pools = list(groups.values()) if len(groups) > 1 else [[game] for game in games]
    draw, rows = Random(SEED).random, []
    for _ in range(RESAMPLES if len(pools) > 1 else 0):
        chosen = [pools[int(draw() * len(pools))] for _ in pools]
        rows.append(_on_scale(_strengths(strength, _table([game for pool in chosen for game in pool]))))
    return {name: sorted(row[name] for row in rows) for name in strength}


def _table(games: Sequence[Game]) -> Table:
    table: Table = {}
    for game in games:
        for a, b, score in ((game.a, game.b, game.score), (game.b, game.a, 1 - game.score)):
            cell = table.setdefault((a, b), [0.0, 0.0])
            cell[0] += 1
            cell[1] += score
    return table


def _strengths(start: Strengths, table: Table) -> Strengths:
    """The most likely strengths, by minorisation-maximisation (Hunter 2004)."""
    strength = start
    points = dict.fromkeys(start, PRIOR / 2)
    for (a, _), (_, score) in table.items():
        points[a] += score
    for _ in range(_ROUNDS):
        weight = {name: PRIOR / (value + 1.0) for name, value in strength.items()}
        for (a, b), (count, _) in table.items():
            weight[a] += count / (strength[a] + strength[b])
        fresh = {name: points[name] / weight[name] for name in strength}
        change = max(abs(math.log(fresh[name] / strength[name])) for name in strength)
        strength = fresh
        if change < _CLOSE:
            break
    return strength


def _on_scale(strength: Strengths) -> Dict[str, float]:
    raw = {name: SCALE * math.log(value) for name, value in strength.items()}
    middle = mean(list(raw.values()))
    return {name: AVERAGE + value - middle for name, value in raw.items()}
