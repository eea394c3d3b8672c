"""From a piece of the spool to its requests."""

from tail_store import RUN_ID

from mosaic.tail.parse import Parser
from mosaic.tail.request import REQUEST_BYTES, Requests
from mosaic.tail.spool_reader import Hole, Lines, LongLine, Shrunk
from mosaic.wire import mosaic_pb2 as pb

requests = Requests(RUN_ID, Parser(RUN_ID))


def test_a_piece_that_makes_too_long_a_request_is_split_at_the_ends_of_lines():
    data = b'{"type": "metric", "values": {"a": 1, "b": 2}}\na line of text\n' * 100_000

    made = list(requests.small(pb.STDOUT, Lines(7, data)))

    assert len(made) > 1
    assert max(request.ByteSize() for _, request in made) <= REQUEST_BYTES
    assert [request.start for _, request in made] == [7] + [request.end for _, request in made[:-1]]
    assert made[-1][1].end == 7 + len(data)
    assert sum(len(request.events) for _, request in made) == 100_000
    assert b"".join(part.data for part, _ in made) == data


def test_a_single_line_is_never_split():
    data = b"x" * (2 << 20) + b"\n"

    ((_, request),) = requests.small(pb.STDOUT, Lines(0, data))

    assert b"".join(text.text for text in request.texts) == data


def test_a_long_line_a_hole_and_a_shrunk_file_report_where_and_why():
    long = requests.of(pb.STDERR, LongLine(10, 9_000_000, b"head"))
    hole = requests.of(pb.STDOUT, Hole(5, 25))
    shrunk = requests.of(pb.STDOUT, Shrunk(100, 100, 30))

    assert (long.start, long.end) == (10, 9_000_000)
    assert (long.rejects[0].stream, long.rejects[0].offset, long.rejects[0].length) == (pb.STDERR, 10, 8_999_990)
    assert (hole.gaps[0].offset, hole.gaps[0].length, hole.end) == (5, 20, 25)
    assert (shrunk.start, shrunk.end) == (100, 100)
    assert (shrunk.gaps[0].offset, shrunk.gaps[0].length) == (30, 70)
    assert "from 100 to 30" in shrunk.gaps[0].reason
