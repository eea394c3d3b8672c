"""Processes that are stopped for longer than the deadlines: only the silence of a worker ends its run."""

import os
import signal
import time

import pytest
from watch import descendants

from mosaic.model.states import RunState

S = RunState
LIMITS = {"heartbeat_s": 2.0, "grace_s": 1.0}
STOPPED_FOR_S = 5.0  # well past the limit


@pytest.fixture
def run(lab):
    """A run of several minutes that sends frequent heartbeats and uses hardly any CPU."""
    run = lab.submit(steps=1_000_000, rate=5, heartbeat_s=0.2, limits=LIMITS)
    lab.wait_until_run(run, lambda now: now.summary.steps > 2, "its first steps")
    return run


def stop_for_a_while(pid):
    os.kill(pid, signal.SIGSTOP)
    time.sleep(STOPPED_FOR_S)
    os.kill(pid, signal.SIGCONT)


def goes_on(lab, run):
    steps = lab.client.get_run(run.run_id).summary.steps
    now = lab.wait_until_run(run, lambda now: now.summary.steps > steps + 20 or now.state.is_over, "20 steps more")
    return now.state is S.EXECUTING


def test_a_stopped_worker_is_ended_as_hung(lab, run):
    for pid in [*descendants(lab.rundir(run))][1:]:
        os.kill(pid, signal.SIGSTOP)

    end = lab.wait_until_over(run)

    assert end.state is S.FAULTED
    assert end.reason.startswith("hang: no heartbeat for")


@pytest.mark.parametrize("victim", ["daemon", "tailer", "holder"])
def test_no_run_is_ended_because_the_platform_is_silent(lab, run, victim):
    pid = lab.daemon_pid() if victim == "daemon" else getattr(lab, f"{victim}_pid")(run)

    stop_for_a_while(pid)

    assert goes_on(lab, run)
