"""A state folder whose databases are on another disk: runs as ever, nothing of SQLite in the folder itself."""

import shutil
import tempfile
from pathlib import Path

import pytest
from lab import Lab

from mosaic.cli.root import split_root
from mosaic.model.durable import read_json
from mosaic.model.errors import BadRoot
from mosaic.model.root import check_root
from mosaic.model.rundir import StateRoot
from mosaic.model.states import RunState


@pytest.fixture
def own():
    with tempfile.TemporaryDirectory(prefix="own-") as folder:
        yield Path(folder)


@pytest.fixture
def split_lab(home, own):
    split_root(StateRoot(home), own / "databases")
    lab = Lab(home)
    yield lab
    lab.close()


def databases_in(folder):
    return {path.name for path in folder.rglob("*") if path.name.endswith((".sqlite", ".db", ".sock", ".token"))}


def test_a_run_of_a_split_root_is_stored_and_deleted(split_lab, home, own):
    run = split_lab.submit(steps=20)
    over = split_lab.wait_until_over(run)
    stored = [event["step_index"] for event in split_lab.events(run, "step")]
    before = databases_in(own)
    split_lab.client.delete_run(run.run_id)

    assert over.state is RunState.TERMINATED
    assert stored == list(range(20))
    assert databases_in(home) == set()
    assert {f"{run.run_id}.sqlite", "registry.db", "daemon.token"} <= before
    assert f"{run.run_id}.sqlite" not in databases_in(own)


def test_a_worker_sees_nothing_of_the_databases(split_lab, own, script):
    path = script("look.py", f"import os; print(os.listdir({str(own / 'databases')!r}))")
    run = split_lab.submit_worker({"script": path})
    over = split_lab.wait_until_over(run)

    held_by = read_json(split_lab.rundir(over).started)["held_by"]
    if "control files hidden" not in held_by:
        pytest.skip(f"this machine cannot hide files: {held_by}")
    assert split_lab.text(run) == b"[]\n"


def test_a_killed_daemon_of_a_split_root_is_replaced(split_lab):
    run = split_lab.submit(steps=100, rate=50)
    split_lab.wait_until_run(run, lambda now: now.summary.steps > 0, "a step")

    split_lab.kill_daemon()
    split_lab.restart_daemon()
    over = split_lab.wait_until_over(run)

    assert over.state is RunState.TERMINATED
    assert [event["step_index"] for event in split_lab.events(run, "step")] == list(range(100))


def test_lost_databases_are_rebuilt_from_the_folder(split_lab, own):
    run = split_lab.submit(steps=20)
    split_lab.wait_until_over(run)
    split_lab.stop_daemon()
    shutil.rmtree(own / "databases")

    split_lab.restart_daemon()

    assert split_lab.state(run) is RunState.TERMINATED


def test_a_network_file_system_is_accepted_if_the_databases_are_elsewhere(home, own, tmp_path):
    mounts = tmp_path / "mounts"
    mounts.write_text(f"server:/export {home} nfs4 rw 0 0\n")

    with pytest.raises(BadRoot, match="mosaic root split"):
        check_root(StateRoot(home), mounts=mounts)
    check_root(split_root(StateRoot(home), own / "databases"), mounts=mounts)


def test_a_root_with_runs_is_not_split(split_lab, own):
    with pytest.raises(BadRoot, match="has databases already"):
        split_root(split_lab.root, own / "other")
