"""The registry is lost or damaged while runs are live: they are found again, and none is started twice."""

import contextlib
import os
import shutil
import sqlite3
import subprocess
import sys

import pytest
from lab import Lab, alive, wait_until

from mosaic.model.durable import read_json
from mosaic.model.states import RunState

S = RunState


def lose(root):
    for suffix in ("", "-wal", "-shm"):
        root.registry.with_name(root.registry.name + suffix).unlink(missing_ok=True)


def lose_all_but_folders(root):
    lose(root)
    for name in os.listdir(root.control):
        if (record := root.control / name / "records.jsonl").exists():
            record.unlink()
        (root.control / "revision").unlink(missing_ok=True)
    shutil.rmtree(root.backups, ignore_errors=True)


DAMAGES = {
    "missing": lose,
    "empty": lambda root: root.registry.write_bytes(b""),
    "garbage": lambda root: (lose(root), root.registry.write_bytes(b"garbage" * 3000)),
    "lost WAL": lambda root: [root.registry.with_name(f"registry.db{end}").unlink() for end in ("-wal", "-shm")],
    "records lost too": lose_all_but_folders,
}


@pytest.fixture
def lab(tmp_path):
    lab = Lab(tmp_path / "h", options=("--gpus", "2"))
    yield lab
    lab.close()


def test_live_runs_are_found_again_whatever_happened_to_the_registry(lab):
    gpu = {"requested": 1, "mandatory": True}
    run = lab.submit("live", gpus=gpu, steps=1_000_000, rate=200)
    over = lab.submit("over", steps=5)
    lab.wait_until_over(over)
    lab.wait_until_run(run, lambda now: now.summary.steps > 20, "20 steps")
    holder, worker = lab.holder_pid(run), lab.root_pid(run)

    for name, damage in DAMAGES.items():
        before = lab.client.get_run(run.run_id)
        ended = lab.client.get_run(over.run_id)
        lab.kill_daemon()
        damage(lab.root)
        lab.restart_daemon()

        now = lab.wait_for(run, S.EXECUTING, timeout_s=20)
        after = lab.client.get_run(over.run_id)
        assert (now.name, now.attempt, now.granted) == (before.name, before.attempt, before.granted), name
        assert (after.name, after.state, after.reason) == (ended.name, ended.state, ended.reason), name
        assert (lab.holder_pid(run), lab.root_pid(run), alive(holder), alive(worker)) == (holder, worker, True, True)
        origin = read_json(lab.root.registry_origin)
        assert (origin["rebuilt_at"] > 0, bool(origin["why"])) == (True, True), name
        lab.wait_until_run(run, lambda now, more=before.summary.steps + 20: now.summary.steps > more, "more steps")
    lab.client.cancel_run(run.run_id)
    end = lab.wait_until_over(run)

    steps = [event["step_index"] for event in lab.events(run, "step")]
    assert end.state is S.CANCELLED
    assert steps == list(range(len(steps)))
    assert not alive(worker)


def test_a_rebuild_is_refused_while_a_daemon_serves_and_two_do_not_meet(lab):
    command = [sys.executable, "-m", "mosaic.daemon.restore", "--root", str(lab.root.path), "--json"]

    refused = subprocess.run(command, capture_output=True, text=True)
    lab.stop_daemon()
    two = [subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) for _ in range(2)]
    codes = sorted(process.wait(30) for process in two)
    for process in two:
        process.communicate()

    assert refused.returncode == 3
    assert "mosaic daemon stop" in refused.stderr
    assert codes in ([0, 0], [0, 3])


def overwrite(root):
    """What a stray program does: the pages are garbage, under the daemon's open file."""
    with open(root.registry, "r+b") as file:
        file.write(b"\xa5" * root.registry.stat().st_size)


def replace_by_an_old_copy(root):
    other = root.registry.with_name("copy.db")
    with contextlib.closing(sqlite3.connect(other)) as db:
        db.execute("CREATE TABLE runs (id TEXT)")
    os.rename(other, root.registry)


LIVE_DAMAGES = {"overwritten": overwrite, "replaced": replace_by_an_old_copy, "deleted": lose}


@pytest.mark.parametrize("damage", LIVE_DAMAGES.values(), ids=LIVE_DAMAGES)
def test_damage_under_a_running_daemon_is_said_at_once_and_costs_no_run(lab, damage):
    run = lab.submit("live", steps=1_000_000, rate=200)
    over = lab.wait_until_over(lab.submit("over", steps=5))
    lab.wait_until_run(run, lambda now: now.summary.steps > 20, "20 steps")
    worker = lab.root_pid(run)
    lab.stop_daemon()  # so that the pages are in the file; those in the WAL hide what is wrong with it
    lab.restart_daemon()
    assert lab.client.health().healthy

    damage(lab.root)
    wait_until(lambda: not lab.client.health().healthy, 10, "a health report that names the damage")
    problem = lab.client.health().problem
    lab.stop_daemon()
    lab.restart_daemon()

    assert "registry.db cannot be trusted: " in problem
    assert "mosaic daemon stop && mosaic daemon start" in problem
    assert lab.client.health().healthy
    assert lab.wait_for(run, S.EXECUTING, timeout_s=20).name == "live"
    assert (lab.state(over), alive(worker)) == (S.TERMINATED, True)
    lab.client.cancel_run(run.run_id)
    assert lab.wait_until_over(run).state is S.CANCELLED
    steps = [event["step_index"] for event in lab.events(run, "step")]
    assert steps == list(range(len(steps)))
