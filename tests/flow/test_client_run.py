"""`client.run`: a run started by one line of Python, and its handle."""

import asyncio

import pytest
from lab import wait_until

from mosaic.client import AsyncTrainerClient, RunOptions, TrainerClient
from mosaic.model.errors import BadConfig, MosaicError, UnknownWorker
from mosaic.model.states import RunState

LONG = 10_000_000


@pytest.fixture
def client(shared_lab):
    return shared_lab.client


def test_one_line_starts_a_run_and_its_handle_waits_for_the_end(client):
    run = client.run("toy", steps=300, episode_length=50)

    end = run.wait()

    assert (end.run_id, end.state, run.state) == (run.run_id, RunState.TERMINATED, RunState.TERMINATED)
    assert (run.summary.steps, run.summary.episodes) == (300, 6)
    assert run.curve() == run.curve("episode/return")
    assert sum(run.curve().count) == 6
    assert "episode/return" in run.curve_names()
    assert len([event for event in run.events() if event.type == "step"]) == 300


def test_the_state_of_a_handle_is_current_and_cancel_ends_the_run(client):
    run = client.run("toy", steps=LONG, rate=100)
    wait_until(lambda: run.state is RunState.EXECUTING, words="the first step")

    run.cancel()

    assert run.wait().state is RunState.CANCELLED


def test_waiting_ends_with_a_timeout_and_the_run_continues(client):
    run = client.run("toy", steps=LONG, rate=100)

    with pytest.raises(TimeoutError, match=f"{run.run_id} is not over after 0.1 s"):
        run.wait(timeout_s=0.1)

    assert not run.state.is_over
    run.cancel()
    run.wait()


def test_options_are_kept_apart_from_settings(client):
    options = RunOptions(name="first", tags=("a", "b"), cpus=0.5, memory_mb=100, limits={"time_s": 60})

    run = client.run("toy", steps=5, run_options=options)

    asked = client.get_run(run.run_id)
    assert (asked.name, asked.tags, asked.cpus, asked.memory_mb) == ("first", ("a", "b"), 0.5, 100)
    assert asked.time_limit_s == 60
    assert asked.settings["steps"] == 5
    assert "name" not in asked.settings


def test_options_may_be_a_plain_mapping_and_a_misspelled_one_gets_a_suggestion(client):
    assert client.run("toy", steps=5, run_options={"name": "mapped"}).latest.name == "mapped"

    with pytest.raises(BadConfig, match=r"run_options\.nam: there is no such option\. Did you mean 'name'\?"):
        client.run("toy", steps=5, run_options={"nam": "x"})


def test_the_same_idempotency_key_gives_the_same_run(client):
    first, second = (client.run("toy", steps=5, run_options={"idempotency_key": "k"}) for _ in range(2))

    assert first.run_id == second.run_id


def test_an_unknown_setting_is_refused_with_a_suggestion(client):
    with pytest.raises(BadConfig, match=r"^episode_lenght: .*Did you mean 'episode_length'") as caught:
        client.run("toy", episode_lenght=50)

    assert caught.value.field == "episode_lenght"


def test_an_option_among_the_settings_is_refused_with_where_it_belongs(client):
    with pytest.raises(BadConfig, match=r"^name: .*pass run_options=\{'name': …\}") as caught:
        client.run("toy", name="mine")

    assert caught.value.field == "name"


def test_runs_are_listed_by_the_names_of_states(client):
    run = client.run("toy", steps=5)
    run.wait()

    assert run.run_id in {one.run_id for one in client.list_runs(["TERMINATED"]).runs}
    assert client.list_runs("TERMINATED").runs == client.list_runs([RunState.TERMINATED]).runs
    with pytest.raises(MosaicError, match=r"'DONE' is not a valid RunState\. The states are INIT, HANDSHAKE"):
        client.list_runs(["DONE"])


def test_a_closed_client_says_so(shared_lab):
    with TrainerClient.connect(shared_lab.root) as client:
        pass

    with pytest.raises(MosaicError, match=r"This client is closed\. Connect a new one"):
        client.run("toy", steps=1)
    client.close()  # a second time, which does nothing


def test_a_setting_with_a_bad_value_is_named_as_the_caller_wrote_it(client):
    with pytest.raises(BadConfig, match=r"^steps: "):
        client.run("toy", steps="many")
    with pytest.raises(BadConfig, match=r"^run_options\.limits\.time_s: "):
        client.run("toy", steps=5, run_options={"limits": {"time_s": -1}})


def test_a_worker_that_is_not_installed_is_refused_with_what_to_do(client):
    with pytest.raises(UnknownWorker, match=r"'cleanrl' is not installed\..*mosaic worker install cleanrl"):
        client.run("cleanrl", algo="ppo")
    with pytest.raises(UnknownWorker, match=r"'tow' is not installed.*'toy'"):
        client.run("tow")


def test_settings_may_be_called_worker_or_self(client):
    with pytest.raises(BadConfig, match=r"^worker: "):
        client.run("toy", worker="x")
    with pytest.raises(BadConfig, match=r"^self: "):
        client.run("toy", self="x")


def test_the_log_of_a_run_is_read_through_its_handle(client):
    run = client.run("toy", steps=100, crash_at=10)
    run.wait()

    text = b"".join(piece.text for piece in run.logs() if piece.stream == "stderr").decode()

    assert "Traceback" in text
    assert run.state is RunState.FAULTED


def test_a_handle_is_made_for_a_run_that_exists(client):
    started = client.run("toy", steps=5)

    assert client.attach(started.run_id).wait().state is RunState.TERMINATED
    assert started.run_id in repr(client.attach(started.run_id))


def test_the_async_client_does_the_same(shared_lab):
    async def use():
        async with await AsyncTrainerClient.connect(shared_lab.root) as client:
            run = await client.run("toy", steps=50, episode_length=10)
            events = [event async for event in run.events()]
            end = await run.wait()
            return run, end, events, await run.curve("episode/return")

    run, end, events, curve = asyncio.run(use())

    assert (end.state, run.state, run.summary.steps) == (RunState.TERMINATED, RunState.TERMINATED, 50)
    assert len([event for event in events if event.type == "step"]) == 50
    assert sum(curve.count) == 5


def test_a_handle_gives_live_frames(client):
    run = client.run("toy", steps=LONG, rate=100, paint=True)

    frame = next(run.frames(hz=10, wait_s=60))

    assert frame.size == (320, 240)
    run.cancel()
    run.wait()
