"""Checks a publish before the store writes anything. A batch that fails is refused as a whole."""

from mosaic.model.errors import BadBatch, WrongOffset
from mosaic.wire import mosaic_pb2 as pb

LARGEST = 2**63 - 1  # SQLite's integers are signed; the wire's offsets are not


def check(request: pb.PublishTelemetryRequest, run_id: str, next_offset: int) -> None:
    """Raise WrongOffset or BadBatch unless the batch continues this run's stream and is consistent."""
    if request.run_id != run_id:
        raise BadBatch(run_id, f"the batch belongs to run '{request.run_id}'")
    if request.start != next_offset:
        raise WrongOffset(run_id, pb.Stream.Name(request.stream).lower(), request.start, next_offset)
    if not request.start <= request.end <= LARGEST:
        raise BadBatch(run_id, f"{request.start}..{request.end} is not a valid range")
    if request.start == request.end and (request.events or request.texts or request.rejects):
        raise BadBatch(run_id, "the range is empty, but the batch is not")
    _check_places(request, run_id)


def _check_places(request: pb.PublishTelemetryRequest, run_id: str) -> None:
    at = request.start
    for text in request.texts:
        if text.stream != request.stream or text.offset < at or text.offset + len(text.text) > request.end:
            raise BadBatch(run_id, f"the log text at {text.offset} overlaps another or is outside the range")
        if not text.text:
            raise BadBatch(run_id, f"the log text at {text.offset} is empty")
        at = text.offset + len(text.text)
    for reject in request.rejects:
        inside = request.start <= reject.offset and reject.offset + reject.length <= request.end
        if reject.stream != request.stream or not inside:
            raise BadBatch(run_id, f"the reject at {reject.offset} is outside the range")
    for gap in request.gaps:  # if a spool shrank, the gap may be before the range
        if gap.stream != request.stream or gap.offset > request.end or gap.length > LARGEST:
            raise BadBatch(run_id, f"the gap at {gap.offset} is not valid")
