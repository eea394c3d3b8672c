"""`mosaic logs`: print the output of a run's worker."""

import argparse
import sys
from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING

from mosaic.cli.connection import connected
from mosaic.cli.verb import RUN_HELP, BadUsage, add_verb, count
from mosaic.model.visible import visible_line
from mosaic.present.log_text import LogText

if TYPE_CHECKING:
    from mosaic.cli.verb import Verbs
    from mosaic.client import TrainerClient
    from mosaic.client.events import LogPiece

FIRST_TAIL_BYTES = 64 * 1024


def add_verbs(verbs: "Verbs") -> None:
    parser = add_verb(
        verbs,
        "logs",
        show_logs,
        "print the output of a run's worker",
        "mosaic logs 01JCQ --tail 20\nmosaic logs 01JCQ -f\nmosaic logs 01JCQ --rejects",
        "Telemetry lines are left out. Colours are removed, and other control characters printed as text (\\u001b).",
    )
    parser.add_argument("run", metavar="RUN", help=RUN_HELP)
    parser.add_argument("-f", "--follow", action="store_true", help="continue until the run is over")
    parser.add_argument("--tail", type=count, metavar="N", help="start with the last N lines of each stream")
    streams = parser.add_mutually_exclusive_group()
    streams.add_argument("--stdout", dest="stream", action="store_const", const="stdout", help="only stdout")
    streams.add_argument("--stderr", dest="stream", action="store_const", const="stderr", help="only stderr")
    parser.add_argument(
        "--raw",
        action="store_true",
        help="print the bytes as they came, also those that your terminal obeys",
    )
    parser.add_argument("--rejects", action="store_true", help="only lines that were rejected or lost, and why")


def show_logs(args: argparse.Namespace) -> int:
    if args.rejects and args.tail is not None:
        raise BadUsage("--tail and --rejects cannot be used together")
    printer = Printer(args.stream, args.raw)
    with connected(args) as client:
        since = {"stdout": 0, "stderr": 0}
        run_id = client.get_run(args.run).run_id  # resolved once, so that `last` cannot become another run meanwhile
        if args.tail is not None:
            tail = tail_pieces(client, run_id, args.tail)
            for stream in since:
                since[stream] = max((piece.end for piece in tail if piece.stream == stream), default=0)
                printer.print(last_lines([p for p in tail if p.stream == stream], args.tail))
            if not args.follow:
                printer.finish()
                return 0
        pieces = client.stream_logs(run_id, args.follow, 0, since["stdout"], since["stderr"])
        printer.print(piece for piece in pieces if piece.problem or not args.rejects)
        printer.finish()
    return 0


def tail_pieces(client: "TrainerClient", run_id: str, lines: int) -> "list[LogPiece]":
    """Pieces that contain at least the last `lines` lines of each stream, if there are that many."""
    tail_bytes, before = FIRST_TAIL_BYTES, None
    while True:
        pieces = list(client.stream_logs(run_id, tail_bytes=tail_bytes))
        by_stream = [[p for p in pieces if p.stream == stream] for stream in ("stdout", "stderr")]
        # Telemetry lines are mixed with log lines, so a tail in bytes may contain few log lines. Look further back
        # until that finds nothing earlier. (The number of pieces is not a criterion: a live run keeps printing.)
        first = [own[0].offset if own else None for own in by_stream]
        if min(map(count_lines, by_stream)) >= lines or (first == before and tail_bytes > 64 * FIRST_TAIL_BYTES):
            return pieces
        tail_bytes, before = tail_bytes * 8, first


def count_lines(pieces: "Iterable[LogPiece]") -> int:
    return sum(1 if piece.problem else piece.text.count(b"\n") for piece in pieces)


def last_lines(pieces: "list[LogPiece]", lines: int) -> "list[LogPiece]":
    """The last `lines` lines; the first piece is cut if needed."""
    kept: list[LogPiece] = []
    for piece in reversed(pieces):
        if lines <= 0:
            break
        own = piece.text.splitlines(keepends=True)
        kept.append(piece if piece.problem else replace(piece, text=b"".join(own[-lines:])))
        lines -= count_lines([piece])
    return kept[::-1]


class Printer:
    """Prints pieces of the log; `is_raw`: exactly the bytes of the worker."""

    def __init__(self, stream: str | None, is_raw: bool) -> None:
        self._only = stream
        self._is_raw = is_raw
        self._texts = {"stdout": LogText(), "stderr": LogText()}

    def print(self, pieces: "Iterable[LogPiece]") -> None:
        for piece in pieces:
            if self._only in (None, piece.stream):
                sys.stdout.buffer.write(self._render(piece))
                sys.stdout.buffer.flush()

    def finish(self) -> None:
        for text in self._texts.values():
            sys.stdout.buffer.write(text.finish().encode())

    def _render(self, piece: "LogPiece") -> bytes:
        if piece.problem or self._is_raw:
            return render(piece)
        return self._texts[piece.stream].receive(piece.text).encode()


def render(piece: "LogPiece") -> bytes:
    if piece.problem:
        head = piece.text[:200].decode(errors="replace").strip()
        line = visible_line(f"[mosaic: {piece.stream} at byte {piece.offset}: {piece.problem}] {head}")
        return f"{line}\n".encode()
    return piece.text
