"""Bugs that a review and the fault lab found; each test failed before the fix."""

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest
from damage import inflict
from lab import alive, wait_until
from watch import state_of

from mosaic.catalog.workers import Catalog
from mosaic.dispatch.local_launcher import HOLDER
from mosaic.model.durable import read_json, write_json
from mosaic.model.machine import detect
from mosaic.model.rundir import RunDir
from mosaic.model.states import RunState
from mosaic.registry.registry import Registry
from mosaic.submit.record import record
from mosaic.submit.validate import SubmitContext, validate

S = RunState
HEARTBEAT = json.dumps({"event": "heartbeat", "run_id": "x", "timestamp": 0.0, "payload": {"progress": 1}})


def python_script(tmp_path, *lines):
    path = tmp_path / "script.py"
    path.write_text("\n".join(lines))
    return str(path)


def test_a_cancel_at_the_moment_of_the_claim_does_not_end_the_daemon(lab):
    pid = lab.daemon_pid()
    for _ in range(4):
        runs = [lab.submit(steps=50) for _ in range(4)]
        for run in runs:
            lab.client.cancel_run(run.run_id)
        for run in runs:
            assert lab.wait_until_over(run).state in (S.CANCELLED, S.TERMINATED)

    assert lab.daemon_pid() == pid


def test_a_late_holder_finds_nothing_to_start(lab):
    lab.stop_daemon()
    config = {"metadata": {"worker": {"module": "toy_worker.cli", "config": {"steps": 50}}}}
    context = SubmitContext(
        lab.root, Catalog(lab.root), run_exists=lambda _: False, tcp_address="", gpu_count=0, machine=detect()
    )
    run = validate(config, context)
    rundir: RunDir = record(lab.root, run)
    registry = Registry.open(lab.root.registry)
    registry.add(run)
    attempt = registry.claim(run.run_id, [])
    registry.request_cancel(run.run_id)
    registry.close()
    launch = {"version": 1, "run_id": run.run_id, "attempt": attempt, "nonce": "n", "argv": ["/bin/sleep", "60"]}
    rest = {"env": {}, "cwd": "/", "time_limit_s": None, "grace_s": 1, "pipe": False, "hold": "auto"}
    write_json(rundir.launch, launch | rest | {"tailer_argv": [], "tailer_env": {}})

    lab.restart_daemon()
    end = lab.wait_until_over(lab.client.get_run(run.run_id))
    holder = [sys.executable, "-I", "-S", HOLDER, "--run-dir", rundir.path, "--attempt", str(attempt)]
    subprocess.run(holder, timeout=30)

    assert end.state is S.CANCELLED
    assert not rundir.started.exists()


@pytest.mark.parametrize("harm", ["missing", "directory", "other owner", "FIFO"])
def test_a_cancel_reaches_a_run_whose_started_json_is_lost_before_the_daemon_sees_it(lab, monkeypatch, harm):
    """Case 646 of the adversary's seed 4712: its holder was taken for one that has not locked yet, forever."""
    lab.stop_daemon()
    monkeypatch.setenv("MOSAIC_FAILPOINTS", "spawn.spawned:stop")
    lab.restart_daemon()
    daemon = lab.daemon_pid()
    with ThreadPoolExecutor() as pool:
        submitted = pool.submit(lab.submit, steps=100_000, rate=20)
        wait_until(lambda: state_of(daemon) == "T", words="the daemon to stop behind the spawn")
        wait_until(lambda: list(lab.root.control.glob("*/started.json")), words="started.json")
        started = next(lab.root.control.glob("*/started.json"))
        tree = int(read_json(started)["root_pid"])
        refused = inflict(harm, started, started)["refused"]
        os.kill(daemon, signal.SIGCONT)
        run = submitted.result()
    if refused:
        pytest.skip(refused)

    lab.wait_for(run, S.EXECUTING)
    lab.client.cancel_run(run.run_id)

    assert lab.wait_until_over(run).state is S.CANCELLED
    assert not alive(tree)


@pytest.mark.parametrize("harm", ["missing", "directory"])
def test_a_cancel_reaches_a_run_whose_started_json_was_lost_without_a_daemon(lab, harm):
    run = lab.submit(steps=100_000, rate=20)
    lab.wait_for(run, S.EXECUTING)
    tree = lab.root_pid(run)
    lab.kill_daemon()
    inflict(harm, lab.rundir(run).started, lab.rundir(run).started)

    lab.restart_daemon()
    lab.client.cancel_run(run.run_id)

    assert lab.wait_until_over(run).state is S.CANCELLED
    assert not alive(tree)


def test_a_progress_bar_does_not_hide_a_hang(lab, tmp_path):
    script = python_script(
        tmp_path,
        "import sys, time",
        f"print('{HEARTBEAT}', flush=True)",
        "sys.stderr.write('\\r 50% |=====     |'); sys.stderr.flush()",
        "time.sleep(600)",
    )
    run = lab.submit_worker({"script": script}, limits={"heartbeat_s": 2.0, "grace_s": 0.5})

    end = lab.wait_until_over(run)

    assert end.state is S.FAULTED
    assert end.reason.startswith("hang: no heartbeat")


def test_a_worker_that_hung_without_a_daemon_is_found_by_the_next_daemon(lab):
    run = lab.submit(steps=1_000, hang_at=20, heartbeat_s=0.1, limits={"heartbeat_s": 4.0, "grace_s": 0.5})
    lab.wait_until_run(run, lambda now: now.summary.steps == 20, "20 steps")

    lab.kill_daemon()
    lab.restart_daemon()

    assert lab.wait_until_over(run).reason.startswith("hang: no heartbeat")


def test_a_run_whose_folder_was_deleted_ends_and_leaves_no_process(lab):
    run = lab.submit(steps=1_000_000, rate=100, limits={"grace_s": 0.5})
    lab.wait_for(run, S.EXECUTING)
    root, holder = lab.root_pid(run), lab.holder_pid(run)

    shutil.rmtree(lab.rundir(run).path)
    end = lab.wait_until_over(run)

    assert end.state is S.FAULTED
    assert "deleted" in end.reason
    wait_until(lambda: not alive(root) and not alive(holder), words="its processes to end")


@pytest.mark.parametrize("is_restarted", [False, True])
def test_a_run_whose_control_folder_was_deleted_ends_with_that_reason(lab, is_restarted):
    run = lab.submit(steps=100_000, rate=20)
    lab.wait_for(run, S.EXECUTING)
    tree = lab.root_pid(run)
    if is_restarted:
        lab.kill_daemon()
    shutil.rmtree(lab.rundir(run).control)
    if is_restarted:
        lab.restart_daemon()

    end = lab.wait_until_over(run)

    assert end.state is S.FAULTED
    assert f"{lab.rundir(run).control} was deleted while it was live" in end.reason
    assert not alive(tree)


def test_a_damaged_telemetry_file_is_rebuilt_and_does_not_keep_a_dead_run_alive(lab):
    run = lab.submit(steps=1_000_000, rate=100)
    lab.wait_for(run, S.EXECUTING)
    lab.kill_daemon()
    for path in lab.rundir(run).path.glob("telemetry.sqlite*"):
        path.write_bytes(b"not a database, but long enough to look like one" * 100)

    lab.restart_daemon()
    os.kill(lab.holder_pid(run), signal.SIGKILL)
    end = lab.wait_until_over(run)

    assert end.state is S.FAULTED
    assert "was damaged and was rebuilt" in end.telemetry
    assert printed_and_stored(lab, run)
    assert lab.client.health().healthy


def printed_and_stored(lab, run):
    """Whether the steps in the spool are those in the store, each once and in order."""
    lines = lab.rundir(run).stdout.read_bytes().splitlines()
    printed = [line["step_index"] for line in map(json.loads, lines) if line.get("event_type") == "step"]
    return printed == [step.step_index for step in lab.client.stream_steps(run.run_id)]


HARM = {
    "delete": lambda path: path.unlink(),
    "truncate": lambda path: os.truncate(path, 0),
    "replace": lambda path: (path.unlink(), path.symlink_to("/etc/hostname")),
}


@pytest.mark.parametrize("harm", HARM)
def test_a_live_runs_telemetry_file_can_be_lost_and_nothing_is(lab, harm):
    run, other = lab.submit(steps=600, rate=200), lab.submit(steps=600, rate=200)
    lab.wait_until_run(run, lambda now: now.summary.steps > 20, "20 steps")

    HARM[harm](lab.rundir(run).telemetry)
    end = lab.wait_until_over(run)

    assert (end.state, end.summary.steps) == (S.TERMINATED, 600)
    assert "telemetry.sqlite" in end.telemetry
    assert printed_and_stored(lab, run)
    assert (lab.wait_until_over(other).telemetry, lab.client.health().healthy) == ("", True)


def test_a_telemetry_file_lost_while_the_run_ends_is_rebuilt_before_its_end(lab):
    run = lab.submit(steps=300, rate=300)
    lab.wait_until_run(run, lambda now: now.summary.steps > 20, "20 steps")
    exit, telemetry = lab.rundir(run).exit, lab.rundir(run).telemetry

    wait_until(exit.exists, words="the worker to exit")
    with contextlib.suppress(FileNotFoundError):
        os.truncate(telemetry, 0)
    end = lab.wait_until_over(run)

    assert end.state is S.TERMINATED
    # "is empty": truncated after its file was closed, which is named too. Between exit and close it is rebuilt.
    if end.telemetry and "is empty" not in end.telemetry:
        assert printed_and_stored(lab, run)


def test_a_killed_holder_leaves_no_reserve_on_the_disk(lab):
    run = lab.submit(steps=1_000_000, rate=100)
    lab.wait_for(run, S.EXECUTING)
    spools = (lab.rundir(run).stdout, lab.rundir(run).stderr)
    kept = sum(path.stat().st_blocks * 512 for path in spools)

    os.kill(lab.holder_pid(run), signal.SIGKILL)
    lab.wait_until_over(run)

    left = sum(path.stat().st_blocks * 512 for path in spools)
    assert left < max(kept / 4, 1 << 20)
    assert {path.stat().st_mode & 0o777 for path in spools} == {0o400}


@pytest.mark.parametrize("spoil", ["link", "delete", "cut"])
def test_a_spool_that_was_replaced_or_truncated_does_not_keep_a_dead_run_alive(lab, tmp_path, spoil):
    run = lab.submit(steps=1_000_000, rate=100)
    lab.wait_until_run(run, lambda now: now.summary.steps > 20, "20 steps")
    tailer = lab.tailer_pid(run)
    os.kill(tailer, signal.SIGSTOP)
    spool = lab.rundir(run).stdout
    stored = spool.stat().st_size
    wait_until(lambda: spool.stat().st_size > stored + 1_000, words="bytes that are not stored")
    lab.kill_daemon()
    os.kill(lab.root_pid(run), signal.SIGKILL)
    wait_until(lab.rundir(run).exit.exists, words="the worker to exit")
    for pid in (lab.holder_pid(run), tailer):  # in this order: a holder restarts its tailer
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)

    if spoil == "cut":
        spool.chmod(0o600)
        os.truncate(spool, 10)
    else:
        spool.unlink()
    if spoil == "link":
        (tmp_path / "precious").write_text("keep me")
        spool.symlink_to(tmp_path / "precious")
    lab.restart_daemon()
    end = lab.wait_until_over(run)

    assert end.state is S.FAULTED
    assert end.telemetry == "incomplete"


def test_the_launch_file_of_another_run_costs_only_its_own_run(lab):
    """A tailer that believed it would store its lines as the other run's."""
    other = lab.submit(steps=100_000, rate=50)
    run = lab.submit(steps=1_000, rate=50)
    lab.wait_for(other, S.EXECUTING)
    lab.wait_for(run, S.EXECUTING)
    shutil.copy(lab.rundir(other).launch, lab.rundir(run).launch)

    os.kill(lab.tailer_pid(run), signal.SIGKILL)
    end = lab.wait_until_over(run)
    lab.client.cancel_run(other.run_id)
    lab.wait_until_over(other)

    assert (end.state, end.telemetry) == (S.TERMINATED, "incomplete")
    steps = [step["step_index"] for step in lab.events(other, "step")]
    assert steps == list(range(len(steps)))
