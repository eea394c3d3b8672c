"""WatchRuns: which changes of the runs one client has not received yet."""

import asyncio
import time
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field, replace

from mosaic.daemon.listing import chunks
from mosaic.daemon.trainer import Trainer
from mosaic.model.run import RunRecord
from mosaic.model.states import RunState
from mosaic.registry.registry import Registry
from mosaic.wire import mosaic_pb2 as pb
from mosaic.wire.bounds import PAGE_BYTES

SILENCE_S = 5.0  # then an empty reply shows that the daemon is alive
SETTLING_S = 10.0  # the summary of a run that has just ended may not be in the index yet


@dataclass(frozen=True)
class Query:
    """The runs that a client requested."""

    states: tuple[RunState, ...] = ()  # empty: all
    limit: int = 0  # only the newest; 0: all
    run_ids: tuple[str, ...] = ()  # empty: all
    experiment: str = ""  # only its runs; empty: all

    def select(self, registry: Registry) -> tuple[list[RunRecord], int]:
        """The matching runs, newest first, and their number without the limit."""
        if not self.run_ids:
            found = registry.list(self.states, self.limit, experiment=self.experiment)
            return found, registry.count(self.states, self.experiment)
        named = [registry.get(run_id) for run_id in self.run_ids if registry.has(run_id)]
        found = [record for record in named if not self.states or record.state in self.states]
        found = [record for record in found if self.experiment in ("", record.membership.experiment)]
        return found[: self.limit or None], len(found)


@dataclass
class Sent:
    """What the client has received: the revision and the message of each run."""

    revisions: dict[str, int] = field(default_factory=dict)
    messages: dict[str, bytes] = field(default_factory=dict)

    def may_differ(self, record: RunRecord, now: float) -> bool:
        """Whether a run has to be read again. A run that has been over for a while does not."""
        is_settled = record.state.is_over and not record.telemetry and now - record.updated_at > SETTLING_S
        return not is_settled or self.revisions.get(record.run_id) != record.revision

    def news(self, records: Sequence[RunRecord], infos: Sequence[pb.RunInfo]) -> tuple[list[pb.RunInfo], list[str]]:
        """The `infos` that have changed, and the ids of deleted runs. Both count as sent from now on."""
        self.revisions = {record.run_id: record.revision for record in records}
        messages = {info.run_id: info.SerializeToString(deterministic=True) for info in infos}
        changed = [info for info in infos if self.messages.get(info.run_id) != messages[info.run_id]]
        gone = [run_id for run_id in self.messages if run_id not in self.revisions]
        self.messages = {
            run_id: message for run_id, message in (self.messages | messages).items() if run_id in self.revisions
        }
        return changed, gone


class Selection:
    """The requested rows, read again only if any row has changed: ten thousand take a while."""

    def __init__(self, query: Query) -> None:
        self._query = query
        self._revision = -1
        self._found: tuple[list[RunRecord], int] = ([], 0)

    def read(self, registry: Registry) -> tuple[list[RunRecord], int]:
        revision = registry.revision()
        if revision != self._revision:
            self._revision, self._found = revision, self._query.select(registry)
        return self._found


async def watch(trainer: Trainer, query: Query, interval_s: float) -> AsyncIterator[pb.ListRunsReply]:
    """First every matching run, then only changes."""
    named = [(await trainer.find(run_id)).run_id for run_id in query.run_ids]
    selection, sent = Selection(replace(query, run_ids=tuple(named))), Sent()
    sent_at: float | None = None
    while True:
        records, total = await trainer.registry.do(selection.read)
        fresh = [record for record in records if sent.may_differ(record, time.time())]
        reply = pb.ListRunsReply(total=total)
        async for part in _changes(trainer, sent, records, fresh):
            if reply.runs and reply.ByteSize() + part.ByteSize() > PAGE_BYTES:
                reply.continues = True
                yield reply
                reply = pb.ListRunsReply(total=total)
            reply.MergeFrom(part)
        if sent_at is None or reply.runs or reply.deleted or time.monotonic() - sent_at > SILENCE_S:
            sent_at = time.monotonic()
            yield reply
        await asyncio.sleep(interval_s)


async def _changes(
    trainer: Trainer, sent: Sent, records: Sequence[RunRecord], fresh: Sequence[RunRecord]
) -> AsyncIterator[pb.ListRunsReply]:
    """What the client has not received, in parts that are much smaller than a page."""
    for chunk in chunks(fresh):
        changed, gone = sent.news(records, await trainer.infos(chunk))
        yield pb.ListRunsReply(runs=changed, deleted=gone)
    if not fresh:
        yield pb.ListRunsReply(deleted=sent.news(records, [])[1])
