"""The numbers of a frame: its size, its metrics, how many come per second, and what watching them costs the run."""

from collections import deque
from typing import TYPE_CHECKING

from mosaic.present.text import number

if TYPE_CHECKING:
    from mosaic.client import Frame

RATE_S = 2.0  # the fps are an average over this time


class Rate:
    """How many frames per second the run produces, including those that were not shown."""

    def __init__(self) -> None:
        self._seen: deque[tuple[int, int]] = deque()  # number, when_ns

    def count(self, frame: "Frame") -> None:
        if self._seen and frame.number < self._seen[-1][0]:
            self._seen.clear()  # frames of another size or env are numbered from the start again
        self._seen.append((frame.number, frame.when_ns))
        while frame.when_ns - self._seen[0][1] > RATE_S * 1e9:
            self._seen.popleft()

    @property
    def fps(self) -> float:
        (first, since_ns), (last, until_ns) = self._seen[0], self._seen[-1]
        return (last - first) * 1e9 / (until_ns - since_ns) if until_ns > since_ns else 0.0

    def core_share(self, frame: "Frame") -> float | None:
        """The share of one core that the frames take from the run; None if the worker does not measure it."""
        return frame.cost_ns * self.fps / 1e9 if frame.cost_ns else None


def describe(frame: "Frame", rate: Rate, width: int = 1 << 30) -> str:
    """`600×400  29.9 fps  reward 1  return 21.4  5.1k steps/s  watching costs 2.9 ms per frame, 8.7 % of a core`

    On a narrow terminal the last parts are left out, so that no number is cut in two.
    """
    share = rate.core_share(frame)
    cost = "cost of watching unknown"
    if share is not None:
        cost = f"watching costs {frame.cost_ns / 1e6:.2g} ms per frame, {share:.1%} of a core"
    parts = [size_of(frame), f"{rate.fps:.1f} fps", f"reward {number(frame.last_reward)}"]
    parts += [f"return {number(frame.rolling_return)}", f"{number(frame.step_rate_hz)} steps/s", cost]
    while len(parts) > 1 and len("  ".join(parts)) > width:
        parts.pop()
    return "  ".join(parts)[:width]


def size_of(frame: "Frame") -> str:
    width, height = frame.size
    return f"{width}×{height}"


def metrics_of(frame: "Frame") -> str:
    """`reward 1 · return 21.4 · 5.1k steps/s`"""
    rate = f"{number(frame.step_rate_hz)} steps/s"
    return f"reward {number(frame.last_reward)} · return {number(frame.rolling_return)} · {rate}"


def watching(frame: "Frame", rate: Rate) -> str:
    """`29.8 fps · watching costs 8.7 % of a core`"""
    share = rate.core_share(frame)
    cost = "cost of watching unknown" if share is None else f"watching costs {_percent(share)} of a core"
    return f"{rate.fps:.1f} fps · {cost}"


def _percent(share: float) -> str:
    if share < 0.001:
        return "under 0.1 %"
    return f"{share * 100:.1f} %" if share < 0.1 else f"{share * 100:.0f} %"
