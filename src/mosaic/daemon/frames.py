"""Frames for clients that cannot read this machine's shared memory: the newest one, as PNG, several times a second."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import aclosing
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from mosaic_sdk.fastlane.control import FastLaneError
from mosaic_sdk.fastlane.settings import Settings

from mosaic.daemon.trainer import Trainer
from mosaic.model.durable import read_json
from mosaic.model.errors import NoFrames
from mosaic.model.frame_viewing import LEAST_HZ, lease_for, view_frames
from mosaic.model.run import RunRecord
from mosaic.wire import mosaic_pb2 as pb

if TYPE_CHECKING:
    from mosaic_sdk.fastlane import FastLaneReader

T = TypeVar("T")
DEFAULT_HZ = 10.0
MOST_HZ = 30.0
DEFAULT_WAIT_S = 10.0
LONGEST_WAIT_S = 600.0
SEARCH_S = 0.1  # between two attempts to find a lane
STREAM_S = 10.0
THREADS = 2


class Frames:
    """The frame streams of all clients. Its promises:

    1. A stream is a viewer like any other: while it is read, the worker renders; soon after its end it stops. It ends
       after 10 s and a live client calls again: the connection would buffer minutes of frames for a dead one.
    2. Frames are read and encoded in separate threads: the daemon's loop never waits for them.
    3. A slow client gets fewer frames, each the newest when it was sent; one that stops reading renews no lease.
    """

    def __init__(self, trainer: Trainer) -> None:
        self._trainer = trainer
        self._threads = ThreadPoolExecutor(THREADS, "frames")

    async def stream(self, request: pb.StreamFramesRequest) -> AsyncIterator[pb.Frame]:
        """The frames of a run for one lease, or until it is over. Raises NoFrames, with the reason, if it has none."""
        record = await self._trainer.find(request.run_id)
        interval_s = 1 / max(LEAST_HZ, _within(request.hz, DEFAULT_HZ, MOST_HZ))
        wait_s = _within(request.wait_s, DEFAULT_WAIT_S, LONGEST_WAIT_S)
        watcher = await self._watcher(record, lease_for(interval_s), request, wait_s)
        look = partial(self._in_thread, watcher.look)
        is_over = partial(self._is_over, record.run_id)
        async with aclosing(view_frames(record.run_id, look, is_over, interval_s, wait_s, STREAM_S)) as frames:
            async for frame in frames:
                yield frame

    async def _is_over(self, run_id: str) -> bool:
        return (await self._trainer.find(run_id)).state.is_over

    async def _watcher(
        self, record: RunRecord, lease_s: float, request: pb.StreamFramesRequest, wait_s: float
    ) -> "Watcher":
        """A watcher of the run, as soon as it has a lane."""
        lane = request.lane if request.HasField("lane") else None
        deadline = asyncio.get_running_loop().time() + wait_s
        while True:
            try:
                return await self._in_thread(partial(Watcher.attach, record.run_id, lease_s, request.max_dim, lane))
            except FastLaneError as error:
                raise NoFrames(str(error)) from None
            except OSError:
                if record.state.is_over or asyncio.get_running_loop().time() >= deadline:
                    raise NoFrames(await self._in_thread(partial(self._why_none, record, lane))) from None
            await asyncio.sleep(SEARCH_S)
            record = await self._trainer.find(record.run_id)

    def _why_none(self, record: RunRecord, lane: int | None) -> str:
        rundir = self._trainer.rundir(record)
        if record.state.is_over:
            return f"Run {record.run_id} is over ({record.state}); its frames are not stored."
        launch = read_json(rundir.launch)
        if not launch:
            return f"Run {record.run_id} has not started yet ({record.state}). See: mosaic show {record.run_id}"
        if not Settings.of(launch.get("env") or {}).enabled:
            return (
                f"Frames of run {record.run_id} are disabled in its config. "
                "Submit it with extras.fastlane_video_mode set to single or grid."
            )
        if lane is not None:
            return (
                f"Run {record.run_id} has no lane {lane} that can be shown yet. "
                f"See the messages of its lanes: mosaic logs {record.run_id} --stderr"
            )
        return (
            f"Run {record.run_id} has created no environment that can be shown yet. "
            f"See the messages of its worker: mosaic logs {record.run_id} --stderr"
        )

    async def _in_thread(self, work: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._threads, work)


class Watcher:
    """One client's view of a lane. Garbage collection closes its descriptors: when the client disconnects, a thread may
    still be reading."""

    def __init__(self, reader: "FastLaneReader", max_dim: int) -> None:
        self._reader = reader
        self._max_dim = max_dim

    @classmethod
    def attach(cls, run_id: str, lease_s: float, max_dim: int, lane: int | None = None) -> "Watcher":
        from mosaic_sdk.fastlane import FastLaneReader  # imports numpy: only when frames are requested

        return cls(FastLaneReader.attach(run_id, lease_s, lane), max_dim)

    def look(self) -> pb.Frame | None:
        """The newest frame, encoded; None if it has already been sent."""
        from mosaic_sdk.fastlane.scale import shrink

        from mosaic.wire import png

        frame = self._reader.fresh_frame()
        if frame is None:
            return None
        return pb.Frame(
            png=png.encode(shrink(frame.pixels, self._max_dim)),
            number=frame.number,
            age_ns=max(0, time.monotonic_ns() - frame.when_ns),
            last_reward=frame.metrics.last_reward,
            rolling_return=frame.metrics.rolling_return,
            step_rate_hz=frame.metrics.step_rate_hz,
            cost_ns=self._reader.cost_ns,
        )


def _within(requested: float, default: float, most: float) -> float:
    """A number that a client sent, limited to `most`; the default for 0, NaN and negative numbers."""
    return min(requested, most) if requested > 0 else default
