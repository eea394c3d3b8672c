"""Reads events: the rows of four tables, merged by seq."""

import sqlite3
from collections.abc import Collection
from dataclasses import dataclass

from mosaic.ingest.names import NameSets
from mosaic.ingest.rows import KINDS, TABLES, Row, fill
from mosaic.wire import mosaic_pb2 as pb

PAGE_BYTES = 1 << 20

Found = tuple[int, str, Row]  # seq, kind, row


@dataclass(frozen=True)
class EventPage:
    batch: pb.EventBatch
    through: int  # every event of the requested kinds up to this seq is in the batch
    last_seq: int  # of the run at the time of reading
    is_renumbered: bool = False  # the file was rebuilt with a gap: its events once had other numbers


class EventReader:
    """The events of a run up to `last_seq`. No kinds means all kinds."""

    def __init__(self, db: sqlite3.Connection, names: NameSets, last_seq: int, is_renumbered: bool = False) -> None:
        self._db = db
        self._names = names
        self._last_seq = last_seq
        self._is_renumbered = is_renumbered

    def page(self, since: int, until: int, kinds: "Collection[str] | None", limit: int) -> EventPage:
        until = min(until, self._last_seq)
        if not kinds:
            until = min(until, since + limit)  # there are no gaps in seq, so the range limits the number
        found = self._find(kinds, "seq > ? AND seq <= ? ORDER BY seq LIMIT ?", (since, until, limit))
        fits = self._first_bytes(found[:limit])
        complete = len(fits) == len(found) and (not kinds or len(found) < limit)
        through = max(since, until) if complete else fits[-1][0]
        return EventPage(self._batch(fits), through, self._last_seq, self._is_renumbered)

    def tail(self, n: int, kinds: "Collection[str] | None") -> pb.EventBatch:
        return self._batch(self._newest(n, kinds))

    def since_of_tail(self, n: int, kinds: "Collection[str] | None") -> int:
        if not kinds:
            return max(0, self._last_seq - n)
        newest = self._newest(n, kinds)
        return newest[0][0] - 1 if newest else self._last_seq

    def _newest(self, n: int, kinds: "Collection[str] | None") -> list[Found]:
        since = self._last_seq - n if not kinds else 0
        found = self._find(kinds, "seq > ? ORDER BY seq DESC LIMIT ?", (since, n))
        return found[-n:] if n > 0 else []

    def _find(self, kinds: "Collection[str] | None", where: str, values: "tuple[int, ...]") -> list[Found]:
        found = [
            (row[0], kind, row)
            for kind in KINDS
            if not kinds or kind in kinds
            for row in self._db.execute(f"SELECT * FROM {TABLES[kind]} WHERE {where}", values)
        ]
        found.sort()  # by seq, which is unique
        return found

    def _batch(self, found: list[Found]) -> pb.EventBatch:
        batch = pb.EventBatch()
        for _, kind, row in found:
            fill(batch, kind, row, self._names)
        return batch

    def _first_bytes(self, found: list[Found]) -> list[Found]:
        """The first rows, as many as fit into a page, at least one."""
        size = 0
        for place, (_, kind, row) in enumerate(found):
            size += 64 + sum(len(part) for part in row[-2:] if isinstance(part, bytes))
            if kind == "metric":
                size += self._names.size(row[3])
            if size > PAGE_BYTES and place:
                return found[:place]
        return found
