"""What the daemon can do, in model terms: the calls of the gRPC service without gRPC."""

import asyncio
import hmac
import json
import os
import shutil
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple
from weakref import WeakValueDictionary

from mosaic import __version__
from mosaic.broadcast.subscribers import Broadcaster
from mosaic.catalog.capabilities import read_capabilities
from mosaic.catalog.inspector import Inspector
from mosaic.catalog.secrets import redact
from mosaic.catalog.workers import Catalog
from mosaic.daemon.auth import Tokens, token_hash
from mosaic.daemon.descent import Descent
from mosaic.daemon.doors import Doors
from mosaic.daemon.listening import Listening
from mosaic.dispatch.dispatcher import Dispatcher
from mosaic.dispatch.gpus import belongs_to
from mosaic.dispatch.launcher import Launcher
from mosaic.dispatch.live_runs import LiveRuns
from mosaic.ingest.receive import Ingest
from mosaic.model.durable import read_json
from mosaic.model.errors import KeyTaken, NotAllowed, RunIsLive
from mosaic.model.failpoints import failpoint
from mosaic.model.run import RunRecord, RunSummary
from mosaic.model.rundir import RunDir, StateRoot
from mosaic.model.states import RunState
from mosaic.registry.registry import Registry
from mosaic.registry.thread import RegistryThread
from mosaic.submit.document import fingerprint
from mosaic.submit.needs import with_worker_needs
from mosaic.submit.record import record as record_submission
from mosaic.submit.validate import SubmitContext, settle, validate
from mosaic.wire import mosaic_pb2 as pb
from mosaic.wire.convert import move_to_wire, run_to_wire

MOST_SESSIONS = 256


@dataclass
class Session:
    """Who may publish for a run: kept in memory so that a publish need not ask the registry."""

    token_hash: str
    rundir: RunDir
    is_beating: bool = False  # the registry knows that its worker calls Heartbeat


class IdempotencyKey(NamedTuple):
    """What makes two submits one run: the client's text, and the hash of the config that it stands for."""

    text: str  # empty: every submit is a run of its own
    config_hash: str


@dataclass
class Trainer:
    """The parts of a running daemon and what clients may ask of them."""

    root: StateRoot
    registry: RegistryThread
    ingest: Ingest
    broadcaster: Broadcaster
    live_runs: LiveRuns
    dispatcher: Dispatcher
    launcher: Launcher
    catalog: Catalog
    inspector: Inspector
    descent: Descent
    tokens: Tokens
    doors: Doors
    open_tcp: Callable[[], Awaitable[str]]
    started_at: float
    listening: Listening = field(default_factory=Listening)
    sessions: dict[str, Session] = field(default_factory=dict)
    # By idempotency key; a lock is gone when nobody holds it or waits for it.
    turns: WeakValueDictionary[str, asyncio.Lock] = field(default_factory=WeakValueDictionary)

    # ---- runs

    async def submit(self, config_json: str, idempotency_key: str) -> pb.RunInfo:
        key = IdempotencyKey(idempotency_key, await asyncio.to_thread(fingerprint, config_json))
        # One at a time with the same key: the second one must see the first one's run, not its half-made folder.
        turn = self.turns.setdefault(key.text, asyncio.Lock()) if key.text else asyncio.Lock()
        async with turn:
            return await self._submit(config_json, key)

    async def _submit(self, config_json: str, key: IdempotencyKey) -> pb.RunInfo:
        earlier = await self.registry.do(lambda r: r.with_key(*key))
        if earlier:
            return await self.info(earlier)
        traced = await self.descent.trace(config_json)
        config = await self.registry.do(lambda r: validate(traced.config, self._context(r, key)))
        verdict = await self.inspector.inspect(config.worker)
        config = await self.registry.do(lambda r: settle(config, verdict, self._context(r, key)))
        config = with_worker_needs(config, verdict.capabilities, self.dispatcher.machine)
        if config.worker.use_grpc:
            await self.open_tcp()
        failpoint("submit.validated")
        # The folder first, the row last: a crash in between leaves a folder nobody names, never a run without a config.
        rundir = await asyncio.to_thread(record_submission, self.root, config)
        failpoint("submit.recorded")
        note = "; ".join(filter(None, (traced.note, verdict.note)))
        try:
            record, is_new = await self.registry.do(lambda r: r.add(config, note))
        except KeyTaken:
            await asyncio.to_thread(self._erase_files, config.run_id, rundir)
            raise
        failpoint("submit.added")
        if not is_new:
            await asyncio.to_thread(self._erase_files, config.run_id, rundir)
        self.dispatcher.wake()
        return await self.info(record)

    def _context(self, registry: Registry, key: "IdempotencyKey") -> SubmitContext:
        return SubmitContext(
            root=self.root,
            catalog=self.catalog,
            run_exists=registry.has,
            tcp_address=self.doors.tcp,
            gpu_count=len(self.dispatcher.gpus.all),
            machine=self.dispatcher.machine,
            idempotency_key=key.text,
            config_hash=key.config_hash,
        )

    async def cancel(self, run_id: str) -> pb.RunInfo:
        record = await self.find(run_id)
        if not record.state.is_over:
            record = await self.registry.do(lambda r: r.request_cancel(record.run_id))
            failpoint("cancel.requested")
            self.dispatcher.wake(record.run_id)
        return await self.info(record)

    async def delete(self, run_id: str) -> int:
        """Remove every trace of a run that is over; the bytes that were freed."""
        record = await self.find(run_id)
        if not record.state.is_over:
            raise RunIsLive(record.run_id, str(record.state))
        rundir = self.rundir(record)
        freed = await asyncio.to_thread(_size, rundir.path)
        self.sessions.pop(record.run_id, None)
        await self.ingest.forget(record.run_id)
        failpoint("delete.forgotten")
        # The row goes first: what a crash leaves then is a folder nobody names, which gc finds.
        await self.registry.do(lambda r: r.delete(record.run_id))
        self.sessions.pop(record.run_id, None)  # again: a publish may have come in between
        failpoint("delete.unlisted")
        await asyncio.to_thread(self._erase_files, record.run_id, rundir)
        failpoint("delete.done")
        return freed

    async def get(self, run_id: str) -> pb.RunInfo:
        record = await self.find(run_id)
        history = await self.registry.do(lambda r: r.history(record.run_id))
        config = redact(read_json(self.root.config_file(record.run_id)) or {})
        info = await self.info(record)
        info.history.extend(move_to_wire(move) for move in history)
        info.config_json = json.dumps(config)
        info.settings_json = json.dumps(redact(await self.registry.do(lambda r: r.settings(record.run_id))))
        capabilities = await self.registry.do(lambda r: r.capabilities(record.run_id))
        info.capabilities_json = json.dumps(capabilities) if capabilities else ""
        info.children.extend(child.run_id for child in await self.registry.do(lambda r: r.children(record.run_id)))
        return info

    async def list_runs(self, states: Iterable[RunState], limit: int) -> pb.ListRunsReply:
        wanted = tuple(states)
        records = await self.registry.do(lambda r: r.list(wanted, limit))
        total = await self.registry.do(lambda r: r.count(wanted))
        return pb.ListRunsReply(runs=await self.infos(records), total=total)

    # ---- what tailers and workers say

    async def register(
        self, run_id: str, attempt: int, nonce: str, capabilities_json: str = ""
    ) -> tuple[str, pb.Cursor]:
        """A session token for whoever knows the nonce of the run's present attempt. Saying it again gives the same.

        The tailer brings what the catalog knows, each time it registers; what a worker itself said stands above that.
        """
        record = await self.registry.do(lambda r: r.get(run_id))
        rundir = self.rundir(record)
        launch = read_json(rundir.launch) or {}
        if not nonce or launch.get("nonce") != nonce or attempt != record.attempt or launch.get("attempt") != attempt:
            raise NotAllowed(f"Run {run_id}: this nonce is not the one of attempt {record.attempt}.")
        token = self.tokens.session(run_id, attempt)
        told = read_capabilities(capabilities_json)
        is_own_word = bool(told) and told != launch.get("capabilities")
        await self.registry.do(lambda r: _make_ready(r, run_id, token, told, is_own_word))
        failpoint("register.ready")
        self._remember(run_id, Session(token_hash(token), rundir))
        cursor = await self.ingest.open(run_id, rundir)
        self.dispatcher.wake(run_id)
        return token, cursor

    async def heartbeat(self, run_id: str, token: str, progress: int | None) -> None:
        """As a heartbeat line, which the run's file would remember; of a call the registry does."""
        await self.allow_session(run_id, token)
        session = self.sessions.get(run_id)
        if session and not session.is_beating:
            await self.registry.do(lambda r: r.note_beating(run_id))
            session.is_beating = True
        self.live_runs.heartbeat(run_id, progress)

    async def allow_session(self, run_id: str, token: str) -> RunDir:
        """The run's folder, if `token` opens it."""
        session = self.sessions.get(run_id) or await self._load_session(run_id)
        if not token or not session.token_hash or not hmac.compare_digest(token_hash(token), session.token_hash):
            raise NotAllowed(f"This session token does not open run {run_id}.")
        return session.rundir

    async def _load_session(self, run_id: str) -> Session:
        record = await self.registry.do(lambda r: r.get(run_id))
        known = await self.registry.do(lambda r: r.session(run_id))
        return self._remember(run_id, Session(known, self.rundir(record)))

    def _remember(self, run_id: str, session: Session) -> Session:
        """Sessions are a cache of the registry; runs that are over fill it, so the oldest goes."""
        self.sessions.pop(run_id, None)
        while len(self.sessions) >= MOST_SESSIONS:
            del self.sessions[next(iter(self.sessions))]
        self.sessions[run_id] = session
        return session

    # ---- looking

    async def find(self, run_id: str) -> RunRecord:
        return await self.registry.do(lambda r: r.find(run_id))

    def rundir(self, record: RunRecord) -> RunDir:
        return self.root.run(record.area, record.run_id)

    async def info(self, record: RunRecord) -> pb.RunInfo:
        return (await self.infos([record]))[0]

    async def infos(self, records: Sequence[RunRecord]) -> list[pb.RunInfo]:
        summaries = await self.ingest.summaries([self.rundir(record) for record in records])
        return [self._info(record, summaries.get(record.run_id)) for record in records]

    def _info(self, record: RunRecord, summary: RunSummary | None) -> pb.RunInfo:
        live = not record.state.is_over
        info = run_to_wire(
            record, self.rundir(record).path, summary, self.dispatcher.life(record.run_id) if live else ""
        )
        info.telemetry = (live and self.dispatcher.telemetry(record.run_id)) or info.telemetry
        return info

    async def health(self) -> pb.Health:
        owners = await self.registry.do(lambda r: r.gpu_owners())
        drained = await self.registry.do(lambda r: r.drained())
        roots = self.launcher.roots()
        live = await self.registry.do(lambda r: r.live())
        holders = self.dispatcher.holders(live)
        gpus = await asyncio.to_thread(self._gpus, owners, drained, roots)
        return pb.Health(
            healthy=not self.ingest.problem,
            problem=self.ingest.problem,
            pid=os.getpid(),
            version=__version__,
            started_at=self.started_at,
            addresses=self.doors.addresses,
            root=str(self.root.path),
            gpus=gpus,
            live_runs=len(live),
            max_runs=self.dispatcher.max_runs,
            cpus=self.dispatcher.machine.cpus,
            cpus_requested=sum(run.resources.cpus for run in holders),
            memory_mb=self.dispatcher.machine.memory_mb,
            memory_mb_requested=sum(run.resources.memory_mb for run in holders),
            waiting_runs=sum(run.state is RunState.INIT for run in live),
        )

    def _gpus(self, owners: Mapping[str, str], drained: Mapping[str, str], roots: list[int]) -> list[pb.Gpu]:
        """All GPUs with their owner, or with what keeps them from having one. Asks the driver, which may be slow."""
        told = []
        for gpu in self.dispatcher.gpus.all:
            strangers = self.dispatcher.gpus.strangers(gpu.uuid, lambda pid: belongs_to(pid, roots))
            blocked = f"used by a stranger's process {strangers[0]}" if strangers else ""
            if gpu.uuid in drained:
                blocked = f"drained: {drained[gpu.uuid]}"
            told.append(pb.Gpu(uuid=gpu.uuid, name=gpu.name, owner=owners.get(gpu.uuid, ""), blocked=blocked))
        return told

    async def end_all(self) -> None:
        """Cancel every live run and wait until all are over."""
        # Asked again each time: somebody's script may go on submitting.
        while live := await self.registry.do(_wish_all_cancelled):
            for record in live:
                self.dispatcher.wake(record.run_id)
            await asyncio.sleep(0.1)

    def _erase_files(self, run_id: str, rundir: RunDir) -> None:
        shutil.rmtree(rundir.path, ignore_errors=True)
        for path in (self.root.config_file(run_id), self.root.worker_file(run_id)):
            path.unlink(missing_ok=True)


def _make_ready(registry: Registry, run_id: str, token: str, capabilities: dict[str, Any], is_own_word: bool) -> None:
    is_news = is_own_word or not registry.capabilities(run_id)
    registry.set_session(run_id, token_hash(token), capabilities if is_news else None)
    if registry.state(run_id) is RunState.HANDSHAKE:
        registry.move(run_id, RunState.READY)


def _wish_all_cancelled(registry: Registry) -> list[RunRecord]:
    return [registry.request_cancel(record.run_id) for record in registry.live()]


def _size(folder: Path) -> int:
    return sum(path.lstat().st_blocks * 512 for path in folder.rglob("*") if not path.is_dir())
