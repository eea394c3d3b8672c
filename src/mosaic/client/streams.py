"""Streams and calls that survive a restart of the daemon, without gaps or repetition."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any

import grpc

from mosaic.client.events import Event, LogPiece, event_from_wire, log_from_wire
from mosaic.client.run import RunList
from mosaic.client.status import BROKEN, error_from
from mosaic.wire import mosaic_pb2 as pb

# Between a failure and the next attempt, so that a daemon that is stopping is not called in a tight loop.
PAUSE_S = 0.1

Call = Callable[..., Any]
WaitForDaemon = Callable[[], Awaitable[None]]  # returns when a daemon answers again, or raises NoDaemon
IsOver = Callable[[], Awaitable[bool]]


@dataclass(frozen=True)
class EventPage:
    """Consecutive events, and the range before them (first and last seq) that the daemon did not send."""

    events: list[Event]
    missed: tuple[int, int] | None = None
    renumbered: bool = False  # the events have new numbers, from 1, and are sent again: the daemon lost some


class EventStream:
    """The events of one run after `since_seq`. What a slow reader missed is reported, or fetched in order."""

    def __init__(
        self, call: Call, request: pb.StreamRequest, target: str, wait_for_daemon: WaitForDaemon, is_over: IsOver
    ) -> None:
        self._call = call
        self._request = request
        self._target = target
        self._wait_for_daemon = wait_for_daemon
        self._is_over = is_over
        self._seen = request.since_seq

    async def batches(self) -> AsyncGenerator[list[Event], None]:
        """Every event: missed ranges are fetched."""
        async with aclosing(self.pages()) as pages:
            async for page in pages:
                if page.missed:
                    async for events in self._fetch(*page.missed):
                        yield events
                if page.events:
                    yield page.events

    async def pages(self) -> AsyncGenerator[EventPage, None]:
        """What the daemon sends: missed ranges are reported."""
        while True:
            try:
                async for batch in self._call(self._next_request()):
                    page = self._page(batch)
                    if page.events or page.missed or page.renumbered:
                        yield page
            except grpc.aio.AioRpcError as failure:
                await _recover(failure, self._target, self._wait_for_daemon)
                continue
            # A daemon that stops may end its streams without an error, while the run continues.
            if self._request.HasField("until_seq") or await self._is_over():
                return
            await asyncio.sleep(PAUSE_S)

    def _next_request(self) -> pb.StreamRequest:
        request = pb.StreamRequest()
        request.CopyFrom(self._request)
        request.since_seq = self._seen
        if self._seen > self._request.since_seq:
            request.tail = 0
        return request

    def _page(self, batch: pb.EventBatch) -> EventPage:
        """What is new in this batch; it counts as seen from now on."""
        missed = None
        if batch.renumbered:
            self._seen = 0
        if batch.HasField("missed") and batch.missed.last > self._seen:
            missed = (max(self._seen + 1, batch.missed.first), batch.missed.last)
            self._seen = batch.missed.last
        events = [event_from_wire(wire) for wire in batch.events if wire.seq > self._seen]
        if events:
            self._seen = events[-1].seq
        return EventPage(events, missed, batch.renumbered)

    async def _fetch(self, first: int, last: int) -> AsyncIterator[list[Event]]:
        request = pb.StreamRequest(run_id=self._request.run_id, since_seq=first - 1, until_seq=last)
        stream = EventStream(self._call, request, self._target, self._wait_for_daemon, self._is_over)
        async for events in stream.batches():
            yield events


class LogStream:
    """The log of one run, from two byte offsets on."""

    def __init__(self, call: Call, request: pb.StreamLogsRequest, target: str, wait_for_daemon: WaitForDaemon) -> None:
        self._call = call
        self._request = request
        self._target = target
        self._wait_for_daemon = wait_for_daemon
        self._seen = {"stdout": request.since_stdout, "stderr": request.since_stderr}

    async def batches(self) -> AsyncGenerator[list[LogPiece], None]:
        while True:
            try:
                async for batch in self._call(self._next_request()):
                    if pieces := self._new(log_from_wire(batch)):
                        yield pieces
                return
            except grpc.aio.AioRpcError as failure:
                await _recover(failure, self._target, self._wait_for_daemon)

    def _next_request(self) -> pb.StreamLogsRequest:
        request = pb.StreamLogsRequest()
        request.CopyFrom(self._request)
        request.since_stdout, request.since_stderr = self._seen["stdout"], self._seen["stderr"]
        if request != self._request:
            request.tail_bytes = 0
        return request

    def _new(self, pieces: list[LogPiece]) -> list[LogPiece]:
        fresh = [piece for piece in pieces if piece.offset >= self._seen[piece.stream]]
        for piece in fresh:
            self._seen[piece.stream] = max(self._seen[piece.stream], piece.end)
        return fresh


async def watch_runs(
    call: Call, request: pb.WatchRunsRequest, target: str, wait_for_daemon: WaitForDaemon
) -> AsyncGenerator[RunList, None]:
    """All runs that match, then changes. After a failure, which is reported as `problem`, all of them again."""
    while True:
        is_whole, parts = True, list[pb.ListRunsReply]()
        try:
            async for reply in call(request):
                parts.append(reply)
                if not reply.continues:
                    yield RunList.joined(parts, is_whole)
                    is_whole, parts = False, []
            await asyncio.sleep(PAUSE_S)
        except grpc.aio.AioRpcError as failure:
            if failure.code() in BROKEN:
                yield RunList((), 0, is_whole=False, problem=str(error_from(failure, target)))
            await _recover(failure, target, wait_for_daemon)


async def repeat_until_answered(call: Call, request: Any, target: str, wait_for_daemon: WaitForDaemon) -> Any:
    """The answer to a call that may arrive twice: after a lost connection the next daemon is asked."""
    while True:
        try:
            return await call(request)
        except grpc.aio.AioRpcError as failure:
            await _recover(failure, target, wait_for_daemon)


async def _recover(failure: grpc.aio.AioRpcError, target: str, wait_for_daemon: WaitForDaemon) -> None:
    """Wait for the next daemon if the failure is a lost connection; raise the error otherwise."""
    if failure.code() not in BROKEN:
        raise error_from(failure, target) from None
    await asyncio.sleep(PAUSE_S)
    await wait_for_daemon()
