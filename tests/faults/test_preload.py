"""Clock changes and disk errors, each alone: nothing is lost, and the runs continue afterwards."""

import errno

import pytest
from lab import Lab
from preload import Preload, can_preload
from schedule import CALM, HABITS, PRELOAD_FAULTS, Fault, Habit, Schedule, ToyRun
from trial import run_trial

from mosaic.model.errors import StoreUnavailable
from mosaic.model.states import RunState

PATIENT = {"time_s": 60.0, "grace_s": 1.0}  # a clock change of an hour must not use it up

pytestmark = pytest.mark.skipif(not can_preload(), reason="needs a C compiler (apt-get install gcc)")


def run_with(kind):
    toy = {habit.name: habit for habit in HABITS}
    runs = (
        ToyRun(Habit("with a time limit", CALM, limits=PATIENT), 500, 250.0),
        ToyRun(toy["crash"], 500, 400.0),
        ToyRun(toy["burst"], 500, 400.0),
    )
    return run_trial(Schedule(0, 0, 0, runs, (Fault(kind, 0, 0.5), Fault("kill daemon", 0, 0.2)), ""))


@pytest.mark.parametrize("kind", PRELOAD_FAULTS)
def test_no_promise_is_broken_by_a_clock_change_or_a_failing_disk(kind):
    report = run_with(kind)

    assert report.violations == []
    assert report.done[kind] == 1


@pytest.fixture
def preload(tmp_path, monkeypatch):
    preload = Preload(tmp_path)
    for name, value in preload.variables.items():
        monkeypatch.setenv(name, value)
    return preload


@pytest.fixture
def lab(preload, home):
    lab = Lab(home)
    yield lab
    lab.close()


def submit(lab):
    worker = {"module": "toy_worker.cli", "config": {"steps": 50}}
    return lab.client.submit_run({"metadata": {"worker": worker}}, idempotency_key="once")


@pytest.mark.parametrize("error", [errno.EIO, errno.EROFS, errno.ENOSPC])
def test_a_submit_that_the_disk_refuses_is_refused_and_can_be_retried(lab, preload, error):
    daemon = lab.daemon_pid()
    with preload.broken(error, "registry.db"), pytest.raises(StoreUnavailable):
        submit(lab)

    run = submit(lab)

    assert lab.wait_until_over(run).state is RunState.TERMINATED
    assert lab.client.list_runs().total == 1
    assert lab.daemon_pid() == daemon


def test_an_hour_back_and_forth_ends_no_run_and_loses_no_line(lab, preload):
    run = lab.submit(steps=1_200, rate=400, limits={"time_s": 60, "heartbeat_s": 30})
    for count, hours in ((100, 1), (400, -1), (800, 2)):
        lab.wait_until_run(run, lambda now, count=count: now.summary.steps > count, f"{count} steps")
        preload.set_clock(3600 * hours)

    end = lab.wait_until_over(run)

    assert end.state is RunState.TERMINATED
    assert [step["step_index"] for step in lab.events(run, "step")] == list(range(1_200))
