"""Pages of listings: a reply over gRPC's limit would break the very commands that make room."""

from collections.abc import AsyncIterator, Iterator, Sequence
from functools import partial
from itertools import dropwhile

from mosaic.daemon.asking import Question
from mosaic.daemon.trainer import Trainer
from mosaic.ingest.check import LARGEST
from mosaic.model.errors import BadQuery
from mosaic.model.run import RunRecord
from mosaic.model.states import RunState
from mosaic.registry.queries import Row
from mosaic.registry.registry import Registry
from mosaic.wire import mosaic_pb2 as pb
from mosaic.wire.bounds import PAGE_BYTES, REPLY_BYTES
from mosaic.wire.convert import state_from_wire

CHUNK_RUNS = 250  # read at once; other calls are answered in between


async def list_runs(trainer: Trainer, request: pb.ListRunsRequest) -> pb.ListRunsReply:
    """One page of runs. It ends at a run's number, so runs that are added or deleted do not shift the next page."""
    states = tuple(map(state_from_wire, request.states))
    if request.experiment:
        await trainer.registry.do(lambda r: r.experiments.get(request.experiment))  # UnknownExperiment
    if request.where or request.sort or request.setting_keys:
        return await _list_asked(trainer, request, states)
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


async def _list_asked(trainer: Trainer, request: pb.ListRunsRequest, states: Sequence[RunState]) -> pb.ListRunsReply:
    """One page of the runs that match a condition; with an order, all of them in one reply."""
    question = await Question.of(trainer, request.where, request.sort, request.setting_keys)
    most = min(request.page_runs or LARGEST, request.limit or LARGEST)
    before = 0 if question.sort else min(request.before, LARGEST)
    # Only the first page says how many there are; the others stop when they are full.
    rows = await question.matches(trainer, states, before, most + 1 if before else 0, request.experiment)
    reply = pb.ListRunsReply(total=len(rows) if not before else 0)
    if question.sort:
        rows, most = await question.order(trainer, rows), request.limit or LARGEST
    added = await _add_rows(trainer, question, reply, rows[:most], PAGE_BYTES if request.page_runs else REPLY_BYTES)
    if question.sort and added < len(rows[:most]):
        raise BadQuery(f"{len(rows):,} runs match, too many for one reply in an order. Ask for fewer with a limit.")
    if added < len(rows) and added < (request.limit or LARGEST):
        reply.next = rows[added - 1]["number"]
    return reply


async def _add_rows(
    trainer: Trainer, question: Question, reply: pb.ListRunsReply, rows: Sequence[Row], room: int
) -> int:
    """Add runs until the reply is full. Returns how many rows are done, those of deleted runs included."""
    for start in range(0, len(rows), CHUNK_RUNS):
        chunk = rows[start : start + CHUNK_RUNS]
        records = await trainer.registry.do(partial(_records_of, rows=chunk))
        infos = {info.run_id: info for info in await trainer.infos(records)}
        values = await question.values(trainer, chunk) if question.shown else {}
        for number, row in enumerate(chunk, start):
            info = infos.get(row["id"], pb.RunInfo())
            info.chosen_settings_json = values.get(row["id"], "")
            room -= info.ByteSize() + 8
            if room < 0 and reply.runs:
                return number
            reply.runs.extend([info] if info.run_id else [])
    return len(rows)


def _records_of(registry: Registry, rows: Sequence[Row]) -> list[RunRecord]:
    return registry.with_ids([row["id"] for row in rows])


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
