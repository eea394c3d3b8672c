"""Values of a curve: the mean of a window, and the mean at the end."""

from dataclasses import dataclass, field
from typing import Any

LAST_PART = 0.05  # of the steps: what counts as the end of a run


@dataclass
class Progress:
    """The means of one run's curve over windows of equal length, as far as they are known.

    Windows are the same for all trials, because Optuna's pruners compare trials at equal steps.
    """

    every: int
    means: dict[int, float] = field(default_factory=dict)  # by the last step of the window
    reached: int = 0  # the end of the last window that is complete

    def add(self, curve: Any) -> None:
        """Take the points after `reached`. A window without a point has the value of the one before it, if any."""
        while curve.step and curve.step[-1] >= self.reached + self.every:
            before, self.reached = self.reached, self.reached + self.every
            value = mean_between(curve, before, self.reached)
            if value is not None or before in self.means:
                self.means[self.reached] = self.means[before] if value is None else value


def mean_between(curve: Any, after: int, until: int) -> float | None:
    """The mean of all values with `after` < step <= `until`; None if there are none."""
    inside = [
        (mean, count)
        for step, mean, count in zip(curve.step, curve.mean, curve.count, strict=True)
        if after < step <= until
    ]
    weight = sum(count for _, count in inside)
    return sum(mean * count for mean, count in inside) / weight if weight else None


def final_value(curve: Any) -> float | None:
    """The mean over the last twentieth of the curve; None if it is empty."""
    if not curve.step:
        return None
    last = curve.step[-1]
    return mean_between(curve, min(last - 1, int(last * (1 - LAST_PART))), last)
