"""Frames for clients that cannot read this machine's shared memory: the newest one, as PNG, several times a second."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import aclosing
from functools import partial
from typing import TypeVar

from mosaic_sdk.fastlane.control import FastLaneError
from mosaic_sdk.fastlane.settings import Settings

from mosaic.daemon.trainer import Trainer
from mosaic.model.durable import read_json
from mosaic.model.errors import NoFrames
from mosaic.model.frame_viewing import LEAST_HZ, lease_for, view_frames
from mosaic.model.run import RunRecord
from mosaic.model.rundir import RunDir
from mosaic.wire import mosaic_pb2 as pb
from mosaic.wire.frame_watcher import FrameWatcher

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
        look = await self._look(record, interval_s, request, wait_s)
        is_over = partial(self._is_over, record.run_id)
        async with aclosing(view_frames(record.run_id, look, is_over, interval_s, wait_s, STREAM_S)) as frames:
            async for frame in frames:
                yield frame

    async def _look(
        self, record: RunRecord, interval_s: float, request: pb.StreamFramesRequest, wait_s: float
    ) -> Callable[[], Awaitable[pb.Frame | None]]:
        """How the next frame is got: from this machine's shared memory, or from the run's node."""
        if not record.on:
            watcher = await self._watcher(record, lease_for(interval_s), request, wait_s)
            return partial(self._in_thread, watcher.look)
        lane = request.lane if request.HasField("lane") else None
        if record.state.is_over or not await self._in_thread(partial(self._is_enabled, record)):
            raise NoFrames(await self._in_thread(partial(self._why_none, record, lane)))
        return self._trainer.node_links.viewer(
            record.run_id, 1 / interval_s, lease_for(interval_s), wait_s, request.max_dim, lane
        ).look

    def _is_enabled(self, record: RunRecord) -> bool:
        return Settings.of(_environment(self._trainer.rundir(record))).enabled

    async def _is_over(self, run_id: str) -> bool:
        return (await self._trainer.find(run_id)).state.is_over

    async def _watcher(
        self, record: RunRecord, lease_s: float, request: pb.StreamFramesRequest, wait_s: float
    ) -> FrameWatcher:
        """A watcher of the run, as soon as it has a lane."""
        lane = request.lane if request.HasField("lane") else None
        deadline = asyncio.get_running_loop().time() + wait_s
        while True:
            try:
                return await self._in_thread(
                    partial(FrameWatcher.attach, record.run_id, lease_s, request.max_dim, lane)
                )
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
        if not read_json(rundir.launch):
            return f"Run {record.run_id} has not started yet ({record.state}). See: mosaic show {record.run_id}"
        if not self._is_enabled(record):
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


def _environment(rundir: RunDir) -> dict[str, str]:
    return (read_json(rundir.launch) or {}).get("env") or {}


def _within(requested: float, default: float, most: float) -> float:
    """A number that a client sent, limited to `most`; the default for 0, NaN and negative numbers."""
    return min(requested, most) if requested > 0 else default
