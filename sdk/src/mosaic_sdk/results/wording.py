"""A comparison as a sentence, for the terminal and for the report."""

import math
from typing import Any, Mapping, Optional

FEWEST_FOR_A_TEST = 6  # with five seeds, random signs alone give a p-value of at least 0.06


def number(value: Optional[float]) -> str:
    """Three or four digits: 0.712, 12.4, 1520; `–` for what is not known."""
    if value is None or not math.isfinite(value):
        return "–"
    if value and (abs(value) < 1e-3 or abs(value) >= 1e6):
        return f"{value:.3g}"
    digits = 0 if abs(value) >= 1000 else 1 if abs(value) >= 100 else 2 if abs(value) >= 1 else 3
    text = f"{value:.{digits}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def bracket(interval: "Optional[tuple[float, float] | list[float]]") -> str:
    """`[0.52, 0.86]`; empty if there is none."""
    return f"[{number(interval[0])}, {number(interval[1])}]" if interval else ""


def sentence(pair: Mapping[str, Any]) -> str:
    """What a comparison of the summary says, without claiming more than it shows."""
    a, b, n = pair["a"], pair["b"], pair["n"]
    if not n:
        return f"{a} and {b} have no seed in common, so they cannot be compared."
    if n == 1:
        return f"{a} and {b} have one seed in common: {_signed(pair)}. One seed says nothing about others."
    if pair["ties"] == n:
        return f"{a} and {b} score the same on all {n} seeds."
    details = f"on {n} seeds, {_counts(pair)}, probability of improvement {pair['probability']:.2f}"
    if not pair["clear"]:
        return f"{a} and {b}: no clear difference: {_signed(pair)} {details}{_why_not(pair)}."
    if pair["difference"] > 0:
        return f"{a} beats {b} by {number(pair['difference'])} {bracket(pair['interval'])} {details}."
    low, high = pair["interval"]
    turned = {**pair, "wins": pair["losses"], "losses": pair["wins"], "probability": 1 - pair["probability"]}
    details = f"on {n} seeds, {_counts(turned)}, probability of improvement {turned['probability']:.2f}"
    return f"{b} beats {a} by {number(-pair['difference'])} {bracket((-high, -low))} {details}."


def _signed(pair: Mapping[str, Any]) -> str:
    value = pair["difference"]
    return f"{'+' if value > 0 else ''}{number(value)} {bracket(pair['interval'])}".rstrip()


def _counts(pair: Mapping[str, Any]) -> str:
    ties = f", equal on {pair['ties']}" if pair["ties"] else ""
    return f"better on {pair['wins']}, worse on {pair['losses']}{ties}"


def _why_not(pair: Mapping[str, Any]) -> str:
    """Why an interval that excludes 0 is not enough."""
    interval = pair["interval"]
    if interval is None or interval[0] <= 0 <= interval[1]:
        return ""
    if pair["n"] < FEWEST_FOR_A_TEST:
        return "; too few seeds to rule out luck"
    return f"; luck is not ruled out (p = {number(pair['p_adjusted'])}, adjusted for all comparisons)"
