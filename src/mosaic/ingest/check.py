"""What a publish must be before the store touches it. Whatever fails here is refused whole."""

from mosaic.model.errors import BadBatch, WrongOffset
from mosaic.wire import mosaic_pb2 as pb

LARGEST = 2**63 - 1  # SQLite's integers are signed; the wire's offsets are not


def check(request: pb.PublishTelemetryRequest, run_id: str, next_offset: int) -> None:
    """Raise WrongOffset or BadBatch unless the batch continues this run's stream and hangs together."""
    if request.run_id != run_id:
        raise BadBatch(run_id, f"the batch is of run '{request.run_id}'")
    if request.start != next_offset:
        raise WrongOffset(run_id, pb.Stream.Name(request.stream).lower(), request.start, next_offset)
    if not request.start <= request.end <= LARGEST:
        raise BadBatch(run_id, f"the range {request.start}..{request.end} is impossible")
    if request.start == request.end and (request.events or request.texts or request.rejects):
        raise BadBatch(run_id, "no bytes, and yet something was parsed from them")
    _check_places(request, run_id)


def _check_places(request: pb.PublishTelemetryRequest, run_id: str) -> None:
    at = request.start
    for text in request.texts:
        if text.stream != request.stream or text.offset < at or text.offset + len(text.text) > request.end:
            raise BadBatch(run_id, f"log text at {text.offset} overlaps another or lies outside the range")
        if not text.text:
            raise BadBatch(run_id, f"the log text at {text.offset} is empty")
        at = text.offset + len(text.text)
    for reject in request.rejects:
        inside = request.start <= reject.offset and reject.offset + reject.length <= request.end
        if reject.stream != request.stream or not inside:
            raise BadBatch(run_id, f"the reject at {reject.offset} lies outside the range")
    for gap in request.gaps:  # a spool that shrank: its place may lie below the range
        if gap.stream != request.stream or gap.offset > request.end or gap.length > LARGEST:
            raise BadBatch(run_id, f"the gap at {gap.offset} is impossible")
