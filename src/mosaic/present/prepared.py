"""A curve as a chart draws it: smoothed, on a log scale if chosen, with what had to be left out."""

from dataclasses import astuple, dataclass

import numpy as np

from mosaic.present.curves import Series
from mosaic.present.decimation import Floats, decimate, decimate_band, shares, visible
from mosaic.present.ranges import LARGEST, Range, span
from mosaic.present.smoothing import smooth

MOST_SMOOTHED = 20_000  # a longer curve is smoothed over means of equal shares


@dataclass(frozen=True)
class LeftOut:
    """How many values of a curve cannot be drawn."""

    nans: int = 0
    infinities: int = 0
    not_positive: int = 0  # on a log scale
    too_large: int = 0

    def __add__(self, other: "LeftOut") -> "LeftOut":
        return LeftOut(*(mine + theirs for mine, theirs in zip(astuple(self), astuple(other), strict=True)))

    def text(self) -> str:
        """`3 values are NaN, 1 value is infinite`, or nothing."""
        kinds = (
            (self.nans, "NaN"),
            (self.infinities, "infinite"),
            (self.not_positive, "not positive and left out on the log scale"),
            (self.too_large, "too large to draw"),
        )
        return ", ".join(f"{n:,} value{' is' if n == 1 else 's are'} {words}" for n, words in kinds if n)


class PreparedCurve:
    """`y`, `smoothed`, `low` and `high` are what is drawn: logarithms on a log scale."""

    def __init__(self, series: Series, smoothing: float, is_log: bool) -> None:
        self.series = series
        self.is_log = is_log
        known = ~np.isnan(series.x)
        x, y = (series.x, series.y) if known.all() else (series.x[known], series.y[known])
        self.x = x
        self.left_out = _left_out(y, is_log)
        y = _within(y)
        self.y = _drawable(y, is_log)
        self.smooth_x, smoothed = self._smoothed(x, y, smoothing) if smoothing else (x, y)
        self.smoothed = _drawable(smoothed, is_log) if smoothing else self.y
        self.is_smoothed = bool(smoothing)
        has_band = series.low is not None and series.high is not None
        self.low = _drawable(series.low[known], is_log) if has_band and series.low is not None else None
        self.high = _drawable(series.high[known], is_log) if has_band and series.high is not None else None

    @staticmethod
    def _smoothed(x: Floats, y: Floats, smoothing: float) -> tuple[Floats, Floats]:
        across, means = shares(x, y, MOST_SMOOTHED)
        return across, smooth(means, smoothing)

    def x_span(self) -> Range | None:
        return span([self.x[:1], self.x[-1:]])

    def y_span(self, left: float, right: float) -> Range | None:
        """Of everything drawn between these places."""
        inside = _between(self.x, left, right)
        parts = [self.y[inside], self.smoothed[_between(self.smooth_x, left, right)]]
        parts += [self.low[inside], self.high[inside]] if self.low is not None and self.high is not None else []
        return span(parts)

    def raw_line(self, left: float, right: float, columns: int) -> tuple[Floats, Floats]:
        part = visible(self.x, left, right)
        return decimate(self.x[part], self.y[part], columns)

    def line(self, left: float, right: float, columns: int) -> tuple[Floats, Floats]:
        part = visible(self.smooth_x, left, right)
        return decimate(self.smooth_x[part], self.smoothed[part], columns)

    def band(self, left: float, right: float, columns: int) -> tuple[Floats, Floats, Floats]:
        if self.low is None or self.high is None:
            return np.empty(0), np.empty(0), np.empty(0)
        part = visible(self.x, left, right)
        return decimate_band(self.x[part], self.low[part], self.high[part], columns)

    def at(self, x: float) -> "Reading | None":
        """The values nearest to this place; None where the curve has not begun or is already over."""
        if not len(self.x) or not self.x[0] <= x <= self.x[-1]:
            return None
        index = _nearest(self.x, x)
        smoothed = self.smoothed[_nearest(self.smooth_x, x)] if self.is_smoothed else self.y[index]
        return Reading(float(self.x[index]), self._value(float(self.y[index])), self._value(float(smoothed)))

    def newest(self) -> float | None:
        return self._value(float(self.y[-1])) if len(self.y) else None

    def _value(self, drawn: float) -> float:
        return 10.0**drawn if self.is_log else drawn


@dataclass(frozen=True)
class Reading:
    x: float
    value: float
    smoothed: float


def isolated(y: Floats) -> "np.ndarray[tuple[int], np.dtype[np.bool_]]":
    """The points without a neighbour, which no line would show."""
    is_number = np.isfinite(y)
    before, after = np.append(False, is_number[:-1]), np.append(is_number[1:], False)
    return np.asarray(is_number & ~before & ~after)


def _left_out(y: Floats, is_log: bool) -> LeftOut:
    finite = int(np.count_nonzero(np.isfinite(y)))
    nans = int(np.count_nonzero(np.isnan(y)))
    too_large = int(np.count_nonzero(np.isfinite(y) & (np.abs(y) > LARGEST)))
    not_positive = int(np.count_nonzero(np.isfinite(y) & (y <= 0))) if is_log else 0
    return LeftOut(nans, len(y) - finite - nans, not_positive, too_large)


def _within(y: Floats) -> Floats:
    """Without the numbers that a sum, a smoothing or a scale would turn into infinity."""
    is_large = np.abs(y) > LARGEST
    return np.where(is_large, np.nan, y) if is_large.any() else y


def _drawable(y: Floats, is_log: bool) -> Floats:
    y = _within(y)
    if not is_log:
        return y if np.isfinite(y).all() else np.where(np.isfinite(y), y, np.nan)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(np.isfinite(y) & (y > 0), np.log10(y), np.nan)


def _between(x: Floats, left: float, right: float) -> slice:
    return slice(int(np.searchsorted(x, left, "left")), int(np.searchsorted(x, right, "right")))


def _nearest(x: Floats, place: float) -> int:
    after = min(int(np.searchsorted(x, place)), len(x) - 1)
    return after - 1 if after and place - x[after - 1] <= x[after] - place else after
