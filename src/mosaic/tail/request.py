"""Builds publish requests: one piece of the spool becomes one request with its range and what was parsed from it."""

import time
from collections.abc import Iterator

from mosaic.tail.parse import Parser, Request, add_reject, add_text
from mosaic.tail.spool_reader import LINE_BYTES, Hole, Lines, LongLine, Piece, Shrunk
from mosaic.wire import mosaic_pb2 as pb

REQUEST_BYTES = 1 << 20


class Requests:
    """Builds the requests of one run."""

    def __init__(self, run_id: str, parser: Parser) -> None:
        self._run_id = run_id
        self._parser = parser

    def of(self, stream: pb.Stream, piece: Piece) -> Request:
        request = Request(run_id=self._run_id, stream=stream, start=piece.start, end=piece.end)
        match piece:
            case Lines() if stream == pb.STDOUT:
                self._parser.parse(piece.data, piece.start, time.time_ns(), request)
            case Lines():
                add_text(request, stream, piece.data, piece.start)
                self._parser.look(piece.data, request)
            case LongLine():
                length = piece.end - piece.start
                reason = f"too long: {length} bytes, a line may have {LINE_BYTES}"
                add_reject(request, stream, piece.start, length, reason, piece.head)
            case Hole():
                length = piece.end - piece.start
                request.gaps.add(stream=stream, offset=piece.start, length=length, reason="a hole in the spool")
            case Shrunk():
                length = piece.start - piece.size
                reason = f"the spool shrank from {piece.start} to {piece.size} bytes"
                request.gaps.add(stream=stream, offset=piece.size, length=length, reason=reason)
        return request

    def small(self, stream: pb.Stream, piece: Piece) -> Iterator[tuple[Piece, Request]]:
        """The requests of a piece, in order, each at most 1 MiB; only a single long line makes a larger one."""
        request = self.of(stream, piece)
        halves = piece.halves() if isinstance(piece, Lines) and request.ByteSize() > REQUEST_BYTES else None
        if not halves:
            yield piece, request
            return
        for half in halves:
            yield from self.small(stream, half)

    def refused(self, stream: pb.Stream, piece: Piece, why: str) -> Request:
        """A range that the daemon cannot accept, kept as one reject, so that nothing stalls and nothing is lost."""
        request = Request(run_id=self._run_id, stream=stream, start=piece.start, end=piece.end)
        head = piece.data if isinstance(piece, Lines) else b""
        reason = f"refused by the daemon: {why}"
        add_reject(request, stream, piece.start, piece.end - piece.start, reason, head)
        return request

    def empty(self, stream: pb.Stream, offset: int) -> Request:
        return Request(run_id=self._run_id, stream=stream, start=offset, end=offset)
