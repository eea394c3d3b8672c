"""Pages of listings: a reply over gRPC's limit would break the very commands that make room."""

from collections.abc import AsyncIterator, Iterator, Sequence
from itertools import dropwhile

from mosaic.daemon.trainer import Trainer
from mosaic.ingest.check import LARGEST
from mosaic.model.run import RunRecord
from mosaic.wire import mosaic_pb2 as pb
from mosaic.wire.bounds import PAGE_BYTES, REPLY_BYTES
from mosaic.wire.convert import state_from_wire

CHUNK_RUNS = 250  # read at once; other calls are answered in between


async def list_runs(trainer: Trainer, request: pb.ListRunsRequest) -> pb.ListRunsReply:
    """One page of runs. It ends at a run's number, so runs that are added or deleted do not shift the next page."""
    states = tuple(map(state_from_wire, request.states))
    if request.experiment:
        await trainer.registry.do(lambda r: r.experiments.get(request.experiment))  # UnknownExperiment
    most = request.page_runs if 0 < request.page_runs < (request.limit or LARGEST) else request.limit
    before = min(request.before, LARGEST)
    # One more shows whether there is another page.
    records = await trainer.registry.do(lambda r: r.list(states, most + 1 if most else 0, before, request.experiment))
    total = await trainer.registry.do(lambda r: r.count(states, request.experiment))
    reply = pb.ListRunsReply(total=total)
    room = PAGE_BYTES if request.page_runs else REPLY_BYTES
    last = 0
    async for record, info in each_run(trainer, records[: most or None]):
        room -= info.ByteSize() + 8
        if room < 0 and last:
            reply.next = last
            return reply
        reply.runs.append(info)
        last = record.number
    if most and len(records) > most and most != request.limit:
        reply.next = last
    return reply


def chunks(records: Sequence[RunRecord]) -> Iterator[Sequence[RunRecord]]:
    return (records[start : start + CHUNK_RUNS] for start in range(0, len(records), CHUNK_RUNS))


async def each_run(trainer: Trainer, records: Sequence[RunRecord]) -> AsyncIterator[tuple[RunRecord, pb.RunInfo]]:
    """The runs with what a listing shows of them."""
    for chunk in chunks(records):
        for pair in zip(chunk, await trainer.infos(chunk), strict=True):
            yield pair


def curve_names(names: Sequence[str], after: str) -> pb.Curve:
    """One page of sorted names."""
    reply, room = pb.Curve(), PAGE_BYTES
    for name in dropwhile(lambda name: bool(after) and name <= after, names):
        room -= len(name.encode()) + 8
        if room < 0 and reply.known_names:
            reply.has_more_names = True
            break
        reply.known_names.append(name)
    return reply
