"""The nodes of runs on other machines: what they report besides telemetry, and what is asked of them.

A node that is connected has one LinkNode call open. It sends frames only while somebody watches.
"""

import asyncio
import contextlib
import time
from collections.abc import AsyncGenerator, AsyncIterator
from dataclasses import dataclass, field
from typing import Protocol

from mosaic.model.errors import BadConfig, NoFrames
from mosaic.wire import mosaic_pb2 as pb

LARGEST_FRAME = 8 << 20  # bytes of PNG
MOST_HZ = 60.0  # reports of one run that are received in a second, whatever the node sends
MOST_WATCHES = 16  # of one run: lanes and sizes
STALE_S = 60.0  # an older figure says nothing about now
RENEW = 0.5  # of a watch's time: a node is told again when less is left

Key = tuple[int, int]  # lane, or -1 for the run's own picture; maximum width and height


class Sessions(Protocol):
    async def allow(self, run_id: str, token: str) -> object: ...


@dataclass(eq=False)
class _Watch:
    hz: float
    for_s: float
    until: float
    told_until: float = 0.0  # what the node knows
    frame: pb.Frame | None = None
    number: int = 0  # counts the frames that have arrived
    arrived_at: float = 0.0
    problem: str = ""


@dataclass
class _Link:
    news: asyncio.Event = field(default_factory=asyncio.Event)
    watches: dict[Key, _Watch] = field(default_factory=dict)
    cpu_s: float | None = None
    reported_at: float = 0.0

    def order(self) -> pb.NodeOrder:
        now = time.monotonic()
        self.watches = {key: watch for key, watch in self.watches.items() if watch.until > now}
        order = pb.NodeOrder()
        for (lane, max_dim), watch in self.watches.items():
            watch.told_until = watch.until
            order.watches.add(for_s=watch.until - now, hz=watch.hz, max_dim=max_dim, lane=lane if lane >= 0 else None)
        return order

    def note(self, report: pb.NodeReport) -> None:
        now = time.monotonic()
        if report.HasField("cpu_s"):
            self.cpu_s, self.reported_at = report.cpu_s, now
        watch = self.watches.get(_key(report.watch)) if report.HasField("watch") else None
        if watch and report.HasField("frame"):
            watch.frame, watch.arrived_at, watch.problem = report.frame, now, ""
            watch.number += 1
        elif watch:
            watch.problem = report.no_frame


class NodeLinks:
    """Used only on the daemon's loop, but for `cpu_s`."""

    def __init__(self) -> None:
        self._links: dict[str, _Link] = {}

    def cpu_s(self, run_id: str) -> float | None:
        """CPU seconds of a run, if its node has reported them lately."""
        link = self._links.get(run_id)
        return link.cpu_s if link and time.monotonic() - link.reported_at < STALE_S else None

    async def serve(
        self, reports: AsyncIterator[pb.NodeReport], token: str, sessions: Sessions
    ) -> AsyncGenerator[pb.NodeOrder, None]:
        """The orders for one node, until it leaves. Each report is answered by one."""
        first = await anext(reports, None)
        if first is None:
            return
        await sessions.allow(first.run_id, token)
        link = self._links[first.run_id] = _Link()
        link.note(first)
        reading = asyncio.ensure_future(_read(first.run_id, reports, link))
        try:
            while not reading.done():
                yield link.order()
                await link.news.wait()
                link.news.clear()
            reading.result()
        finally:
            reading.cancel()
            with contextlib.suppress(asyncio.CancelledError, Exception):
                await reading
            if self._links.get(first.run_id) is link:
                del self._links[first.run_id]

    def viewer(self, run_id: str, hz: float, for_s: float, wait_s: float, max_dim: int, lane: int | None) -> "Viewer":
        return Viewer(self._links, run_id, (-1 if lane is None else lane, max_dim), hz, for_s, wait_s)


class Viewer:
    """One client's view of a lane on another machine. Each look asks the node for frames for another `for_s`."""

    def __init__(self, links: dict[str, _Link], run_id: str, key: Key, hz: float, for_s: float, wait_s: float) -> None:
        self._connects_until = time.monotonic() + wait_s
        self._links = links
        self._run_id = run_id
        self._key = key
        self._hz = hz
        self._for_s = for_s
        self._seen: tuple[_Watch | None, int] = (None, 0)

    async def look(self) -> pb.Frame | None:
        """The newest frame; None if it has already been returned, or if there is none."""
        link = self._links.get(self._run_id)
        if link is None:
            if time.monotonic() > self._connects_until:
                raise NoFrames(f"The node of run {self._run_id} is not connected. See: mosaic doctor")
            return None
        watch = self._renewed(link)
        if watch.problem:
            raise NoFrames(watch.problem)
        if watch.frame is None or self._seen == (watch, watch.number):
            return None
        self._seen = watch, watch.number
        frame = pb.Frame()
        frame.CopyFrom(watch.frame)
        # Durations alone: the clocks of two machines differ.
        frame.age_ns += max(0, int((time.monotonic() - watch.arrived_at) * 1e9))
        return frame

    def _renewed(self, link: _Link) -> _Watch:
        now = time.monotonic()
        watch = link.watches.get(self._key)
        if watch is None:
            if len(link.watches) >= MOST_WATCHES:
                raise NoFrames(f"Run {self._run_id} is watched in {MOST_WATCHES} ways already. Close one of them.")
            watch = link.watches[self._key] = _Watch(self._hz, self._for_s, 0.0)
        watch.hz, watch.for_s = max(watch.hz, self._hz), max(watch.for_s, self._for_s)
        watch.until = now + watch.for_s
        if watch.told_until - now < RENEW * watch.for_s:
            watch.told_until = watch.until
            link.news.set()
        return watch


async def _read(run_id: str, reports: AsyncIterator[pb.NodeReport], link: _Link) -> None:
    try:
        async for report in reports:
            if report.run_id != run_id:
                raise BadConfig("run_id", f"is {report.run_id}; this link is of run {run_id}.")
            if len(report.frame.png) > LARGEST_FRAME:
                raise BadConfig("frame.png", f"has more than {LARGEST_FRAME} bytes.")
            link.note(report)
            link.news.set()
            await asyncio.sleep(1 / MOST_HZ)  # what a node sends faster waits in its connection
    finally:
        link.news.set()


def _key(watch: pb.NodeWatch) -> Key:
    return (watch.lane if watch.HasField("lane") else -1, watch.max_dim)
