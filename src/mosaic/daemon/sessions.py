"""Sessions: the right to publish the telemetry of one run, held by its tailer and by a worker that uses gRPC."""

import asyncio
import hmac
from dataclasses import dataclass
from typing import Any

from mosaic.catalog.capabilities import read_capabilities
from mosaic.daemon.auth import Tokens, token_hash
from mosaic.model.durable import read_json
from mosaic.model.errors import NotAllowed
from mosaic.model.failpoints import failpoint
from mosaic.model.run import RunRecord
from mosaic.model.rundir import RunDir, StateRoot
from mosaic.model.states import RunState
from mosaic.registry.registry import Registry
from mosaic.registry.thread import RegistryThread

MOST_SESSIONS = 256
MOST_RUNS = 10_000


@dataclass
class Session:
    """The session of one run, kept in memory so that a publish does not have to ask the registry."""

    token_hash: str
    rundir: RunDir
    calls_heartbeat: bool = False  # the registry knows that its worker calls Heartbeat


class Sessions:
    """Used by the daemon's loop alone. A cache: the registry has the hash of every session token."""

    def __init__(self, root: StateRoot, registry: RegistryThread, tokens: Tokens) -> None:
        self._root = root
        self._registry = registry
        self._tokens = tokens
        self._sessions: dict[str, Session] = {}
        self._runs: dict[str, str] | None = None  # by token hash: see run_of; None: not read yet

    async def register(self, run_id: str, attempt: int, nonce: str, capabilities_json: str) -> tuple[str, RunDir]:
        """A session token for a caller that knows the nonce of the current attempt. Calling again returns the same.

        The tailer sends the capabilities in the catalog each time it registers; those of the worker itself replace
        them.
        """
        record, launch = await self._check_nonce(run_id, nonce)
        if attempt != record.attempt:
            raise _wrong_nonce(record)
        rundir = self._rundir(record)
        token = self._tokens.session(run_id, attempt)
        sent = read_capabilities(capabilities_json)
        from_worker = bool(sent) and sent != launch.get("capabilities")
        await self._registry.do(lambda r: _make_ready(r, run_id, token, sent, from_worker))
        failpoint("register.ready")
        self._remember(run_id, Session(token_hash(token), rundir))
        await self._note_run(run_id, token_hash(token))
        return token, rundir

    async def allow(self, run_id: str, token: str) -> RunDir:
        """The run's folder, if `token` is valid for it."""
        session = self._sessions.get(run_id) or await self._load(run_id)
        if not token or not session.token_hash or not hmac.compare_digest(token_hash(token), session.token_hash):
            raise NotAllowed(f"This session token is not valid for run {run_id}.")
        return session.rundir

    async def allow_nonce(self, run_id: str, nonce: str) -> None:
        """Return if `nonce` is the one of the run's current attempt."""
        await self._check_nonce(run_id, nonce)

    async def allow_ticket(self, run_id: str, ticket: str) -> None:
        """Return if `ticket` is the one with which a node takes the launch of the run's current attempt."""
        record = await self._registry.do(lambda r: r.get(run_id))
        launch = await asyncio.to_thread(read_json, self._rundir(record).launch) or {}
        right = str((launch.get("node") or {}).get("ticket") or "")
        if not right or not hmac.compare_digest(ticket.encode(), right.encode()):
            raise NotAllowed(f"Run {run_id}: this is not the ticket of attempt {record.attempt}.")

    async def allow_driver(self, run_id: str, token: str) -> str:
        """The experiment of a live driver, if `token` is the one of its current attempt."""
        record = await self._registry.do(lambda r: r.with_id(run_id))
        name = record.membership.experiment if record and not record.state.is_over else ""
        if not record or not name or not self._is_drivers(token, record):
            raise NotAllowed(f"This is not the token of a live driver with the id {run_id}.")
        return name

    def _is_drivers(self, token: str, record: RunRecord) -> bool:
        right = self._tokens.driver(record.run_id, record.attempt, record.membership.experiment)
        return hmac.compare_digest(token.encode(), right.encode())

    async def run_of(self, token: str) -> str:
        """The run that a session token belongs to; empty if it is not a live one's.

        For callers of an older MOSAIC, which do not say it. Read once: this daemon registers all later ones itself.
        """
        if self._runs is None:
            self._runs = await self._registry.do(lambda r: r.sessions())
        return self._runs.get(token_hash(token), "")

    async def note_heartbeat(self, run_id: str) -> None:
        """Record in the registry, once, that this run's worker calls Heartbeat."""
        session = self._sessions.get(run_id)
        if session and not session.calls_heartbeat:
            await self._registry.do(lambda r: r.note_heartbeat_calls(run_id))
            session.calls_heartbeat = True

    def forget(self, run_id: str) -> None:
        self._sessions.pop(run_id, None)

    async def _load(self, run_id: str) -> Session:
        record = await self._registry.do(lambda r: r.get(run_id))
        known = await self._registry.do(lambda r: r.session(run_id))
        return self._remember(run_id, Session(known, self._rundir(record)))

    def _remember(self, run_id: str, session: Session) -> Session:
        # Sessions of finished runs would fill the memory, so the oldest one is dropped.
        self._sessions.pop(run_id, None)
        while len(self._sessions) >= MOST_SESSIONS:
            del self._sessions[next(iter(self._sessions))]
        self._sessions[run_id] = session
        return session

    async def _note_run(self, run_id: str, token_hash: str) -> None:
        if self._runs is None or len(self._runs) > MOST_RUNS:  # most of them are over; the live ones are read again
            self._runs = await self._registry.do(lambda r: r.sessions())
        self._runs[token_hash] = run_id

    async def _check_nonce(self, run_id: str, nonce: str) -> tuple[RunRecord, dict[str, Any]]:
        """The run and its launch.json, if `nonce` belongs to its current attempt."""
        record = await self._registry.do(lambda r: r.get(run_id))
        launch = await asyncio.to_thread(read_json, self._rundir(record).launch) or {}
        if not nonce or launch.get("nonce") != nonce or launch.get("attempt") != record.attempt:
            raise _wrong_nonce(record)
        return record, launch

    def _rundir(self, record: RunRecord) -> RunDir:
        return self._root.run(record.area, record.run_id)


def _wrong_nonce(record: RunRecord) -> NotAllowed:
    return NotAllowed(f"Run {record.run_id}: this is not the nonce of attempt {record.attempt}.")


def _make_ready(registry: Registry, run_id: str, token: str, capabilities: dict[str, Any], from_worker: bool) -> None:
    is_news = from_worker or not registry.capabilities(run_id)
    registry.set_session(run_id, token_hash(token), capabilities if is_news else None)
    registry.arrive(run_id)  # its tailer may be here before the dispatcher has seen that its job runs
    if registry.state(run_id) is RunState.HANDSHAKE:
        registry.move(run_id, RunState.READY)
