"""What a comparison of groups says, in a sentence. It never calls a difference that the interval does not show."""

from mosaic_sdk.results.wording import bracket, number

from mosaic.stats.averages import TITLES
from mosaic.stats.difference import Difference, runs_needed

HIGHER, LOWER, NEITHER = "higher", "lower", ""  # which values are better


def sentence(pair: Difference, better: str = HIGHER, unit: str = "seed") -> str:
    """`better`: which values are, or "" if that is not known. `unit`: seed or run."""
    if pair.difference is None:
        return _not_comparable(pair, unit)
    size = sizes(pair.n_a, pair.n_b, unit)
    if pair.interval is None:
        return f"{pair.a} and {pair.b}: {_signed(pair)} with {size}. One {unit} says nothing about others."
    if pair.difference == 0 and pair.interval == (0.0, 0.0):
        return f"{pair.a} and {pair.b} have the same values with {size}."
    if not pair.is_clear:
        return f"{pair.a} and {pair.b}: no clear difference: {_signed(pair)} with {size}{_why_not(pair, unit)}."
    return _clear(pair, better, unit)


def sizes(n_a: int, n_b: int, unit: str) -> str:
    """`5 seeds each`, or `3 and 5 seeds`."""
    return f"{_many(n_a, unit)} each" if n_a == n_b else f"{n_a} and {_many(n_b, unit)}"


def _clear(pair: Difference, better: str, unit: str) -> str:
    assert pair.difference is not None
    assert pair.interval is not None
    assert pair.probability is not None
    low, high = pair.interval
    is_first = (pair.difference > 0) is (better != LOWER)
    first, second = (pair.a, pair.b) if is_first else (pair.b, pair.a)
    size = sizes(pair.n_a, pair.n_b, unit) if is_first else sizes(pair.n_b, pair.n_a, unit)
    by = number(abs(pair.difference))
    interval = bracket((low, high) if pair.difference > 0 else (-high, -low))
    verb = "beats" if better else "is higher than"
    lower = " (lower is better)" if better == LOWER else ""
    probability = pair.probability if pair.difference > 0 else 1 - pair.probability
    told = f"probability of {'improvement' if better else 'a higher value'} {probability:.2f}"
    return f"{first} {verb} {second} by {by} {interval}{lower} in {TITLES[pair.average]} with {size}, {told}."


def _why_not(pair: Difference, unit: str) -> str:
    if not pair.excludes_zero:
        return f"; the interval contains 0, so nothing can be said; {_to_halve(pair, unit)} would halve it"
    if pair.is_hopeless:
        return f"; too few {unit}s to rule out luck, which needs at least {runs_needed(pair.comparisons)} each"
    adjusted = ", adjusted for all comparisons" if pair.comparisons > 1 else ""
    return f"; luck is not ruled out (p = {number(pair.p_adjusted)}{adjusted})"


def _to_halve(pair: Difference, unit: str) -> str:
    """An interval shrinks with the square root of the number of runs: half of it takes four times as many."""
    if pair.n_a == pair.n_b:
        return f"about {3 * pair.n_a} more {unit}s each"
    return f"about {3 * pair.n_a} and {3 * pair.n_b} more {unit}s"


def _not_comparable(pair: Difference, unit: str) -> str:
    empty = [name for name, many in ((pair.a, pair.n_a), (pair.b, pair.n_b)) if not many]
    if empty:
        return f"{pair.a} and {pair.b} cannot be compared: {' and '.join(empty)} {_has(empty)} no {unit} with a value."
    return f"{pair.a} and {pair.b} have no environment in common, so they cannot be compared."


def _has(names: list[str]) -> str:
    return "have" if len(names) > 1 else "has"


def _signed(pair: Difference) -> str:
    assert pair.difference is not None
    return f"{'+' if pair.difference > 0 else ''}{number(pair.difference)} {bracket(pair.interval)}".rstrip()


def _many(count: int, unit: str) -> str:
    return f"{count} {unit}{'' if count == 1 else 's'}"
