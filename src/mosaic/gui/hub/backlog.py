"""What a feed has received and the window has not taken yet, within bounds."""

import threading
from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from mosaic.client.events import Step

if TYPE_CHECKING:
    from mosaic.client.events import Event, LogPiece

EVENT_BYTES = 300  # of an event without its extra fields, about
SOFT_BYTES = 8 << 20  # more: the oldest steps are dropped
HARD_BYTES = 32 << 20  # more, without steps to drop: the reader waits
MOST_RANGES = 4096

Range = tuple[int, int]  # first and last seq


@dataclass
class FeedBatch:
    events: "list[Event]" = field(default_factory=list)
    log: "list[LogPiece]" = field(default_factory=list)
    missed: list[Range] = field(default_factory=list)  # not all of its events were delivered
    renumbered: bool = False  # the events have new numbers, from 1: read again what is shown


class Backlog:
    """Filled by the hub's thread, taken by the GUI's.

    1. It never drops an episode, a metric, a lifecycle event or log text. 2. Dropped steps are in a missed range.
    """

    def __init__(self, may_drop: bool, soft_bytes: int = SOFT_BYTES, hard_bytes: int = HARD_BYTES) -> None:
        self._may_drop = may_drop
        self._soft_bytes = soft_bytes
        self._hard_bytes = hard_bytes
        self._batch = FeedBatch()
        self._bytes = 0
        self._thinned: Range | None = None  # of this batch: its steps were dropped
        self._thinned_before: deque[Range] = deque(maxlen=MOST_RANGES)
        self._skipped: deque[Range] = deque(maxlen=MOST_RANGES)  # by the daemon, with events of all kinds
        self._lock = threading.Lock()

    @property
    def is_full(self) -> bool:
        """The reader must wait until the window has taken some of it."""
        return self._bytes > (self._hard_bytes if self._may_drop else self._soft_bytes)

    def add(self, batch: FeedBatch) -> None:
        with self._lock:
            self._batch.events += batch.events
            self._batch.log += batch.log
            self._batch.missed += batch.missed
            self._batch.renumbered |= batch.renumbered
            self._skipped += batch.missed
            self._bytes += sum(map(_weight, batch.events)) + sum(len(piece.text) for piece in batch.log)
            if self._may_drop and self._bytes > self._soft_bytes:
                self._drop_steps()

    def take(self) -> FeedBatch:
        with self._lock:
            batch, self._batch, self._bytes = self._batch, FeedBatch(), 0
            if thinned := self._thinned:
                outside = [skipped for skipped in batch.missed if not _is_in(skipped[0], [thinned])]
                batch.missed = sorted([thinned, *outside])
                self._thinned_before.append(thinned)
            self._thinned = None
            return batch

    def not_taken(self, events: "list[Event]") -> "list[Event]":
        """Of events of a missed range, those that the window has not received: of a thinned range only the steps."""
        with self._lock:
            thinned, skipped = list(self._thinned_before), list(self._skipped)
        return [
            event
            for event in events
            if isinstance(event, Step) or not _is_in(event.seq, thinned) or _is_in(event.seq, skipped)
        ]

    def _drop_steps(self) -> None:
        """Drop the steps among the older half of the events."""
        events = self._batch.events
        half = len(events) // 2
        dropped = [event for event in events[:half] if isinstance(event, Step)]
        if not dropped:
            return
        kept: list[Event] = [event for event in events[:half] if not isinstance(event, Step)]
        self._batch.events = kept + events[half:]
        self._bytes -= sum(map(_weight, dropped))
        # Steps are dropped in order, so this range continues the one before.
        first = self._thinned[0] if self._thinned else dropped[0].seq
        self._thinned = (first, dropped[-1].seq)


def _is_in(seq: int, ranges: list[Range]) -> bool:
    return any(first <= seq <= last for first, last in ranges)


def _weight(event: "Event") -> int:
    return EVENT_BYTES + len(event.extra_json)
