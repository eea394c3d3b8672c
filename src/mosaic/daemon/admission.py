"""Admission: decides from the metadata of a call whether its message is received at all.

    every call                      authorization: Bearer <owner's token>
    RegisterWorker                  mosaic-run-id and mosaic-nonce
    TakeLaunch                      mosaic-run-id, and the ticket of its attempt as mosaic-nonce
    other RUN_METHODS               authorization: Bearer <session token>, and mosaic-run-id
    DRIVER_METHODS                  authorization: Bearer <driver's token>, and mosaic-run-id

The handlers check again: a message may name another run than the metadata of its call. So does scope.py, for drivers.
"""

from collections.abc import Iterable
from typing import NamedTuple, Protocol

from mosaic.daemon.auth import Tokens, bearer
from mosaic.model.errors import NotAllowed
from mosaic.model.ulid import is_ulid
from mosaic.wire.names import NONCE, RUN_ID

# These are for one run: its session token or its nonce is enough.
RUN_METHODS = frozenset(
    {"RegisterWorker", "Heartbeat", "PublishTelemetry", "LinkNode", "TakeLaunch", "ReportRun", "PutFile"}
)
# A driver may make these about the runs of its experiment, and no others.
DRIVER_METHODS = frozenset({"SubmitRun", "CancelRun", "GetRun", "WatchRuns", "QueryCurve"})

OWNER = "owner"
UNPROVEN = "unproven"  # a caller on the Unix socket whose message has the proof
NO_TOKEN = "The token is missing or wrong. It is in trainer/daemon.token in the state folder (or in MOSAIC_TOKEN_FILE)."
NO_PROOF = (
    "The metadata of this call must prove its run: mosaic-run-id, with mosaic-nonce for RegisterWorker, and with the "
    "session token as authorization for the other calls."
)


ONLY_RUNS = "This address answers only the tailers of runs. Clients on other machines use: mosaic --host user@box"


class Unauthenticated(NotAllowed):
    """The metadata of a call does not show who calls."""


class Caller(NamedTuple):
    """Who calls."""

    name: str  # OWNER, the id of a run, or UNPROVEN
    experiment: str = ""  # of a driver: its calls may concern the runs of this experiment only


class RunProofs(Protocol):
    """What shows that a caller belongs to a run; see sessions.py. `allow…` raise NotAllowed or UnknownRun."""

    async def allow(self, run_id: str, token: str) -> object: ...
    async def allow_nonce(self, run_id: str, nonce: str) -> None: ...
    async def allow_ticket(self, run_id: str, ticket: str) -> None: ...
    async def allow_driver(self, run_id: str, token: str) -> str: ...
    async def run_of(self, token: str) -> str: ...


class Admission:
    """Who may call, on one listener. `is_private`: only this user can reach it.

    `for_nodes`: only tailers on other machines have business there, so not even the owner's token opens more.
    """

    def __init__(self, tokens: Tokens, proofs: RunProofs, is_private: bool, for_nodes: bool = False) -> None:
        self._for_nodes = for_nodes
        self._tokens = tokens
        self._proofs = proofs
        self._is_private = is_private

    async def caller(self, method: str, metadata: Iterable[tuple[str, str | bytes]]) -> Caller:
        """Who calls; raises what the caller is told."""
        token = bearer(metadata)
        if self._for_nodes and method not in RUN_METHODS:
            raise Unauthenticated(ONLY_RUNS)
        if not self._for_nodes and self._tokens.is_owner(token):
            return Caller(OWNER)
        run_id = _value(metadata, RUN_ID)
        if method in DRIVER_METHODS and token and is_ulid(run_id):
            return Caller(run_id, await self._experiment(run_id, token))
        if method not in RUN_METHODS:
            raise Unauthenticated(NO_TOKEN)
        if run_id:
            return Caller(await self._proven(method, run_id, token, _value(metadata, NONCE)))
        return Caller(await self._without_run_id(method, token))

    async def _experiment(self, run_id: str, token: str) -> str:
        try:
            return await self._proofs.allow_driver(run_id, token)
        except NotAllowed as error:
            raise Unauthenticated(f"{NO_TOKEN} {error}") from None

    async def _proven(self, method: str, run_id: str, token: str, nonce: str) -> str:
        if not is_ulid(run_id):
            raise Unauthenticated(NO_PROOF)
        if method == "RegisterWorker":
            await self._proofs.allow_nonce(run_id, nonce)
        elif method == "TakeLaunch":
            await self._proofs.allow_ticket(run_id, nonce)
        else:
            await self._proofs.allow(run_id, token)
        return run_id

    async def _without_run_id(self, method: str, token: str) -> str:
        """Tailers and workers of an older MOSAIC send the run's id only in the message."""
        if method == "RegisterWorker":
            if self._is_private:
                return UNPROVEN
        elif run_id := await self._proofs.run_of(token):
            return run_id
        raise Unauthenticated(NO_PROOF)


def refuse_other_run(run_id: str, metadata: Iterable[tuple[str, str | bytes]]) -> None:
    """NotAllowed if a message names another run than the one that the metadata of its call has proven."""
    if run_id != _value(metadata, RUN_ID):
        raise NotAllowed(f"This call does not prove run {run_id}.")


def _value(metadata: Iterable[tuple[str, str | bytes]], name: str) -> str:
    """The first value with this name; empty if there is none."""
    for key, value in metadata or ():
        if key == name and isinstance(value, str):
            return value
    return ""
