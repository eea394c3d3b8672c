"""What a reader of the results must know: failed episodes, few seeds, seeds that only some have played."""

from typing import Any, Dict, Iterable, List, Sequence

from mosaic_sdk.results.comparison import Comparison
from mosaic_sdk.results.games import Row, games_of, is_competition
from mosaic_sdk.results.ratings import Game
from mosaic_sdk.results.rows import is_one_seed

FEW = 10  # with fewer seeds than this, an interval is a rough guide
MOST_REASONS = 3


def cautions(
    rows: Sequence[Row], good: Sequence[Row], operators: Iterable[str], pairs: Sequence[Comparison]
) -> List[str]:
    failures = [sentence for name in operators for sentence in _failures(name, rows)]
    return [*failures, *_not_finite(rows), *_seeds(good), *_unpaired(good, pairs), *_competition(good)]


def _failures(name: str, rows: Sequence[Row]) -> List[str]:
    reasons: Dict[str, List[Any]] = {}
    for row in rows:
        if row["operator"] == name and row["failed"]:
            reasons.setdefault(row["reason"] or "no reason given", []).append(row["seed"])
    told = [
        f"{name}: {_left_out(len(seeds))}{_where(seeds)}: {reason.rstrip('.')}."
        for reason, seeds in list(reasons.items())[:MOST_REASONS]
    ]
    if len(reasons) > MOST_REASONS:
        told.append(f"{name}: {len(reasons) - MOST_REASONS} further reasons for failed episodes are in the rows.")
    return told


def _left_out(count: int) -> str:
    return "1 failed episode is left out" if count == 1 else f"{count} failed episodes are left out"


def _where(seeds: Sequence[Any]) -> str:
    known = [str(seed) for seed in seeds if seed is not None]
    shown = ", ".join(known[:5]) + (" …" if len(known) > 5 else "")
    return f" (seed{'s' if len(known) > 1 else ''} {shown})" if known else ""


def _not_finite(rows: Sequence[Row]) -> List[str]:
    odd: Dict[str, List[Any]] = {}
    for row in rows:
        if not row["failed"] and not abs(row["return"]) < float("inf"):
            odd.setdefault(row["operator"], []).append(row["seed"])
    return [
        f"{name}: {len(seeds)} episode{'s' if len(seeds) > 1 else ''}{_where(seeds)} left out: "
        "the return is not a finite number."
        for name, seeds in odd.items()
    ]


def _seeds(good: Sequence[Row]) -> List[str]:
    if not good:
        return []
    if is_one_seed(good):
        return [f"Only seed {good[0]['seed']} was played: the intervals say nothing about other seeds."]
    seeds = {row["seed"] for row in good if row["seed"] is not None}
    if 0 < len(seeds) < FEW:
        return [f"Only {len(seeds)} seeds were played: intervals from fewer than {FEW} seeds tend to be too narrow."]
    return []


def _unpaired(good: Sequence[Row], pairs: Sequence[Comparison]) -> List[str]:
    seeds = {row["seed"] for row in good if row["seed"] is not None}
    if is_one_seed(good) or not pairs:
        return []
    fewest = min(pair.n for pair in pairs)
    if fewest == len(seeds):
        return []
    return [f"Not all have played all {len(seeds)} seeds: each comparison uses only the seeds that both have played."]


def _competition(good: Sequence[Row]) -> List[str]:
    if not is_competition(good):
        return []
    told = []
    if len({(row["operator"], row["agent_id"]) for row in good}) == len({row["agent_id"] for row in good}):
        told.append("Each seat was always played by the same operator: an advantage of a seat is part of the result.")
    if not _is_connected(games_of(good)):
        told.append("Some operators have not met, not even through others: their ratings cannot be compared.")
    return told


def _is_connected(games: Sequence[Game]) -> bool:
    pairs = {frozenset((game.a, game.b)) for game in games}
    reached = set(next(iter(pairs)))
    for _ in pairs:  # each round reaches one step further
        reached |= {name for pair in pairs if pair & reached for name in pair}
    return all(pair <= reached for pair in pairs)
