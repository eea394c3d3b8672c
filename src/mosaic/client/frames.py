"""What a run shows: through shared memory where the run is on this machine, else as PNG through the daemon."""

import asyncio
import time
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import grpc

from mosaic.client.run import Run
from mosaic.client.status import BROKEN, error_from
from mosaic.model.errors import MosaicError, NoDaemon, NoFrames
from mosaic.wire import mosaic_pb2 as pb

if TYPE_CHECKING:
    from mosaic_sdk.fastlane import FastLaneReader
    from mosaic_sdk.fastlane import Frame as SharedFrame

ASK_S = 1.0  # without a new frame: how often the daemon is asked whether the run is over
LEASE_S = 2.0
PAUSE_S = 0.1
LEAST_HZ, MOST_HZ = 0.1, 240


@dataclass(frozen=True)
class Frame:
    """One frame, the caller's own."""

    pixels: Any = field(repr=False)  # uint8 array, height × width × channels (1, 3 or 4)
    number: int  # counts the worker's frames; begins anew with their size
    last_reward: float
    rolling_return: float
    step_rate_hz: float
    when_ns: int  # it was made, on this machine's CLOCK_MONOTONIC
    cost_ns: int  # CPU that a frame takes from its env, render and copy; 0: not known
    is_shared: bool  # it came through shared memory

    @property
    def size(self) -> tuple[int, int]:
        """Width and height."""
        height, width = self.pixels.shape[:2]
        return width, height


@dataclass(frozen=True)
class FrameWish:
    hz: float
    wait_s: float
    max_dim: int

    def __post_init__(self) -> None:
        if not (LEAST_HZ <= self.hz <= MOST_HZ and self.wait_s >= 0 and self.max_dim >= 0):
            raise MosaicError(f"{self}: hz is between {LEAST_HZ} and {MOST_HZ}; wait_s and max_dim are not negative.")


class FrameStream:
    """Frames of one run, the newest each time, until it is over."""

    def __init__(
        self,
        call: Callable[[pb.StreamFramesRequest], Any],
        get_run: Callable[[str], Awaitable[Run]],
        revive: Callable[[], Awaitable[None]],
        target: str,
        wish: FrameWish,
    ) -> None:
        self._call = call
        self._get_run = get_run
        self._revive = revive
        self._target = target
        self._wish = wish

    async def of(self, run_id: str) -> AsyncIterator[Frame]:
        run_id = (await self._get_run(run_id)).run_id
        is_empty = True
        async with aclosing(self._frames(run_id)) as frames:
            async for frame in frames:
                is_empty = False
                yield frame
        if is_empty:
            raise NoFrames(f"Run {run_id} is over, and showed nothing while it was watched.")

    async def _frames(self, run_id: str) -> AsyncGenerator[Frame, None]:
        reader = self._attach(run_id)
        if reader is None:
            async with aclosing(self._relayed(run_id)) as relayed:
                async for frame in relayed:
                    # A run that had just begun may have its frames here after all.
                    reader = self._attach(run_id)
                    if reader:
                        break
                    yield frame
        if reader:
            async with aclosing(self._shared(run_id, reader)) as shared:
                async for frame in shared:
                    yield frame

    def _attach(self, run_id: str) -> "FastLaneReader | None":
        """A reader of this machine's shared memory. Run ids are unique: a lane of that name is the run's."""
        from mosaic_sdk.fastlane import FastLaneError, FastLaneReader  # numpy: not before somebody wants frames

        try:
            return FastLaneReader.attach(run_id, 1 / self._wish.hz + LEASE_S)
        except (OSError, FastLaneError):
            return None

    async def _shared(self, run_id: str, reader: "FastLaneReader") -> AsyncGenerator[Frame, None]:
        clock, is_first = time.monotonic, True
        next_at = news_at = asked_at = clock()
        try:
            while True:
                found = reader.fresh_frame()
                now = clock()
                if found:
                    news_at, is_first = now, False
                    yield self._from_shared(found, reader.cost_ns)
                elif now - max(news_at, asked_at) > ASK_S:
                    asked_at = now
                    if await self._is_over(run_id, reader):
                        break
                if is_first and now - news_at > self._wish.wait_s:
                    raise NoFrames(_no_steps(run_id, self._wish.wait_s))
                next_at = max(next_at + 1 / self._wish.hz, clock())
                await asyncio.sleep(next_at - clock())
        finally:
            reader.close()

    async def _is_over(self, run_id: str, reader: "FastLaneReader") -> bool:
        try:
            return (await self._get_run(run_id)).state.is_over
        except NoDaemon:
            return not reader.is_current  # runs go on without a daemon, and so do their frames

    def _from_shared(self, found: "SharedFrame", cost_ns: int) -> Frame:
        from mosaic_sdk.fastlane.scale import shrink

        pixels = shrink(found.pixels, self._wish.max_dim)
        return Frame(pixels, found.number, *found.metrics, found.when_ns, cost_ns, is_shared=True)

    async def _relayed(self, run_id: str) -> AsyncGenerator[Frame, None]:
        from mosaic.wire import png

        wish = self._wish
        request = pb.StreamFramesRequest(run_id=run_id, hz=wish.hz, max_dim=wish.max_dim, wait_s=wish.wait_s)
        is_first = True
        while True:
            try:
                async with aclosing(_newest(self._call(request))) as frames:
                    async for wire in frames:
                        is_first = False
                        yield _from_wire(wire, png.decode(wire.png))
            except grpc.aio.AioRpcError as failure:
                await self._mend(failure, is_first)
            # The daemon ends its streams now and then, to see who still asks; only the run's own end is the end.
            if (await self._get_run(run_id)).state.is_over:
                return

    async def _mend(self, failure: grpc.aio.AioRpcError, is_first: bool) -> None:
        """Wait for a daemon, or for an env that pauses between two frames; raise the model's error otherwise."""
        error = error_from(failure, self._target)
        if failure.code() in BROKEN:
            await asyncio.sleep(PAUSE_S)
            await self._revive()
        elif is_first or not isinstance(error, NoFrames):
            raise error from None


async def _newest(call: Any) -> AsyncGenerator[pb.Frame, None]:
    """The last of those that have arrived. They are read as they come: a slow caller must not look into the past."""
    shelf: list[pb.Frame] = []
    news = asyncio.Event()

    async def read() -> None:
        try:
            while (frame := await call.read()) is not grpc.aio.EOF:
                shelf[:] = [frame]
                news.set()
        finally:
            news.set()

    reading = asyncio.ensure_future(read())
    try:
        while shelf or not reading.done():
            await news.wait()
            if shelf:
                yield shelf.pop()
            elif not reading.done():
                news.clear()
        reading.result()
    finally:
        call.cancel()
        await asyncio.wait({reading})
        reading.cancelled() or reading.exception()  # seen: asyncio would complain of it otherwise


def _from_wire(wire: pb.Frame, pixels: Any) -> Frame:
    made_ns = time.monotonic_ns() - wire.age_ns
    metrics = wire.last_reward, wire.rolling_return, wire.step_rate_hz
    return Frame(pixels, wire.number, *metrics, made_ns, wire.cost_ns, is_shared=False)


def _no_steps(run_id: str, wait_s: float) -> str:
    why = "its env takes no steps, or draws no pictures"
    return f"Run {run_id} showed nothing for {wait_s:g} s: {why}. See: mosaic show {run_id}, mosaic logs {run_id}"
