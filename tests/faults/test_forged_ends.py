"""A run is over when its processes are, whatever its worker writes; and runs of an older version keep their files."""

import os
import signal

import pytest
from lab import alive, wait_until

from mosaic.model.durable import read_json, write_json
from mosaic.model.errors import RunIsLive
from mosaic.model.states import RunState as S
from mosaic.model.ulid import is_ulid

# Renamed into place, as the holder does it: that wakes the tailer.
FORGE = """
import json, os, pathlib, time
control = pathlib.Path("../../control", os.environ["MOSAIC_RUN_ID"])
forged = {"version": 1, "attempt": 1, "exit_code": 0, "signal": None, "ended_by": None, "unkillable": False,
          "stdout_bytes": 0, "stderr_bytes": 0, "root_pid": 1, "root_start_ticks": 0, "holder_pid": 1, "argv": ["true"]}
for folder in (pathlib.Path("."), control):
    for name in ("launch.json", "started.json", "exit.json"):
        try:
            (folder / "new").write_text(json.dumps(forged))
            os.rename(folder / "new", folder / name)
        except OSError as error:
            print(name, error, flush=True)
    try:
        os.unlink(folder / "owner.lock")
    except OSError as error:
        print(error, flush=True)
print("forged", flush=True)
while not os.path.exists("go"):
    time.sleep(0.01)
print("last line", flush=True)
"""
ONE_GPU = {"requested": 1, "mandatory": True}


def forging(lab, script):
    run = lab.submit_worker({"script": script("forge.py", FORGE)}, gpus=ONE_GPU)
    lab.wait_until_run(run, lambda now: now.state.is_over or b"forged" in lab.text(run), "the forged files")
    # A whole run later, the daemon has seen everything that the first one has done.
    assert lab.wait_until_over(lab.submit(steps=3)).state is S.TERMINATED
    return run


@pytest.fixture
def lab(make_lab):
    return make_lab("--gpus", "1")


def test_a_forged_end_ends_nothing_while_the_tree_lives(lab, script):
    run = forging(lab, script)
    waiting = lab.submit_worker({"script": script("wait.py", "import time; time.sleep(600)")}, gpus=ONE_GPU)
    lab.kill_daemon()
    lab.restart_daemon()
    lab.wait_until_run(waiting, lambda now: now.waiting_for, "its turn")

    assert not lab.state(run).is_over
    assert lab.state(waiting) is S.INIT
    with pytest.raises(RunIsLive):
        lab.client.delete_run(run.run_id)
    root = lab.root_pid(run)
    assert alive(root)
    lab.client.cancel_run(run.run_id)
    assert lab.wait_until_over(run).state is S.CANCELLED
    assert not alive(root)


def test_a_run_that_forged_its_end_loses_no_line_after_it(lab, script):
    run = forging(lab, script)

    (lab.rundir(run).path / "go").touch()

    assert lab.wait_until_over(run).state is S.TERMINATED
    assert lab.text(run).endswith(b"last line\n")
    assert "control files hidden" in lab.client.get_run(run.run_id).held_by


# ---- runs of an older version


def make_old(rundir):
    """Put the files where an older version has them. A live holder does not notice: it finds them by its link."""
    for path in rundir.control.iterdir():
        os.rename(path, rundir.path / path.name)
    rundir.control.rmdir()
    for name in ("launch.json", "started.json", "exit.json"):
        facts = read_json(rundir.path / name)
        if facts:
            del facts["secret"]
            write_json(rundir.path / name, facts)


def test_a_live_run_of_an_older_version_is_adopted_and_ends(lab):
    run = lab.submit(steps=1_000_000, rate=50)
    lab.wait_for(run, S.EXECUTING)
    tailer = lab.tailer_pid(run)
    os.kill(tailer, signal.SIGSTOP)  # it is of this version, and watches the folder that is removed
    lab.stop_daemon()
    make_old(lab.rundir(run))

    lab.restart_daemon()
    os.kill(tailer, signal.SIGKILL)
    write_json(lab.rundir(run).path / "exit.json", {"attempt": 1, "exit_code": 0})  # by its worker
    assert lab.wait_until_over(lab.submit(steps=3)).state is S.TERMINATED
    assert lab.state(run) is S.EXECUTING
    lab.client.cancel_run(run.run_id)

    assert lab.wait_until_over(run).state is S.CANCELLED
    assert read_json(lab.rundir(run).path / "exit.json")["ended_by"] == "cancel"


def test_a_run_of_an_older_version_that_ended_without_a_daemon_is_finished(lab):
    run = lab.submit(steps=1_000_000, rate=50)
    lab.wait_for(run, S.EXECUTING)
    lab.stop_daemon()
    tailer = lab.tailer_pid(run)
    os.kill(lab.holder_pid(run), signal.SIGKILL)
    os.kill(tailer, signal.SIGKILL)
    wait_until(lambda: not alive(lab.root_pid(run)) and not alive(tailer))
    make_old(lab.rundir(run))

    lab.restart_daemon()

    assert lab.wait_until_over(run).state is S.FAULTED


def test_a_finished_run_of_an_older_version_is_shown_resumed_and_deleted(lab):
    run = lab.wait_until_over(lab.submit(steps=20, checkpoint_every=8))
    assert run.state is S.TERMINATED
    lab.stop_daemon()
    make_old(lab.rundir(run))

    lab.restart_daemon()

    assert lab.client.get_run(run.run_id).state is S.TERMINATED
    assert len(lab.events(run, "step")) == 20
    folder = lab.rundir(run)
    assert folder.control.is_symlink()
    more = {"parent_run_id": run.run_id, "relation": "resume", "worker": {"config": {"steps": 24}}}
    resumed = lab.client.submit_run({"metadata": more})
    assert lab.wait_until_over(resumed).state is S.TERMINATED
    assert (resumed.parent_run_id, lab.state(run)) == (run.run_id, S.TERMINATED)
    assert [event["step_index"] for event in lab.events(resumed, "step")] == [20, 21, 22, 23]
    assert not lab.rundir(resumed).control.is_symlink()
    lab.client.delete_run(run.run_id)
    assert not folder.path.exists()
    assert not os.path.lexists(folder.control)


def test_deleting_a_run_deletes_its_control_folder(lab):
    run = lab.wait_until_over(lab.submit(steps=3))
    assert lab.rundir(run).exit.exists()

    lab.client.delete_run(run.run_id)

    assert not lab.rundir(run).control.exists()
    assert not [name for name in os.listdir(lab.root.control) if is_ulid(name)]
