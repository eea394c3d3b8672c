"""What clients, tailers and workers can ask of the daemon. The owner's token and gRPC's status codes: see guard.py.

Arguments are plain values. Answers about runs are wire messages: they are converted here and only sent.
"""

import asyncio
import json
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any
from weakref import WeakValueDictionary

from mosaic.broadcast.subscribers import Broadcaster
from mosaic.catalog.inspector import Inspector
from mosaic.catalog.secrets import redact
from mosaic.catalog.workers import Catalog
from mosaic.daemon.arrivals import Arrivals
from mosaic.daemon.commands import Commands
from mosaic.daemon.endpoints import Endpoints
from mosaic.daemon.importing import Importer
from mosaic.daemon.incoming import IncomingFiles
from mosaic.daemon.lost_telemetry import why_lost
from mosaic.daemon.node_links import NodeLinks
from mosaic.daemon.nodes import Nodes
from mosaic.daemon.operators import Operators
from mosaic.daemon.parents import Parents
from mosaic.daemon.request_streams import RequestStreams
from mosaic.daemon.sessions import Sessions
from mosaic.daemon.setting_columns import SettingColumns
from mosaic.daemon.submission import IdempotencyKey, Look, prepare, read
from mosaic.dispatch.dispatcher import Dispatcher
from mosaic.dispatch.live_runs import LiveRuns
from mosaic.dispatch.local_launcher import LocalLauncher
from mosaic.ingest.receive import Ingest
from mosaic.model.durable import read_json
from mosaic.model.errors import FolderRemains, KeyTaken, RunIsLive, StoreFailed, StoreUnavailable
from mosaic.model.failpoints import failpoint
from mosaic.model.folder import Removal, remove_folder
from mosaic.model.run import RunRecord, RunSummary
from mosaic.model.rundir import RunDir, StateRoot
from mosaic.registry.registry import Registry
from mosaic.registry.thread import RegistryThread
from mosaic.submit.cancelling import refuse_bad_reason
from mosaic.submit.config import PART
from mosaic.submit.record import record as record_submission
from mosaic.wire import mosaic_pb2 as pb
from mosaic.wire.bounds import LISTED_BYTES, WHOLE_BYTES, document_or_note
from mosaic.wire.convert import move_to_wire, run_to_wire


@dataclass
class Trainer:
    """The parts of a running daemon and the calls on them."""

    root: StateRoot
    registry: RegistryThread
    ingest: Ingest
    broadcaster: Broadcaster
    live_runs: LiveRuns
    dispatcher: Dispatcher
    local: LocalLauncher
    catalog: Catalog
    inspector: Inspector
    parents: Parents
    operators: Operators
    sessions: Sessions
    commands: Commands
    importer: Importer
    endpoints: Endpoints
    nodes: Nodes
    node_links: NodeLinks
    arrivals: Arrivals
    incoming: IncomingFiles
    default_on: str  # where runs go that do not say it
    open_tcp: Callable[[], Awaitable[str]]
    registry_problem: Callable[[], Awaitable[str]]  # empty if there is none
    started_at: float
    setting_columns: SettingColumns = field(default_factory=SettingColumns)
    request_streams: RequestStreams = field(default_factory=RequestStreams)
    # By idempotency key; a lock disappears when it is neither held nor awaited.
    turns: WeakValueDictionary[str, asyncio.Lock] = field(default_factory=WeakValueDictionary)

    # ---- runs

    async def submit(self, config_json: str, idempotency_key: str, why: str = "") -> pb.RunInfo:
        """`why`: for the run's history, if nobody but the daemon submits it."""
        document, key = await read(config_json, idempotency_key, is_own=bool(why))
        # One at a time for each key: the second must find the first one's run, not its unfinished folder.
        async with self.turn(key.text):
            return await self._submit(document, key, why)

    def turn(self, key: str) -> asyncio.Lock:
        """The lock of an idempotency key."""
        return self.turns.setdefault(key, asyncio.Lock()) if key else asyncio.Lock()

    async def _submit(self, document: dict[str, Any], key: IdempotencyKey, why: str) -> pb.RunInfo:
        earlier = await self.registry.do(lambda r: r.with_key(*key))
        if earlier:
            return await self.info(earlier)
        prepared = await prepare(self, document, key, Look.of(self))
        config, note = prepared.config, "; ".join(filter(None, (why, prepared.note)))
        if config.worker.use_grpc or config.worker.drives:
            await self.open_tcp()
        failpoint("submit.validated")
        # The folder first, the row last: a crash in between leaves an unused folder, never a run without a config.
        rundir = await asyncio.to_thread(record_submission, self.root, config)
        failpoint("submit.recorded")
        try:
            record, is_new = await self.registry.do(lambda r: r.add(config, note))
        except KeyTaken:
            await asyncio.to_thread(self.erase_files, config.run_id, rundir)
            raise
        failpoint("submit.added")
        if not is_new:
            await asyncio.to_thread(self.erase_files, config.run_id, rundir)
        self.dispatcher.wake()
        return await self.info(record)

    async def cancel(self, run_id: str, reason: str = "") -> pb.RunInfo:
        """`reason`: one line, for the run's final state."""
        refuse_bad_reason(reason)
        record = await self.find(run_id)
        if not record.state.is_over:
            record = await self.registry.do(lambda r: r.request_cancel(record.run_id, reason))
            failpoint("cancel.requested")
            self.dispatcher.wake(record.run_id)
        return await self.info(record)

    async def delete(self, run_id: str) -> int:
        """Delete a run that is over, and its parts. Returns the number of bytes freed."""
        record = await self.find(run_id)
        if not record.state.is_over:
            raise RunIsLive(record.run_id, str(record.state))
        if record.damage:
            raise StoreFailed(f"Run {record.run_id} is not deleted: {record.damage}")
        of_parts = sum([await self.delete(part.run_id) for part in await self._parts_of(record)])
        rundir = self.rundir(record)
        self.sessions.forget(record.run_id)
        self.commands.forget(record.run_id)
        await self.ingest.forget(record.run_id)
        failpoint("delete.forgotten")
        # The row first: a crash then leaves an unused folder, which `mosaic gc` finds.
        try:
            await self.registry.do(lambda r: r.delete(record.run_id))
        except StoreUnavailable:
            # The disk is full beyond all reserves: make room first. The row stays until the next try succeeds.
            await asyncio.to_thread(remove_folder, rundir.path)
            await self.registry.do(lambda r: r.delete(record.run_id))
        self.sessions.forget(record.run_id)  # again: a publish may have arrived meanwhile
        failpoint("delete.unlisted")
        removal = await asyncio.to_thread(self.erase_files, record.run_id, rundir)
        failpoint("delete.done")
        if removal.problems:
            raise FolderRemains(record.run_id, rundir.path, removal.problems)
        return removal.freed + of_parts

    async def _parts_of(self, record: RunRecord) -> list[RunRecord]:
        children = await self.registry.do(lambda r: r.children(record.run_id))
        return [child for child in children if child.lineage.relation == PART]

    async def get(self, run_id: str) -> pb.RunInfo:
        record = await self.find(run_id)
        history = await self.registry.do(lambda r: r.history(record.run_id))
        document = await asyncio.to_thread(read_json, self.root.config_file(record.run_id))
        config = redact(document or {})
        info = (await self.infos([record], WHOLE_BYTES))[0]
        info.telemetry = why_lost(record, self.rundir(record)) or info.telemetry
        info.history.extend(move_to_wire(move) for move in history)
        info.config_json = document_or_note(json.dumps(config), "The config")
        settings = redact(await self.registry.do(lambda r: r.settings(record.run_id)))
        info.settings_json = document_or_note(json.dumps(settings), "The settings")
        capabilities = await self.registry.do(lambda r: r.capabilities(record.run_id))
        info.capabilities_json = json.dumps(capabilities) if capabilities else ""
        info.children.extend(child.run_id for child in await self.registry.do(lambda r: r.children(record.run_id)))
        return info

    # ---- tailers and workers

    async def register(
        self, run_id: str, attempt: int, nonce: str, capabilities_json: str = ""
    ) -> tuple[str, pb.Cursor]:
        """A session token (see Sessions.register) and the offsets at which the run's streams continue."""
        token, rundir = await self.sessions.register(run_id, attempt, nonce, capabilities_json)
        cursor = await self.ingest.open(run_id, rundir)
        self.dispatcher.wake(run_id)
        return token, cursor

    async def heartbeat(self, run_id: str, token: str, progress: int | None) -> None:
        """Counts as a heartbeat line. Lines are kept in the run's file, calls are noted in the registry."""
        await self.sessions.allow(run_id, token)
        await self.sessions.note_heartbeat(run_id)
        self.live_runs.heartbeat(run_id, progress)

    # ---- reading

    async def find(self, run_id: str) -> RunRecord:
        return await self.registry.do(lambda r: r.find(run_id))

    def rundir(self, record: RunRecord) -> RunDir:
        return self.root.run(record.area, record.run_id)

    async def info(self, record: RunRecord) -> pb.RunInfo:
        return (await self.infos([record]))[0]

    async def infos(self, records: Sequence[RunRecord], most_bytes: int = LISTED_BYTES) -> list[pb.RunInfo]:
        """What a listing shows of these runs, each in at most about `most_bytes`."""
        summaries = await self.ingest.summaries([self.rundir(record) for record in records])
        return [self._info(record, summaries.get(record.run_id), most_bytes) for record in records]

    def _info(self, record: RunRecord, summary: RunSummary | None, most_bytes: int) -> pb.RunInfo:
        live = not record.state.is_over
        life = self.dispatcher.life(record.run_id) if live else ""
        info = run_to_wire(record, self.rundir(record).path, summary, life, most_bytes)
        note = summary.note if summary else ""
        info.telemetry = (live and self.dispatcher.telemetry(record.run_id)) or info.telemetry or note
        return info

    async def end_all(self) -> None:
        """Cancel every live run and wait until all are over."""
        # Repeated, because a script may keep submitting.
        while live := await self.registry.do(_request_all_cancels):
            for record in live:
                self.dispatcher.wake(record.run_id)
            await asyncio.sleep(0.1)

    def erase_files(self, run_id: str, rundir: RunDir) -> Removal:
        others = [remove_folder(path) for path in (self.root.config_file(run_id), self.root.worker_file(run_id))]
        removal = remove_folder(rundir.path)
        rundir.remove_outside_telemetry()
        others.append(remove_folder(rundir.control))
        removal.problems += [problem for one in others for problem in one.problems]
        return removal


def _request_all_cancels(registry: Registry) -> list[RunRecord]:
    return [registry.request_cancel(record.run_id) for record in registry.live()]
