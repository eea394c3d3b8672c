"""What the x axis of a chart may count, and the texts of ticks: 1k, 1.2M, 2m30s."""

import math
from collections.abc import Iterable, Sequence
from itertools import pairwise

from mosaic.present.durations import format_duration

ENV_STEPS, EPISODES, TIME, STEPS = "env steps", "episodes", "time", "steps"
CHOICES = (ENV_STEPS, EPISODES, TIME)

MINUTE, HOUR, DAY = 60, 3600, 86400
DURATION_STEPS = (
    *(1, 2, 5, 10, 15, 30),
    *(minutes * MINUTE for minutes in (1, 2, 5, 10, 15, 30)),
    *(hours * HOUR for hours in (1, 2, 3, 6, 12)),
    *(days * DAY for days in (1, 2, 5, 10, 20, 50, 100)),
)
UNITS = ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"))


def axes_of(curve_axis: str, name: str, has_seconds: bool) -> tuple[str, ...]:
    """What a curve can be drawn over. `curve_axis`: what its steps count.

    "steps" are numbered by the worker; nearly every worker counts environment steps, so they share an axis.
    """
    axes = [EPISODES] if curve_axis == EPISODES else [ENV_STEPS]
    if is_per_episode(name) and EPISODES not in axes:
        axes.append(EPISODES)
    return (*axes, TIME) if has_seconds else tuple(axes)


def is_per_episode(name: str) -> bool:
    """Whether each value belongs to one episode, so that counting values is counting episodes."""
    return name in ("episode/return", "episode/length", "eval/return", "eval/length")


def shared(axes: Iterable[Sequence[str]]) -> tuple[str, ...]:
    """The axes that all these curves have, in the order of CHOICES."""
    sets = [set(each) for each in axes]
    return tuple(choice for choice in CHOICES if sets and all(choice in each for each in sets))


def choose(wanted: str, possible: Sequence[str]) -> str:
    """The axis that is wanted, or the first one that is possible."""
    return wanted if wanted in possible or not possible else possible[0]


def duration_step(span_s: float, most: int) -> float:
    """The distance of ticks on an axis of durations, so that there are at most `most`."""
    least = span_s / max(1, most)
    if least <= 0 or least > DURATION_STEPS[-1]:
        return nice_step(least or 1.0)
    return next(float(step) for step in DURATION_STEPS if step >= least) if least > 0.5 else nice_step(least)


def nice_step(least: float) -> float:
    """1, 2 or 5 times a power of ten, not below `least`."""
    power = 10.0 ** math.floor(math.log10(least))
    return next(factor * power for factor in (1, 2, 5, 10) if factor * power >= least * (1 - 1e-9))


def tick_step(low: float, high: float, most: int) -> float:
    """The distance of about `most` ticks. One tick alone says nothing of the scale: there are at least two."""
    step = nice_step((high - low) / most)
    while math.floor(high / step) - math.ceil(low / step) < 1:
        step = nice_step(step / 2.5)
    return step


def tick_texts(values: Sequence[float], axis: str) -> list[str]:
    """The texts of evenly spaced ticks, all with the same unit and as many decimals as the spacing needs."""
    if axis == TIME:
        return [duration_text(value) for value in values]
    largest = max((abs(value) for value in values), default=0.0)
    unit, letter = next(((unit, letter) for unit, letter in UNITS if largest >= unit), (1.0, ""))
    decimals = _decimals(values, unit)
    if largest and largest < 1e-3:
        return [f"{value:.{_significant(values)}g}" for value in values]
    return ["0" if value == 0 else f"{value / unit:.{decimals}f}{letter}" for value in values]


def duration_text(seconds: float) -> str:
    """A duration without zero parts: 45s, 2m, 2m30s, 1h."""
    sign = "-" if seconds < 0 else ""
    seconds = abs(seconds)
    if seconds < 10 and seconds != int(seconds):
        return f"{sign}{seconds:.3g}s"
    text = format_duration(round(seconds))
    for zero in ("m00s", "h00m", "d00h"):
        text = text.replace(zero, zero[0])
    return sign + text


def place_text(value: float, axis: str) -> str:
    """One place on an axis, as a sentence part: 12,345 env steps, episode 132, 2m30s."""
    if axis == TIME:
        return duration_text(value)
    if axis == EPISODES:
        return f"episode {round(value):,}"
    return f"{round(value):,} {axis}"


def _decimals(values: Sequence[float], unit: float) -> int:
    """The fewest decimals, at most 6, that tell neighbouring ticks apart exactly."""
    gaps = [abs(after - before) / unit for before, after in pairwise(values) if after != before]
    gap = min(gaps, default=0.0)
    if not gap:
        value = abs(values[0]) / unit if values else 0.0
        return next((n for n in range(3) if abs(value * 10**n - round(value * 10**n)) < 1e-6), 3)
    return next((n for n in range(6) if abs(gap * 10**n - round(gap * 10**n)) < 1e-3 * gap * 10**n), 6)


def _significant(values: Sequence[float]) -> int:
    gaps = [abs(after - before) for before, after in pairwise(values) if after != before]
    largest = max(abs(value) for value in values)
    return min(6, 1 + max(0, math.ceil(math.log10(largest / min(gaps))))) if gaps else 3
