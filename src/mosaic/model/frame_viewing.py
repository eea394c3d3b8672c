"""How a viewer reads the frames of a run: how often it looks, when it gives up and when it stops.

The client reads frames from shared memory and the daemon does the same for clients on other machines. They differ only
in how a frame is read and packed.
"""

import asyncio
import math
from collections.abc import AsyncGenerator, Awaitable, Callable
from typing import TypeVar

from mosaic.model.errors import NoFrames

T = TypeVar("T")
ASK_S = 1.0  # without a new frame: how often to ask whether the run is over
LEASE_S = 2.0  # how late a look may come before the worker stops rendering
LEAST_HZ = 0.1


def lease_for(interval_s: float) -> float:
    """How long one look keeps the worker rendering, for a viewer that looks every `interval_s`."""
    return interval_s + LEASE_S


async def view_frames(
    run_id: str,
    look: Callable[[], Awaitable[T | None]],
    is_over: Callable[[], Awaitable[bool]],
    interval_s: float,
    wait_s: float,
    lasts_s: float = math.inf,
) -> AsyncGenerator[T, None]:
    """Yield every new frame that `look` returns, until the run is over or `lasts_s` have passed since the first frame.

    `look` returns None when there is no new frame. Raises NoFrames when the first one takes longer than `wait_s`.
    """
    clock = asyncio.get_running_loop().time
    next_at = news_at = asked_at = clock()
    until, is_first = math.inf, True
    while next_at < until:
        frame = await look()
        now = clock()
        if frame is not None:
            news_at, until, is_first = now, min(until, now + lasts_s), False
            # Only a look renews the lease, so a consumer that stops taking frames lets it expire.
            yield frame
        elif now - max(news_at, asked_at) > ASK_S:
            asked_at = now
            if await is_over():
                return
        if is_first and now - news_at > wait_s:
            raise NoFrames(_no_steps(run_id, wait_s))
        next_at = max(next_at + interval_s, clock())
        await asyncio.sleep(next_at - clock())


def _no_steps(run_id: str, wait_s: float) -> str:
    why = "its env takes no steps, or does not render"
    return f"Run {run_id} published no frame for {wait_s:g} s: {why}. See: mosaic show {run_id}, mosaic logs {run_id}"
