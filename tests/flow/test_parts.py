"""Parts of a run through the real daemon: the toy worker's helpers, lost and replaced, ended with their run."""

import json
import os
import signal
from pathlib import Path

import pytest
from lab import alive, cmdline, environ, wait_until

from mosaic.model.errors import BadConfig, UnknownRun
from mosaic.model.states import RunState

S = RunState


def submit(lab, count=2, **config):
    payload = {"parts": [{"name": "helper", "count": count}], "limits": {"grace_s": 2}}
    worker = {"module": "toy_worker.cli", "config": {"steps": 100_000, "rate": 20, **config}}
    return lab.client.submit_run({"metadata": {"run_name": "main", "worker": worker}, "payload": payload})


def parts_of(lab, run):
    """Its parts, in the order of their submission."""
    children = [lab.client.get_run(child) for child in lab.client.get_run(run.run_id).children]
    return [child for child in children if child.relation == "part"]


def role(part):
    return part.config["metadata"]["role"]


def live_parts(lab, run):
    return [part for part in parts_of(lab, run) if not part.state.is_over]


def arrived(lab, run):
    stored = lab.client.get_run(run.run_id).summary.events
    found = [event.to_dict() for event in lab.client.stream_events(run.run_id, until_seq=stored)] if stored else []
    return [event["payload"]["index"] for event in found if event.get("event") == "helper_arrived"]


def wait_for_arrivals(lab, run, count):
    wait_until(lambda: len(arrived(lab, run)) >= count, 60, f"{count} helpers")


def end(lab, run):
    lab.client.cancel_run(run.run_id)
    return lab.wait_until_over(run)


def test_parts_are_runs_of_their_own_that_end_with_their_run(lab, mosaic):
    mosaic("run", "toy", "steps=100000", "rate=20", "--name", "main", "--part", "helper:2", "--detach")
    run = lab.client.get_run("last")
    wait_for_arrivals(lab, run, 2)
    parts = parts_of(lab, run)

    assert run.name == "main"
    assert sorted(arrived(lab, run)) == [0, 1]
    assert [part.name for part in parts] == ["main helper-0", "main helper-1"]
    assert lab.client.get_run("last").run_id == run.run_id  # not its newest part
    assert [line.split()[0] for line in mosaic("runs").splitlines()[1:]] == [run.run_id]
    assert len(mosaic("runs", "--parts").splitlines()) == 4
    shown = mosaic("show", "main")
    assert all(f"helper-{index}" in shown and parts[index].run_id in shown for index in (0, 1))
    end(lab, run)
    wait_until(lambda: not live_parts(lab, run), 60, "the end of the parts")
    assert {(part.state, part.reason) for part in parts_of(lab, run)} == {
        (S.CANCELLED, f"its run {run.run_id} is over")
    }
    mosaic("rm", "main", "--yes")
    for part in parts:
        with pytest.raises(UnknownRun):
            lab.client.get_run(part.run_id)
        assert not Path(part.run_dir).exists()


def test_a_part_that_is_killed_is_replaced_while_the_run_goes_on(lab):
    run = submit(lab)
    wait_for_arrivals(lab, run, 2)
    lost = parts_of(lab, run)[1]

    os.kill(lab.root_pid(lost), signal.SIGKILL)
    wait_for_arrivals(lab, run, 3)

    assert lab.client.get_run(lost.run_id).state is S.FAULTED
    assert [(role(part)["index"], role(part)["number"]) for part in parts_of(lab, run)] == [(0, 1), (1, 1), (1, 2)]
    assert sorted(role(part)["index"] for part in live_parts(lab, run)) == [0, 1]
    newest = parts_of(lab, run)[-1]
    assert newest.history[0].reason.startswith(f"submitted by MOSAIC: helper-1 of run {run.run_id}, in place of")
    assert lab.state(run) is S.EXECUTING
    end(lab, run)


@pytest.mark.parametrize("point", ["submit.recorded", "submit.added"])
def test_a_daemon_killed_while_it_starts_parts_leaves_each_to_the_next_once(lab, tmp_path, monkeypatch, point):
    lab.stop_daemon()
    with monkeypatch.context() as orders:
        orders.setenv("MOSAIC_FAILPOINTS", f"{point}:kill:1:1")  # the first submit is the run's own
        orders.setenv("MOSAIC_FAILPOINTS_DIR", str(tmp_path))
        lab.restart_daemon()
        pid = lab.daemon_pid()
        run = submit(lab)
        wait_until(lambda: not alive(pid), 60, "a daemon that is killed")
    lab.restart_daemon()

    wait_for_arrivals(lab, run, 2)

    assert sorted(role(part)["index"] for part in parts_of(lab, run)) == [0, 1]
    end(lab, run)


def test_a_daemon_that_starts_after_the_end_of_a_run_ends_its_parts(lab, tmp_path, monkeypatch):
    lab.stop_daemon()
    with monkeypatch.context() as orders:
        orders.setenv("MOSAIC_FAILPOINTS", "finish.moved")  # the run is over, which nobody was told
        orders.setenv("MOSAIC_FAILPOINTS_DIR", str(tmp_path))
        lab.restart_daemon()
        pid = lab.daemon_pid()
        run = submit(lab)
        wait_for_arrivals(lab, run, 2)
        lab.client.cancel_run(run.run_id)
        wait_until(lambda: not alive(pid), 60, "a daemon that is killed")
    lab.restart_daemon()

    wait_until(lambda: not live_parts(lab, run), 60, "the end of the parts")

    assert lab.state(run) is S.CANCELLED
    assert len(parts_of(lab, run)) == 2


def test_the_secret_of_the_parts_is_only_in_their_environment(lab):
    run = submit(lab, count=1)
    wait_for_arrivals(lab, run, 1)
    [part] = parts_of(lab, run)
    pids = [pid for pid in lab.processes() if b"toy_worker.cli" in cmdline(pid)]
    secrets = {
        line.partition(b"=")[2] for pid in pids for line in environ(pid).split(b"\0") if b"PARTS_SECRET=" in line
    }
    end(lab, run)
    wait_until(lambda: not live_parts(lab, run), 60, "the end of the parts")
    lab.stop_daemon()

    assert len(secrets) == 1
    [secret] = secrets
    assert len(secret) == 64
    holding = {path for path in lab.root.path.rglob("*") if path.is_file() and secret in path.read_bytes()}
    assert holding == {lab.rundir(one).launch for one in (run, part)}


def test_a_part_that_the_worker_does_not_have_is_refused(lab, mosaic):
    assert "'toy' has no part 'env'. Its parts: helper." in mosaic("run", "toy", "--part", "env:2", code=1)
    script = {"metadata": {"worker": {"script": __file__}}, "payload": {"parts": [{"name": "env"}]}}
    with pytest.raises(BadConfig, match=r"payload.parts: '.*\.py' has no part 'env'. It has no parts"):
        lab.client.submit_run(script)


def test_nobody_but_the_daemon_submits_a_part(lab):
    run = submit(lab, count=1)
    wait_for_arrivals(lab, run, 1)
    [part] = parts_of(lab, run)
    config = {**part.config, "metadata": {**part.config["metadata"], "run_id": None}}

    with pytest.raises(BadConfig, match="only MOSAIC itself starts a part of a run"):
        lab.client.submit_run(json.dumps(config))
    with pytest.raises(BadConfig, match="only MOSAIC itself starts a part of a run"):
        lab.client.submit_runs([config])
    end(lab, run)
