"""A clock that is set and a disk that refuses, each alone: nothing is lost, and all goes on when the weather clears."""

import errno

import pytest
from lab import Lab
from ordeal import undergo
from schedule import CALM, HABITS, WEATHER, Fault, Habit, Schedule, ToyRun
from weather import Weather, can_make_weather

from mosaic.model.errors import StoreUnavailable
from mosaic.model.states import RunState

PATIENT = {"time_s": 60.0, "grace_s": 1.0}  # an hour's step of the clock must not use it up

pytestmark = pytest.mark.skipif(not can_make_weather(), reason="needs a C compiler (apt-get install gcc)")


def undergo_weather(kind):
    toy = {habit.name: habit for habit in HABITS}
    runs = (
        ToyRun(Habit("with a time limit", CALM, limits=PATIENT), 500, 250.0),
        ToyRun(toy["crash"], 500, 400.0),
        ToyRun(toy["burst"], 500, 400.0),
    )
    return undergo(Schedule(0, 0, 0, runs, (Fault(kind, 0, 0.5), Fault("kill daemon", 0, 0.2)), ""))


@pytest.mark.parametrize("kind", WEATHER)
def test_no_promise_is_broken_by_bad_weather(kind):
    report = undergo_weather(kind)

    assert report.violations == []
    assert report.done[kind] == 1


@pytest.fixture
def weather(tmp_path, monkeypatch):
    weather = Weather(tmp_path)
    for name, value in weather.variables.items():
        monkeypatch.setenv(name, value)
    return weather


@pytest.fixture
def lab(weather, home):
    lab = Lab(home)
    yield lab
    lab.close()


def submit(lab):
    worker = {"module": "toy_worker.cli", "config": {"steps": 50}}
    return lab.client.submit_run({"metadata": {"worker": worker}}, idempotency_key="once")


@pytest.mark.parametrize("error", [errno.EIO, errno.EROFS, errno.ENOSPC])
def test_a_submit_that_the_disk_refuses_is_refused_and_can_be_made_again(lab, weather, error):
    daemon = lab.daemon_pid()
    with weather.broken(error, "registry.db"), pytest.raises(StoreUnavailable):
        submit(lab)

    run = submit(lab)

    assert lab.wait_until_over(run).state is RunState.TERMINATED
    assert lab.client.list_runs().total == 1
    assert lab.daemon_pid() == daemon


def test_an_hour_back_and_forth_ends_no_run_and_loses_no_line(lab, weather):
    run = lab.submit(steps=1_200, rate=400, limits={"time_s": 60, "heartbeat_s": 30})
    for count, hours in ((100, 1), (400, -1), (800, 2)):
        lab.wait_until_run(run, lambda now, count=count: now.summary.steps > count, f"{count} steps")
        weather.set_clock(3600 * hours)

    end = lab.wait_until_over(run)

    assert end.state is RunState.TERMINATED
    assert [step["step_index"] for step in lab.events(run, "step")] == list(range(1_200))
