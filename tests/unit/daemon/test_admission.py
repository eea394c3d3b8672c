"""Who may call, decided by the metadata of the call alone."""

import asyncio

import pytest

from mosaic.daemon.admission import DRIVER_METHODS, OWNER, UNPROVEN, Admission, Caller, Unauthenticated
from mosaic.daemon.auth import Tokens
from mosaic.model.errors import NotAllowed

RUN = "01HZY0000000000000000000AB"
BEARER = ("authorization", "Bearer session")
RUN_ID, NONCE = ("mosaic-run-id", RUN), ("mosaic-nonce", "nonce")
SESSION_CALLS = ("Heartbeat", "PublishTelemetry")


class Proofs:
    """One live run with its session token and its nonce."""

    async def allow(self, run_id, token):
        if (run_id, token) != (RUN, "session"):
            raise NotAllowed("not the token")

    async def allow_nonce(self, run_id, nonce):
        if (run_id, nonce) != (RUN, "nonce"):
            raise NotAllowed("not the nonce")

    async def allow_driver(self, run_id, token):
        if (run_id, token) != (RUN, "driver"):
            raise NotAllowed("not a driver")
        return "lr-search"

    async def run_of(self, token):
        return RUN if token == "session" else ""


def caller(method, *metadata, is_private=False):
    return asyncio.run(Admission(Tokens("owner"), Proofs(), is_private).caller(method, metadata)).name


@pytest.mark.parametrize("method", ["GetRun", "RegisterWorker", "Heartbeat", "NoSuchCall"])
def test_the_owners_token_allows_every_call(method):
    assert caller(method, ("authorization", "Bearer owner")) == OWNER


@pytest.mark.parametrize("is_private", [True, False])
def test_a_run_is_proven_by_its_nonce_or_its_session_token(is_private):
    assert caller("RegisterWorker", RUN_ID, NONCE, is_private=is_private) == RUN
    for method in SESSION_CALLS:
        assert caller(method, RUN_ID, BEARER, is_private=is_private) == RUN


@pytest.mark.parametrize("is_private", [True, False])
@pytest.mark.parametrize(
    ("method", "metadata"),
    [
        ("GetRun", [RUN_ID, BEARER, NONCE]),
        ("GetRun", []),
        ("RegisterWorker", [RUN_ID]),
        ("RegisterWorker", [RUN_ID, BEARER]),
        ("RegisterWorker", [("mosaic-run-id", "../x"), NONCE]),
        ("RegisterWorker", [("mosaic-run-id", "0" * 5_000), NONCE]),
        ("RegisterWorker", [RUN_ID, ("mosaic-nonce-bin", b"nonce")]),
        ("Heartbeat", [RUN_ID, NONCE]),
        ("Heartbeat", [("mosaic-run-id", "01HZY0000000000000000000AC"), BEARER]),
        ("PublishTelemetry", [RUN_ID, ("authorization", "Bearer wrong")]),
        ("PublishTelemetry", [("authorization", "Bearer wrong")]),
        ("Heartbeat", []),
    ],
)
def test_anything_else_is_refused(method, metadata, is_private):
    with pytest.raises(NotAllowed):
        caller(method, *metadata, is_private=is_private)


def test_a_session_of_an_older_mosaic_is_known_by_its_token():
    for method in SESSION_CALLS:
        assert caller(method, BEARER) == RUN


def test_a_registration_without_metadata_is_accepted_only_on_the_private_socket():
    assert caller("RegisterWorker", is_private=True) == UNPROVEN
    with pytest.raises(Unauthenticated, match="mosaic-nonce for RegisterWorker"):
        caller("RegisterWorker")


@pytest.mark.parametrize("method", sorted(DRIVER_METHODS))
def test_a_driver_calls_within_its_experiment(method):
    metadata = [RUN_ID, ("authorization", "Bearer driver")]

    found = asyncio.run(Admission(Tokens("owner"), Proofs(), is_private=False).caller(method, metadata))

    assert found == Caller(RUN, "lr-search")


@pytest.mark.parametrize("method", ["ListRuns", "DeleteRun", "CommandRun", "Shutdown", "Heartbeat", "NoSuchCall"])
def test_a_drivers_token_is_refused_for_every_other_call(method):
    with pytest.raises(NotAllowed):
        caller(method, RUN_ID, ("authorization", "Bearer driver"))
