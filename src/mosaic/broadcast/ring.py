"""The newest events of one run, in the batches in which they arrived.

    entries   [ 1 … 900 ][ 901 … 902 ][ 903 … 1900 ] …        first and last seq of each; there are no gaps between them

Limited in events and, because observations can be large, in bytes. The newest batch always stays.
"""

from bisect import bisect_right
from collections.abc import Collection, Iterable, Iterator

from mosaic.wire import mosaic_pb2 as pb

HELD_EVENTS = 4096  # for new subscribers …
HELD_FOR_LISTENERS = 3 * HELD_EVENTS  # … and more while there are subscribers, which may be behind
HELD_BYTES = 8 << 20

Kinds = Collection[str]


class Entry:
    """A batch, shared by all subscribers, and the parts of it for those that request only some kinds."""

    def __init__(self, batch: pb.EventBatch) -> None:
        self.batch = batch
        self.first = batch.events[0].seq
        self.last = batch.events[-1].seq
        self.bytes = batch.ByteSize()
        self._chosen: dict[frozenset[str], pb.EventBatch] = {}

    def __len__(self) -> int:
        return self.last - self.first + 1

    def after(self, seq: int, kinds: "frozenset[str] | None") -> pb.EventBatch:
        """Its events after `seq`; the shared batch itself if these are all of them."""
        batch = self.batch if kinds is None else self._only(kinds)
        if seq < self.first:
            return batch
        return _batch_of(event for event in batch.events if event.seq > seq)

    def _only(self, kinds: "frozenset[str]") -> pb.EventBatch:
        # Selected once: two hundred subscribers may request the same steps.
        if kinds not in self._chosen:
            chosen = [event for event in self.batch.events if event.WhichOneof("kind") in kinds]
            # Most batches are of one kind; copying those would cost as much as adding them to the ring did.
            self._chosen[kinds] = self.batch if len(chosen) == len(self) else _batch_of(chosen)
        return self._chosen[kinds]


class Ring:
    """Promise: its events are consecutive and end with the newest one."""

    def __init__(self, last_seq: int = 0) -> None:
        self.last = last_seq
        self._entries: list[Entry] = []
        self._firsts: list[int] = []
        self._events = 0
        self._bytes = 0

    @property
    def first(self) -> int:
        """The oldest seq in the ring; last + 1 if it is empty."""
        return self._firsts[0] if self._firsts else self.last + 1

    def append(self, batch: pb.EventBatch, listened: bool = False) -> None:
        entry = Entry(batch)
        if entry.first != self.last + 1:
            self.clear()  # events in between were never published: start over
        self._entries.append(entry)
        self._firsts.append(entry.first)
        self._events += len(entry)
        self._bytes += entry.bytes
        self.last = entry.last
        self._trim(HELD_FOR_LISTENERS if listened else HELD_EVENTS)

    def entries_after(self, seq: int) -> Iterator[Entry]:
        """Entries with events after `seq`, oldest first."""
        start = max(0, bisect_right(self._firsts, seq + 1) - 1)
        for entry in self._entries[start:]:
            if entry.last > seq:
                yield entry

    def clear(self) -> None:
        self._entries.clear()
        self._firsts.clear()
        self._events = self._bytes = 0

    def _trim(self, most_events: int) -> None:
        spare = 0
        while spare < len(self._entries) - 1 and self._is_too_much(self._entries[spare], most_events):
            self._events -= len(self._entries[spare])
            self._bytes -= self._entries[spare].bytes
            spare += 1
        del self._entries[:spare], self._firsts[:spare]

    def _is_too_much(self, oldest: Entry, most_events: int) -> bool:
        return self._bytes > HELD_BYTES or self._events - len(oldest) >= most_events


def _batch_of(events: Iterable[pb.Event]) -> pb.EventBatch:
    batch = pb.EventBatch()
    batch.events.extend(events)
    return batch
