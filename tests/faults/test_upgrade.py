"""Holders, tailers and a daemon of the code before control files had a folder of their own, then a daemon of today."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from lab import ROOMY, Lab, alive, environ, wait_until

from mosaic.model.durable import read_json
from mosaic.model.states import RunState as S

REPOSITORY = Path(__file__).parents[2]
OLD = (
    "3431878b7d93"  # "gui: collect garbage in the window's thread only", the commit before "keep control files outside"
)
PARTS = ("VERSION", "src", "sdk", "workers/toy_worker")
# Runs with the old code: it starts the old daemon, and prints which code that was and the ids of its runs.
SUBMIT = """
import json, sys, time
import mosaic
from mosaic.client import TrainerClient
from mosaic.model.rundir import StateRoot
with TrainerClient.connect(StateRoot(sys.argv[1]), options=sys.argv[3:]) as client:
    ids = {}
    for name, config in json.loads(sys.argv[2]).items():
        worker = {"module": "toy_worker.cli", "config": config}
        ids[name] = client.submit_run({"metadata": {"run_name": name, "worker": worker}, "payload": {}}).run_id
    while not all(client.get_run(run_id).summary.steps > 20 for run_id in ids.values()):
        time.sleep(0.05)
    print(json.dumps({"code": mosaic.__file__, "pid": client.health().pid, "ids": ids}))
    client.shutdown()
"""
pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]


def git(*words):
    return subprocess.run(["git", "-C", str(REPOSITORY), *words], capture_output=True, check=False)


@pytest.fixture
def old_code(tmp_path):
    """The folder of the old sources; they are not installed, PYTHONPATH names them."""
    try:
        has_commit = git("cat-file", "-e", f"{OLD}^{{commit}}").returncode == 0
    except FileNotFoundError:
        has_commit = False
    if not has_commit:
        pytest.skip(f"there is no git history with the commit {OLD} here")
    archive = git("archive", OLD, "--", *PARTS).stdout
    subprocess.run(["tar", "-x", "-C", str(tmp_path)], input=archive, check=True)
    return tmp_path


def start_old(old_code, home, runs):
    paths = [old_code / "src", old_code / "sdk" / "src", old_code / "workers" / "toy_worker"]
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, paths))}
    command = [sys.executable, "-c", SUBMIT, str(home), json.dumps(runs), *ROOMY]
    done = subprocess.run(command, env=env, cwd="/", capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def test_runs_of_real_old_holders_survive_end_and_can_be_cancelled(old_code, home):
    forever = {"steps": 1_000_000, "rate": 100}
    found = start_old(old_code, home, {"ends": {"steps": 1_000, "rate": 100}, "cancelled": forever, "killed": forever})
    wait_until(lambda: not alive(found["pid"]), words="the end of the old daemon")

    lab = Lab(home)
    try:
        runs = {name: lab.client.get_run(run_id) for name, run_id in found["ids"].items()}
        roots = {name: lab.root_pid(run) for name, run in runs.items()}
        for run in runs.values():
            assert lab.wait_for(run, S.EXECUTING).attempt == 1
            # Really old: its control files are in its folder, and its holder runs the old code.
            assert lab.rundir(run).control.is_symlink()
            assert os.fsencode(old_code) in Path(f"/proc/{lab.holder_pid(run)}/cmdline").read_bytes()
            assert os.fsencode(old_code) in environ(lab.tailer_pid(run))
        assert found["code"].startswith(str(old_code))
        assert all(map(alive, roots.values()))

        lab.client.cancel_run(runs["cancelled"].run_id)
        os.kill(lab.holder_pid(runs["killed"]), signal.SIGKILL)
        ends = {name: lab.wait_until_over(run) for name, run in runs.items()}

        assert {name: end.state for name, end in ends.items()} == {
            "ends": S.TERMINATED,
            "cancelled": S.CANCELLED,
            "killed": S.FAULTED,
        }
        assert read_json(lab.rundir(runs["cancelled"]).exit)["ended_by"] == "cancel"
        for name, run in runs.items():
            steps = [event["step_index"] for event in lab.events(run, "step")]
            assert steps == list(range(len(steps))), name
            assert not alive(roots[name])
            lab.client.delete_run(run.run_id)
            assert not lab.rundir(run).path.exists()
        assert ends["ends"].summary.steps == 1_000
    finally:
        lab.close()
