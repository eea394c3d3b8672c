"""Reads what is keyed by its offset in the spool: log text, rejects, gaps."""

import sqlite3
from dataclasses import dataclass

from mosaic.wire import mosaic_pb2 as pb


@dataclass(frozen=True)
class LogPage:
    batch: pb.LogBatch
    next_offset: int  # the batch has everything from the start of the page up to this offset


def read_logs(db: sqlite3.Connection, stream: pb.Stream, start: int, stored: int, max_bytes: int) -> LogPage:
    """A page from byte `start` on, with about `max_bytes` of text at most; `stored` is the end of the stream."""
    batch = pb.LogBatch()
    end = _add_texts(db, batch, stream, start, max_bytes)
    end = _add_rejects(db, batch, stream, start, stored if end is None else end, max_bytes)
    # A gap at the very end belongs to the page that reaches it; a page that starts there must not repeat it.
    last = end if start < end == stored else end - 1
    for offset, length, reason in db.execute(_GAPS, (stream, start, last)):
        batch.gaps.add(stream=stream, offset=offset, length=length, reason=reason)
    return LogPage(batch, max(start, end))


def _add_texts(
    db: sqlite3.Connection, batch: pb.LogBatch, stream: pb.Stream, start: int, max_bytes: int
) -> "int | None":
    """The offset at which the page is full, or None if all text fits. A long text is split between pages."""
    room = max(1, max_bytes)
    for offset, text in db.execute(_TEXTS, {"stream": stream, "start": start}):
        piece = text[max(0, start - offset) :]
        if not piece:
            continue
        begin = max(offset, start)
        batch.texts.add(stream=stream, offset=begin, text=piece[:room])
        room -= len(piece)
        if room <= 0:
            return int(begin) + len(batch.texts[-1].text)
    return None


def _add_rejects(
    db: sqlite3.Connection, batch: pb.LogBatch, stream: pb.Stream, start: int, end: int, max_bytes: int
) -> int:
    room = max(1, max_bytes)
    for offset, length, reason, head in db.execute(_REJECTS, (stream, start, end)):
        if room <= 0:
            return _cut(batch, offset)
        batch.rejects.add(stream=stream, offset=offset, length=length, reason=reason, head=head)
        room -= len(head) + len(reason)
    return end


def _cut(batch: pb.LogBatch, end: int) -> int:
    """Drop the texts from `end` on: they belong to the next page."""
    while batch.texts and batch.texts[-1].offset >= end:
        del batch.texts[-1]
    return end


# The text that contains `start` may begin before it.
_TEXTS = """
SELECT offset, text FROM logs
WHERE stream = :stream AND offset >= coalesce(
  (SELECT max(offset) FROM logs WHERE stream = :stream AND offset <= :start), :start)
ORDER BY offset
"""

_REJECTS = """
SELECT offset, length, reason, head FROM rejects WHERE stream = ? AND offset >= ? AND offset < ? ORDER BY offset
"""
_GAPS = "SELECT offset, length, reason FROM gaps WHERE stream = ? AND offset BETWEEN ? AND ? ORDER BY offset"
