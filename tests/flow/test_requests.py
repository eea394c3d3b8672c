"""CPUs and memory: requested by each run, granted in order, freed when its processes are proven dead."""

import json
import os
import re
import signal

import pytest

from mosaic.client import TrainerClient
from mosaic.model.errors import BadConfig
from mosaic.model.machine import detect
from mosaic.model.rundir import StateRoot
from mosaic.model.states import RunState

S = RunState
FOREVER = {"steps": 1_000_000, "rate": 20}


def test_runs_beyond_the_cpus_wait_in_order_and_say_what_for(make_lab, mosaic):
    lab = make_lab("--cpus", "2")
    first, second = (lab.submit(f"early-{number}", **FOREVER) for number in range(2))
    for run in (first, second):
        lab.wait_for(run, S.EXECUTING)
    large = lab.submit("large", resources={"cpus": 2}, steps=5)
    small = lab.submit("small", steps=5)
    driver = lab.submit("driver", resources={"cpus": 0, "memory_mb": 0}, steps=5)

    assert lab.wait_until_over(driver).state is S.TERMINATED
    note = lab.wait_until_run(large, lambda run: run.waiting_for != "", "a note").waiting_for
    assert note.startswith(f"2 CPUs: 2 of 2 in use by early-0 {first.run_id[:13]}, early-1 {second.run_id[:13]}")
    assert re.search(f"waiting for +1 CPU: 2 of 2 in use by early-0 {first.run_id[:13]}", mosaic("show", small.run_id))
    lab.client.cancel_run(first.run_id)
    lab.wait_until_over(first)
    lab.wait_until_run(small, lambda run: run.waiting_for.startswith("its turn: large"), "its turn")

    lab.client.cancel_run(second.run_id)

    ends = [lab.wait_until_over(run) for run in (large, small)]
    assert [end.state for end in ends] == [S.TERMINATED, S.TERMINATED]
    started = [next(move.at for move in end.history if move.new is S.HANDSHAKE) for end in ends]
    assert started == sorted(started)


def test_memory_is_the_workers_estimate_unless_the_run_requests_it(make_lab, mosaic):
    lab = make_lab("--cpus", "8", "--memory", "1G")
    estimated = lab.submit(**FOREVER)
    greedy = json.loads(mosaic("run", "toy", "steps=5", "--memory", "1000M", "--cpus", "0.5", "--detach", "--json"))
    waits = lab.client.get_run(greedy["run_id"])

    waiting = lab.wait_until_run(waits, lambda run: run.waiting_for != "", "a note")

    assert (lab.client.get_run(estimated.run_id).memory_mb, waiting.memory_mb, waiting.cpus) == (32, 1000, 0.5)
    assert waiting.waiting_for == "1000 MB of memory: 32 MB of 1 GB are requested by other runs"
    status = json.loads(mosaic("daemon", "status", "--json"))
    counted = ("cpus", "cpus_requested", "memory_mb", "memory_mb_requested", "waiting_runs")
    assert [status[name] for name in counted] == [8.0, 1.0, 1024, 32, 1]
    status = mosaic("daemon", "status")
    assert "1 running, 1 waiting; at most 32 at the same time" in status
    assert "CPUs       1 of 8 requested" in status
    assert "memory     32 MB of 1 GB requested" in status


@pytest.mark.parametrize(
    ("asked", "sentence"),
    [
        ({"cpus": 3}, "3 are requested but runs on this machine may use 2"),
        ({"memory_mb": 8192}, "8 GB are requested but runs on this machine may use 1 GB"),
    ],
)
def test_more_than_the_machine_has_is_a_submit_error(make_lab, asked, sentence):
    lab = make_lab("--cpus", "2", "--memory", "1G")

    with pytest.raises(BadConfig, match=sentence):
        lab.submit(resources=asked)


def test_a_daemon_without_options_offers_what_the_machine_has(home, mosaic):
    with TrainerClient.connect(StateRoot(home)) as client:
        health = client.health()
        client.shutdown(kill_runs=True)

    assert (health.cpus, health.memory_mb) == (detect().cpus, detect().memory_mb)


def test_the_options_of_a_start_are_kept_until_auto_resets_them(home, mosaic):
    for options, cpus in ((("--cpus", "0.5"), 0.5), ((), 0.5), (("--cpus", "auto"), detect().cpus)):
        mosaic("daemon", "start", *options)
        assert json.loads(mosaic("daemon", "status", "--json"))["cpus"] == cpus
        mosaic("daemon", "stop")
    assert "'lots' is not a valid number of CPUs, such as 4 or 0.5" in mosaic(
        "daemon", "start", "--cpus", "lots", code=2
    )


def test_the_cpus_of_a_run_that_died_without_a_daemon_are_freed(make_lab):
    lab = make_lab("--cpus", "1")
    first = lab.submit(**FOREVER)
    lab.wait_for(first, S.EXECUTING)
    second = lab.submit(steps=5)
    lab.kill_daemon()

    lab.restart_daemon()

    lab.wait_until_run(second, lambda run: run.waiting_for.startswith("1 CPU: 1 of 1"), "a note")
    lab.client.cancel_run(first.run_id)
    assert lab.wait_until_over(second).state is S.TERMINATED


def test_the_cpus_of_a_dead_run_are_freed_while_its_telemetry_is_still_being_read(make_lab):
    lab = make_lab("--cpus", "1")
    first = lab.submit(**FOREVER)
    lab.wait_for(first, S.EXECUTING)
    tailer = lab.tailer_pid(first)
    os.kill(tailer, signal.SIGSTOP)
    try:
        second = lab.submit(steps=5)
        os.kill(lab.root_pid(first), signal.SIGKILL)

        assert lab.wait_until_over(second).state is S.TERMINATED
        assert not lab.state(first).is_over
    finally:
        os.kill(tailer, signal.SIGCONT)
    assert lab.wait_until_over(first).state is S.FAULTED
