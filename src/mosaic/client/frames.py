"""Frames of a run: through shared memory if the run is on this machine, else as PNG through the daemon."""

import asyncio
import time
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import aclosing
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

import grpc

from mosaic.client.run import Run
from mosaic.client.status import BROKEN, error_from
from mosaic.model.errors import MosaicError, NoDaemon, NoFrames
from mosaic.model.frame_viewing import LEAST_HZ, lease_for, view_frames
from mosaic.wire import mosaic_pb2 as pb

if TYPE_CHECKING:
    from mosaic_sdk.fastlane import FastLaneReader
    from mosaic_sdk.fastlane import Frame as SharedFrame

PAUSE_S = 0.1
MOST_HZ = 240


@dataclass(frozen=True)
class Frame:
    """One frame; the pixels are a copy that belongs to the caller."""

    pixels: Any = field(repr=False)  # uint8 array, height × width × channels (1, 3 or 4)
    number: int  # counts the worker's frames; starts again when their size changes
    last_reward: float
    rolling_return: float
    step_rate_hz: float
    when_ns: int  # when it was rendered, on this machine's CLOCK_MONOTONIC
    cost_ns: int  # CPU time of rendering and copying one frame; 0: unknown
    is_shared: bool  # it came through shared memory

    @property
    def size(self) -> tuple[int, int]:
        """Width and height."""
        height, width = self.pixels.shape[:2]
        return width, height


@dataclass(frozen=True)
class FrameRequest:
    hz: float
    wait_s: float
    max_dim: int
    lane: int | None = None  # of an evaluation; None: the run's own picture

    def __post_init__(self) -> None:
        if self.lane is not None and self.lane < 0:
            raise MosaicError(f"lane: must be at least 0, not {self.lane}.")
        if not (LEAST_HZ <= self.hz <= MOST_HZ and self.wait_s >= 0 and self.max_dim >= 0):
            raise MosaicError(f"{self}: hz is between {LEAST_HZ} and {MOST_HZ}; wait_s and max_dim are not negative.")


class FrameStream:
    """Frames of one run, the newest each time, until it is over."""

    def __init__(
        self,
        call: Callable[[pb.StreamFramesRequest], Any],
        get_run: Callable[[str], Awaitable[Run]],
        wait_for_daemon: Callable[[], Awaitable[None]],
        target: str,
        request: FrameRequest,
    ) -> None:
        self._call = call
        self._get_run = get_run
        self._wait_for_daemon = wait_for_daemon
        self._target = target
        self._request = request

    async def of(self, run_id: str) -> AsyncIterator[Frame]:
        run_id = (await self._get_run(run_id)).run_id
        is_empty = True
        async with aclosing(self._frames(run_id)) as frames:
            async for frame in frames:
                is_empty = False
                yield frame
        if is_empty:
            raise NoFrames(f"Run {run_id} ended before it published a frame.")

    async def _frames(self, run_id: str) -> AsyncGenerator[Frame, None]:
        reader = self._attach(run_id)
        if reader is None:
            async with aclosing(self._relayed(run_id)) as relayed:
                async for frame in relayed:
                    # The run may have created its shared memory since.
                    reader = self._attach(run_id)
                    if reader:
                        break
                    yield frame
        if reader:
            async with aclosing(self._shared(run_id, reader)) as shared:
                async for frame in shared:
                    yield frame

    def _attach(self, run_id: str) -> "FastLaneReader | None":
        """A reader of the run's shared memory, if it is on this machine. Lanes are named by run id, which is unique."""
        from mosaic_sdk.fastlane import FastLaneError, FastLaneReader  # imports numpy, which only frames need

        try:
            return FastLaneReader.attach(run_id, lease_for(1 / self._request.hz), self._request.lane)
        except (OSError, FastLaneError):
            return None

    async def _shared(self, run_id: str, reader: "FastLaneReader") -> AsyncGenerator[Frame, None]:
        async def look() -> Frame | None:
            found = reader.fresh_frame()
            return self._from_shared(found, reader.cost_ns) if found else None

        is_over = partial(self._is_over, run_id, reader)
        try:
            async with aclosing(
                view_frames(run_id, look, is_over, 1 / self._request.hz, self._request.wait_s)
            ) as frames:
                async for frame in frames:
                    yield frame
        finally:
            reader.close()

    async def _is_over(self, run_id: str, reader: "FastLaneReader") -> bool:
        try:
            return (await self._get_run(run_id)).state.is_over
        except NoDaemon:
            return not reader.is_current  # runs and their frames continue without a daemon

    def _from_shared(self, found: "SharedFrame", cost_ns: int) -> Frame:
        from mosaic_sdk.fastlane.scale import shrink

        pixels = shrink(found.pixels, self._request.max_dim)
        return Frame(pixels, found.number, *found.metrics, found.when_ns, cost_ns, is_shared=True)

    async def _relayed(self, run_id: str) -> AsyncGenerator[Frame, None]:
        from mosaic.wire import png

        asked = self._request
        request = pb.StreamFramesRequest(
            run_id=run_id, hz=asked.hz, max_dim=asked.max_dim, wait_s=asked.wait_s, lane=asked.lane
        )
        is_first = True
        while True:
            try:
                async with aclosing(_newest(self._call(request))) as frames:
                    async for wire in frames:
                        is_first = False
                        yield _from_wire(wire, png.decode(wire.png))
            except grpc.aio.AioRpcError as failure:
                await self._recover(failure, is_first)
            # The daemon ends frame streams periodically, to find out whether they are still in use.
            if (await self._get_run(run_id)).state.is_over:
                return

    async def _recover(self, failure: grpc.aio.AioRpcError, is_first: bool) -> None:
        """Wait for a daemon, or for an env that pauses between two frames; raise any other error."""
        error = error_from(failure, self._target)
        if failure.code() in BROKEN:
            await asyncio.sleep(PAUSE_S)
            await self._wait_for_daemon()
        elif is_first or not isinstance(error, NoFrames):
            raise error from None


async def _newest(call: Any) -> AsyncGenerator[pb.Frame, None]:
    """The newest frame that has arrived. Frames are read as they come, so that a slow caller does not lag behind."""
    newest: list[pb.Frame] = []
    arrived = asyncio.Event()

    async def read() -> None:
        try:
            while (frame := await call.read()) is not grpc.aio.EOF:
                newest[:] = [frame]
                arrived.set()
        finally:
            arrived.set()

    reading = asyncio.ensure_future(read())
    try:
        while newest or not reading.done():
            await arrived.wait()
            if newest:
                yield newest.pop()
            elif not reading.done():
                arrived.clear()
        reading.result()
    finally:
        call.cancel()
        await asyncio.wait({reading})
        reading.cancelled() or reading.exception()  # retrieved, or asyncio would log it


def _from_wire(wire: pb.Frame, pixels: Any) -> Frame:
    made_ns = time.monotonic_ns() - wire.age_ns
    metrics = wire.last_reward, wire.rolling_return, wire.step_rate_hz
    return Frame(pixels, wire.number, *metrics, made_ns, wire.cost_ns, is_shared=False)
