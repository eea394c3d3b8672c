import asyncio
from types import SimpleNamespace

import pytest

from mosaic.daemon.sessions import MOST_SESSIONS, Session, Sessions
from mosaic.model.errors import NotAllowed
from mosaic.model.run import Membership
from mosaic.model.states import RunState

TOKENS = SimpleNamespace(driver=lambda run_id, attempt, experiment: f"driver {run_id} {attempt} {experiment}")


def test_sessions_of_finished_runs_do_not_accumulate():
    sessions = Sessions(root=None, registry=None, tokens=None)

    for number in range(3 * MOST_SESSIONS):
        sessions._remember(str(number), Session("", None))

    assert list(sessions._sessions) == [str(number) for number in range(2 * MOST_SESSIONS, 3 * MOST_SESSIONS)]


def allowed(record, token):
    async def do(ask):
        return record

    sessions = Sessions(root=None, registry=SimpleNamespace(do=do), tokens=TOKENS)
    return asyncio.run(sessions.allow_driver("A", token))


def driver(state=RunState.EXECUTING, experiment="lr"):
    return SimpleNamespace(run_id="A", attempt=2, state=state, membership=Membership(experiment))


def test_the_token_of_a_live_driver_gives_its_experiment():
    assert allowed(driver(), "driver A 2 lr") == "lr"


@pytest.mark.parametrize(
    ("record", "token"),
    [
        (driver(), ""),
        (driver(), "driver A 1 lr"),  # of an earlier attempt
        (driver(), "driver A 2 other"),
        (driver(), "driver B 2 lr"),
        (driver(RunState.TERMINATED), "driver A 2 lr"),
        (driver(RunState.CANCELLED), "driver A 2 lr"),
        (driver(experiment=""), "driver A 2 "),
        (None, "driver A 2 lr"),
    ],
)
def test_any_other_token_of_a_driver_is_refused(record, token):
    with pytest.raises(NotAllowed, match="not the token of a live driver"):
        allowed(record, token)
