"""A run's log text as a stream: the stored text and, with `follow`, new text as it arrives."""

from collections.abc import AsyncIterator

from mosaic.ingest.check import LARGEST
from mosaic.ingest.receive import Ingest
from mosaic.model.rundir import RunDir
from mosaic.wire import mosaic_pb2 as pb

STREAMS = (pb.STDOUT, pb.STDERR)


async def stream_logs(
    ingest: Ingest, rundir: RunDir, request: pb.StreamLogsRequest, live: bool = True
) -> AsyncIterator[pb.LogBatch]:
    """Pages of text, rejects and gaps, each stream in order, until the run ends or, without `follow`, all is read."""
    places = await _places(ingest, rundir, request)
    is_over = not (request.follow and live)
    while True:
        seen = ingest.broadcaster.texts(
            rundir.run_id
        )  # before reading, so that text that arrives meanwhile is not missed
        for stream in STREAMS:
            async for batch in _stored(ingest, rundir, stream, places):
                yield batch
        if is_over:
            return
        is_over = not await ingest.broadcaster.wait_for_text(rundir.run_id, seen)


async def _stored(
    ingest: Ingest, rundir: RunDir, stream: pb.Stream, places: "dict[pb.Stream, int]"
) -> AsyncIterator[pb.LogBatch]:
    while True:
        page = await ingest.logs(rundir, stream, places[stream])
        if page.next_offset == places[stream]:
            return
        places[stream] = page.next_offset
        if page.batch.ByteSize():
            yield page.batch


async def _places(ingest: Ingest, rundir: RunDir, request: pb.StreamLogsRequest) -> "dict[pb.Stream, int]":
    if not request.tail_bytes:
        return {pb.STDOUT: min(request.since_stdout, LARGEST), pb.STDERR: min(request.since_stderr, LARGEST)}
    cursor = await ingest.cursor(rundir)
    ends = {pb.STDOUT: cursor.stdout_offset, pb.STDERR: cursor.stderr_offset}
    return {stream: max(0, end - request.tail_bytes) for stream, end in ends.items()}
