"""WatchRuns: what one client has been told about the runs, and what it has to be told next."""

import asyncio
import time
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field, replace

from mosaic.daemon.trainer import Trainer
from mosaic.model.run import RunRecord
from mosaic.model.states import RunState
from mosaic.registry.registry import Registry
from mosaic.wire import mosaic_pb2 as pb

SILENCE_S = 5.0  # after so long an empty reply shows that the daemon still answers
SETTLING_S = 10.0  # the summary of a run that has just ended may still be on its way into the index


@dataclass(frozen=True)
class Wanted:
    """Which runs a client asked for."""

    states: tuple[RunState, ...] = ()  # empty: all
    limit: int = 0  # the newest so many; 0: all
    run_ids: tuple[str, ...] = ()  # empty: all

    def select(self, registry: Registry) -> tuple[list[RunRecord], int]:
        """Those there are now, newest first, and how many match without the limit."""
        if not self.run_ids:
            return registry.list(self.states, self.limit), registry.count(self.states)
        named = [registry.get(run_id) for run_id in self.run_ids if registry.has(run_id)]
        found = [record for record in named if not self.states or record.state in self.states]
        return found[: self.limit or None], len(found)


@dataclass
class Told:
    """What the client knows: each run's record and message as they were sent."""

    revisions: dict[str, int] = field(default_factory=dict)
    messages: dict[str, bytes] = field(default_factory=dict)

    def may_differ(self, record: RunRecord, now: float) -> bool:
        """Whether a run has to be looked at again; of a thousand that are over, none has."""
        is_settled = record.state.is_over and not record.telemetry and now - record.updated_at > SETTLING_S
        return not is_settled or self.revisions.get(record.run_id) != record.revision

    def news(self, records: Sequence[RunRecord], infos: Sequence[pb.RunInfo]) -> tuple[list[pb.RunInfo], list[str]]:
        """Which of `infos` say something new, and which runs are gone; both count as told from here on."""
        self.revisions = {record.run_id: record.revision for record in records}
        messages = {info.run_id: info.SerializeToString(deterministic=True) for info in infos}
        changed = [info for info in infos if self.messages.get(info.run_id) != messages[info.run_id]]
        gone = [run_id for run_id in self.messages if run_id not in self.revisions]
        self.messages = {
            run_id: message for run_id, message in (self.messages | messages).items() if run_id in self.revisions
        }
        return changed, gone


class Selection:
    """The rows a client asked for, read again only when any row has changed: ten thousand take a while."""

    def __init__(self, wanted: Wanted) -> None:
        self._wanted = wanted
        self._revision = -1
        self._found: tuple[list[RunRecord], int] = ([], 0)

    def read(self, registry: Registry) -> tuple[list[RunRecord], int]:
        revision = registry.revision()
        if revision != self._revision:
            self._revision, self._found = revision, self._wanted.select(registry)
        return self._found


async def watch(trainer: Trainer, wanted: Wanted, interval_s: float) -> AsyncIterator[pb.ListRunsReply]:
    """First every run that matches, then again and again those that changed."""
    named = [(await trainer.find(run_id)).run_id for run_id in wanted.run_ids]
    selection, told = Selection(replace(wanted, run_ids=tuple(named))), Told()
    said_at: float | None = None
    while True:
        records, total = await trainer.registry.do(selection.read)
        fresh = [record for record in records if told.may_differ(record, time.time())]
        changed, gone = told.news(records, await trainer.infos(fresh))
        if said_at is None or changed or gone or time.monotonic() - said_at > SILENCE_S:
            said_at = time.monotonic()
            yield pb.ListRunsReply(runs=changed, total=total, deleted=gone)
        await asyncio.sleep(interval_s)
