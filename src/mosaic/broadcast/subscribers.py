"""Hop 6: every subscriber of a run gets its events in order, none twice; a slow one learns which ones it missed.

A subscriber has no queue, only a position in the run's ring. Publishing costs the same for one and for two hundred
subscribers. A subscriber that falls behind the ring gets one `missed` range and continues with what the ring has.
"""

import asyncio
from collections import OrderedDict
from collections.abc import AsyncIterator, Collection
from typing import Protocol

from mosaic.broadcast.ring import Entry, Ring
from mosaic.wire import mosaic_pb2 as pb

PAGE_EVENTS = 1000
PAGE_BYTES = 1 << 20
REMEMBERED_ENDS = 10_000


class Page(Protocol):
    """A page of stored events: see ingest.events.EventPage."""

    @property
    def batch(self) -> pb.EventBatch: ...
    @property
    def through(self) -> int: ...
    @property
    def last_seq(self) -> int: ...
    @property
    def is_renumbered(self) -> bool: ...


class StoreReader(Protocol):
    """Reads stored events of one run: at most `limit` of these kinds, after `since`, up to `until`."""

    async def __call__(self, since: int, until: "int | None", kinds: "Collection[str] | None", limit: int) -> Page: ...


class Channel:
    """The ring of one run and the subscribers that wait for it."""

    def __init__(self, last_seq: int = 0) -> None:
        self.ring = Ring(last_seq)
        self.listeners = 0
        self.texts = 0  # increases with every arrival of log text
        self.renumberings = 0  # how often the events got new numbers, from 1
        self.is_closed = False
        self._changed = asyncio.Event()

    def wake(self) -> None:
        # A new Event each time: all who wait for the old one wake up, and it need not be reset.
        self._changed.set()
        self._changed = asyncio.Event()

    async def change(self) -> None:
        await self._changed.wait()


class Subscription:
    """An async iterator over the events after `position`, until `until` or until the run is closed."""

    def __init__(
        self, channel: Channel, kinds: "Collection[str] | None", since_seq: int, until_seq: "int | None" = None
    ) -> None:
        self.position = since_seq  # every requested event up to it was delivered or reported as missed
        self._channel = channel
        self._kinds = frozenset(kinds) if kinds else None
        self._until = until_seq
        self._renumberings = channel.renumberings
        self._is_open = True
        channel.listeners += 1

    @property
    def needs_from_store(self) -> "tuple[int, int] | None":
        """The first and last seq that are no longer in the ring: read them from the store, then call `skip_to`."""
        first = self._channel.ring.first
        return (self.position + 1, first - 1) if self.position + 1 < first else None

    @property
    def has_reached_ring(self) -> bool:
        """Whether the ring continues at this position. False for a ring without events: the store may have some.

        False too for a position beyond the newest event: the store knows whether the events have new numbers.
        """
        last = self._channel.ring.last
        return last > 0 and self.position <= last and not self.needs_from_store

    @property
    def is_done(self) -> bool:
        return self._until is not None and self.position >= self._until

    def skip_to(self, seq: int) -> None:
        """Events up to `seq` were delivered from the store."""
        self.position = max(self.position, seq)

    def start_over(self) -> pb.EventBatch:
        """Continue with the first event, and say so: the events have new numbers, so the position means nothing."""
        self._renumberings = self._channel.renumberings
        self.position = 0
        return pb.EventBatch(renumbered=True)

    def close(self) -> None:
        if self._is_open:
            self._is_open = False
            self._channel.listeners -= 1

    def __aiter__(self) -> "Subscription":
        return self

    async def __anext__(self) -> pb.EventBatch:
        while not self.is_done:
            if (batch := self._take()) is not None:
                return batch
            if self._channel.ring.last > self.position:
                continue  # a page without any of the requested kinds
            if self._channel.is_closed:
                break
            await self._channel.change()
        self.close()
        raise StopAsyncIteration

    def _take(self) -> "pb.EventBatch | None":
        """The next batch, or None; moves the position."""
        if self._renumberings != self._channel.renumberings:
            return self.start_over()
        if self.needs_from_store:
            return self._miss()
        entries = self._page()
        if not entries:
            return None
        batch = _joined(entries, self.position, self._kinds)
        self.position = entries[-1].last
        if self._until is not None and self.position > self._until:
            batch = _up_to(batch, self._until)
        return batch if batch.events else None

    def _miss(self) -> pb.EventBatch:
        last = self._channel.ring.first - 1
        if self._until is not None:
            last = min(last, self._until)
        missed = pb.EventBatch(missed=pb.Range(first=self.position + 1, last=last))
        self.position = last
        return missed

    def _page(self) -> list[Entry]:
        """The next entries that fit into a page; a subscriber that keeps up gets one at a time."""
        page: list[Entry] = []
        events = size = 0
        for entry in self._channel.ring.entries_after(self.position):
            events, size = events + len(entry), size + entry.bytes
            if page and (events > PAGE_EVENTS or size > PAGE_BYTES):
                break
            page.append(entry)
        return page


class Broadcaster:
    """The channels of all runs. Used only on the daemon's loop."""

    def __init__(self) -> None:
        self._channels: dict[str, Channel] = {}
        self._ended: OrderedDict[str, None] = OrderedDict()

    def open(self, run_id: str, last_seq: int) -> None:
        """The run is live, and its newest stored event is `last_seq`; an earlier one if its file was lost."""
        channel = self._live(run_id)
        if channel.ring.last != last_seq:
            channel.ring.clear()
            channel.ring.last = last_seq
            channel.wake()

    def renumber(self, run_id: str) -> None:
        """The run's file was rebuilt with a gap: its events have new numbers, from 1. Subscribers get them again."""
        channel = self._live(run_id)
        channel.renumberings += 1
        channel.ring.clear()
        channel.ring.last = 0
        channel.wake()

    def publish(self, run_id: str, batch: pb.EventBatch) -> None:
        """Send a batch that was just stored; it continues the previous one."""
        channel = self._live(run_id)
        channel.ring.append(batch, listened=channel.listeners > 0)
        channel.wake()

    def text_arrived(self, run_id: str) -> None:
        channel = self._live(run_id)
        channel.texts += 1
        channel.wake()

    def close(self, run_id: str) -> None:
        """The run is complete: subscribers get the remaining events and end."""
        self._ended[run_id] = None
        if len(self._ended) > REMEMBERED_ENDS:
            self._ended.popitem(last=False)
        if channel := self._channels.pop(run_id, None):
            channel.is_closed = True
            channel.wake()

    def subscribe(
        self, run_id: str, kinds: "Collection[str] | None", since_seq: int, until_seq: "int | None" = None
    ) -> Subscription:
        return Subscription(self._channel(run_id), kinds, since_seq, until_seq)

    async def stream(
        self,
        read: StoreReader,
        run_id: str,
        since_seq: int = 0,
        until_seq: "int | None" = None,
        kinds: "Collection[str] | None" = None,
        live: bool = True,
    ) -> AsyncIterator[pb.EventBatch]:
        """Stored events, then live ones, until `until_seq` or the end of the run. live=False: only stored ones."""
        channel = self._channel(run_id) if live else _closed_channel()
        subscription = Subscription(channel, kinds, since_seq, until_seq)
        try:
            async for batch in self._stored(read, subscription, until_seq, kinds):
                yield batch
            async for batch in subscription:
                yield batch
        finally:
            subscription.close()
            self._drop_if_idle(run_id)

    def texts(self, run_id: str) -> int:
        """A number that increases when log text arrives: get it before reading, and pass it to wait_for_text."""
        channel = self._channels.get(run_id)
        return channel.texts if channel else 0

    async def wait_for_text(self, run_id: str, seen: int) -> bool:
        """Wait for text newer than `seen`. True if there is some; False if the run is closed without any."""
        channel = self._channel(run_id)
        channel.listeners += 1
        try:
            while channel.texts <= seen and not channel.is_closed:
                await channel.change()
        finally:
            channel.listeners -= 1
            self._drop_if_idle(run_id)
        return channel.texts > seen

    async def _stored(
        self, read: StoreReader, subscription: Subscription, until: "int | None", kinds: "Collection[str] | None"
    ) -> AsyncIterator[pb.EventBatch]:
        """Pages from the store, until the ring continues or the store has no more."""
        while not (subscription.is_done or subscription.has_reached_ring):
            page = await read(subscription.position, until, kinds, PAGE_EVENTS)
            if page.is_renumbered and page.last_seq < subscription.position:
                yield subscription.start_over()  # what this subscriber has seen had the old numbers
                continue
            subscription.skip_to(page.through)
            if page.batch.events:
                yield page.batch
            if page.through >= page.last_seq and not subscription.needs_from_store:
                break

    def _live(self, run_id: str) -> Channel:
        """The run's channel; a closed one is opened again (a spool that is drained late)."""
        self._ended.pop(run_id, None)
        return self._channels.setdefault(run_id, Channel())

    def _channel(self, run_id: str) -> Channel:
        if run_id in self._ended:
            return _closed_channel()
        return self._channels.setdefault(run_id, Channel())

    def _drop_if_idle(self, run_id: str) -> None:
        """Delete a channel that was created only for a reader of a run without telemetry."""
        channel = self._channels.get(run_id)
        if channel and not channel.listeners and not channel.ring.last and not channel.texts:
            del self._channels[run_id]


def _closed_channel() -> Channel:
    channel = Channel()
    channel.is_closed = True
    return channel


def _joined(entries: list[Entry], after: int, kinds: "frozenset[str] | None") -> pb.EventBatch:
    if len(entries) == 1:
        return entries[0].after(after, kinds)
    batch = pb.EventBatch()
    for entry in entries:
        batch.events.MergeFrom(entry.after(after, kinds).events)
    return batch


def _up_to(batch: pb.EventBatch, until: int) -> pb.EventBatch:
    return pb.EventBatch(events=[event for event in batch.events if event.seq <= until])
