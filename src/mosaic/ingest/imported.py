"""Rows of an imported run, from columns: an event file has millions of values, and a message for each would be slow."""

from array import array
from collections.abc import Iterator
from itertools import accumulate, repeat

from mosaic.ingest.names import NameSets
from mosaic.ingest.rows import KINDS, Row, Rows, rows_of
from mosaic.model.errors import BadBatch
from mosaic.wire import mosaic_pb2 as pb


def imported_rows(batch: pb.ImportBatch, after: int, names: NameSets, run_id: str, episodes: int) -> Rows:
    """The rows of a batch, numbered after + 1, after + 2 … in the order of its `places`; or BadBatch."""
    _check(batch, run_id)
    rows = Rows()
    for number, (event, place) in enumerate(zip(batch.events, batch.places, strict=True)):
        one = rows_of((event,), after + place + number, names, run_id, episodes + len(rows.episode))
        for kind in KINDS:
            rows.of(kind).extend(one.of(kind))
    # Metrics come in columns only, so the list is still empty.
    rows.metric.extend(_metric_rows(batch, after, names, run_id))
    return rows


def _check(batch: pb.ImportBatch, run_id: str) -> None:
    many = len(batch.metric_sets)
    if len(batch.metric_ts_ns) != many or len(batch.metric_steps) != many:
        raise BadBatch(run_id, "the columns of a batch have different lengths")
    if max(batch.metric_sets, default=-1) >= len(batch.name_sets):
        raise BadBatch(run_id, "a batch has a metric without names")
    widths = [len(one.names) for one in batch.name_sets]
    if sum(map(widths.__getitem__, batch.metric_sets)) != len(batch.values):
        raise BadBatch(run_id, "a batch has more names than values, or fewer")
    if len(batch.places) != len(batch.events) or list(batch.places) != sorted(batch.places):
        raise BadBatch(run_id, "the places of a batch are not in order")
    if max(batch.places, default=0) > many:
        raise BadBatch(run_id, "a place of a batch is after its end")
    if any(event.WhichOneof("kind") == "metric" for event in batch.events):
        raise BadBatch(run_id, "a batch has metrics outside its columns")


def _metric_rows(batch: pb.ImportBatch, after: int, names: NameSets, run_id: str) -> Iterator[Row]:
    try:
        refs = [names.ref(tuple(one.names)) for one in batch.name_sets]
    except ValueError as error:
        raise BadBatch(run_id, str(error)) from error
    sets = list(batch.metric_sets)
    sizes = [8 * len(one.names) for one in batch.name_sets]
    ends = [*accumulate(map(sizes.__getitem__, sets), initial=0)]
    packed = array("d", batch.values).tobytes()
    values = map(packed.__getitem__, map(slice, ends, ends[1:]))
    columns = (batch.metric_ts_ns, batch.metric_steps, map(refs.__getitem__, sets), values)
    return zip(_numbers(batch, after), *columns, repeat(b"", len(sets)), strict=True)


def _numbers(batch: pb.ImportBatch, after: int) -> Iterator[int]:
    """The seqs of the metric events: the other events take the ones between."""
    done, many = 0, len(batch.metric_sets)
    for before, place in enumerate(batch.places):
        yield from range(after + done + before + 1, after + place + before + 1)
        done = place
    skipped = len(batch.places)
    yield from range(after + done + skipped + 1, after + many + skipped + 1)
