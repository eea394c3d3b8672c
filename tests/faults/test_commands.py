"""Commands and crashes: no acknowledged command is lost, none is carried out twice."""

import itertools
import json
import os
import threading

import pytest
from lab import wait_until
from schedule import OBEDIENT, Fault, Schedule, ToyRun
from trial import run_trial

from mosaic.client import TrainerClient
from mosaic.model.errors import StoreUnavailable
from mosaic.model.states import RunState

WORKER = {"module": "toy_worker.cli", "commands": True, "config": {"extras": {"mode": "commands"}}}
STEP, FINISH = {"cmd": "step"}, {"cmd": "finish"}


def stepped(lab, run):
    return [event["command"] for event in lab.events(run, "step")]


def arm(lab, monkeypatch, tmp_path, orders):
    lab.stop_daemon()
    monkeypatch.setenv("MOSAIC_FAILPOINTS", orders)
    monkeypatch.setenv("MOSAIC_FAILPOINTS_DIR", str(tmp_path))
    lab.restart_daemon()


def test_a_client_whose_daemon_is_killed_again_and_again_loses_and_repeats_nothing(lab):
    run = lab.submit_worker(WORKER)
    numbers = []

    def send():
        with TrainerClient.connect(lab.root) as client:
            numbers.extend(client.command_run(run.run_id, STEP) for _ in range(150))

    sender = threading.Thread(target=send)
    sender.start()
    for least in (20, 60, 100):
        wait_until(lambda least=least: len(numbers) >= least)
        lab.kill_daemon()
        lab.restart_daemon()
    sender.join()
    lab.client.command_run(run.run_id, FINISH)
    lab.wait_until_over(run)

    assert numbers == list(range(1, 151))
    assert stepped(lab, run) == list(range(1, 151))


@pytest.mark.parametrize("point", ["command.checked", "command.appended", "command.synced"])
def test_a_daemon_killed_between_any_two_steps_of_a_command_keeps_it_once(lab, monkeypatch, tmp_path, point):
    arm(lab, monkeypatch, tmp_path, f"{point}:kill:1:1")
    run = lab.submit_worker(WORKER)
    numbers = []

    def send():
        with TrainerClient.connect(lab.root) as client:
            numbers.extend(client.command_run(run.run_id, STEP) for _ in range(3))

    pid = lab.daemon_pid()
    sender = threading.Thread(target=send)
    sender.start()
    wait_until((tmp_path / point).exists)
    wait_until(lambda: (tmp_path / point).stat().st_size == 2)
    lab.restart_daemon()
    sender.join()
    lab.client.command_run(run.run_id, FINISH)
    lab.wait_until_over(run)

    assert lab.daemon_pid() != pid
    assert numbers == [1, 2, 3]
    assert stepped(lab, run) == [1, 2, 3]


@pytest.mark.parametrize("point", ["command.checked", "command.appended"])
@pytest.mark.parametrize("action", ["full", "eio"])
def test_a_disk_error_is_reported_and_the_same_id_can_be_sent_again(lab, monkeypatch, tmp_path, point, action):
    arm(lab, monkeypatch, tmp_path, f"{point}:{action}:1:1")
    run = lab.submit_worker(WORKER)
    lab.client.command_run(run.run_id, STEP)

    with pytest.raises(StoreUnavailable, match="send it again with the same id"):
        lab.client.command_run(run.run_id, STEP, "second")

    assert lab.client.command_run(run.run_id, STEP, "second") == 2
    assert lab.client.command_run(run.run_id, FINISH) == 3
    lab.wait_until_over(run)
    assert stepped(lab, run) == [1, 2]


def test_half_a_line_of_a_killed_daemon_is_never_delivered(lab):
    run = lab.submit_worker(WORKER)
    lab.client.command_run(run.run_id, STEP)
    lab.wait_until_run(run, lambda now: now.summary.steps == 1, "its first step")
    lab.kill_daemon()
    with open(lab.rundir(run).commands, "a") as file:
        file.write('{"seq": 2, "id": "torn", "cmd": "step", "count": 1000000}')
    lab.restart_daemon()

    assert lab.client.command_run(run.run_id, STEP, "torn") == 2
    assert lab.client.command_run(run.run_id, FINISH) == 3
    lab.wait_until_over(run)

    assert stepped(lab, run) == [1, 2]
    lines = lab.rundir(run).commands.read_text().splitlines()
    assert [json.loads(line)["seq"] for line in lines] == [1, 2, 3]


def test_a_run_that_a_new_daemon_adopts_takes_commands(lab):
    run = lab.submit_worker(WORKER)
    lab.client.command_run(run.run_id, STEP, "a")
    lab.stop_daemon()
    lab.restart_daemon()

    assert lab.client.command_run(run.run_id, STEP, "a") == 1
    assert lab.client.command_run(run.run_id, STEP, "b") == 2
    assert lab.client.command_run(run.run_id, FINISH) == 3
    assert lab.wait_until_over(run).state is RunState.TERMINATED
    assert stepped(lab, run) == [1, 2]


@pytest.mark.parametrize("plant", [os.mkfifo, lambda path: path.write_text('{"attempt": 1, "secret": "a guess"}')])
def test_an_exit_file_that_proves_nothing_does_not_stop_commands(lab, plant):
    run = lab.submit_worker(WORKER)
    lab.client.command_run(run.run_id, STEP)
    lab.wait_until_run(run, lambda now: now.summary.steps == 1, "its first step")
    plant(lab.rundir(run).exit)

    assert lab.client.command_run(run.run_id, FINISH) == 2
    assert lab.wait_until_over(run).state is RunState.TERMINATED


def test_the_lab_kills_the_daemon_between_commands(tmp_path):
    faults = tuple(itertools.repeat(Fault("kill daemon between commands", 0, 0.1), 2))

    report = run_trial(Schedule(0, 0, 0, (ToyRun(OBEDIENT, 60, 0.0),), faults, ""))

    assert report.violations == []
    assert report.done["kill daemon between commands"] == 2


@pytest.mark.slow
def test_ten_thousand_commands_arrive_in_order(lab):
    run = lab.submit_worker(WORKER)
    numbers = [lab.client.command_run(run.run_id, STEP) for _ in range(10_000)]
    lab.client.command_run(run.run_id, FINISH)
    lab.wait_until_over(run)

    assert numbers == list(range(1, 10_001))
    assert stepped(lab, run) == numbers
