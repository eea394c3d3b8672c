"""Runs of an older version, whose control files are in their own folders."""

import os

import pytest

from mosaic.model.durable import read_json, write_json
from mosaic.model.folder import remove_folder
from mosaic.model.old_layout import give_control_folders
from mosaic.model.rundir import RunDir, StateRoot

ID = "01JCQ5W2ZK8M3N4P5Q6R7S8TA0"


@pytest.fixture
def root(tmp_path) -> StateRoot:
    root = StateRoot(tmp_path)
    root.make()
    return root


@pytest.fixture
def old(root) -> RunDir:
    """A run as an older version made it: with a folder, without a control folder."""
    rundir = root.run("runs", ID)
    rundir.path.mkdir()
    return rundir


def test_the_files_of_a_started_run_are_found_where_its_holder_left_them(root, old):
    write_json(old.path / "launch.json", {"attempt": 3})

    give_control_folders(root)
    give_control_folders(root)

    assert read_json(old.launch) == {"attempt": 3}
    write_json(old.path / "exit.json", {"attempt": 3})
    assert read_json(old.exit) == {"attempt": 3}


def test_a_waiting_run_gets_a_folder_of_its_own_with_its_commands(root, old):
    (old.path / "commands.jsonl").write_text("one\n")

    give_control_folders(root)

    assert not old.control.is_symlink()
    assert old.commands.read_text() == "one\n"
    assert oct(old.control.stat().st_mode & 0o777) == "0o700"


def test_a_run_of_this_version_is_never_linked(root):
    run = root.run("runs", ID)
    run.make()
    write_json(run.path / "exit.json", {"attempt": 1})

    give_control_folders(root)

    assert not run.control.is_symlink()
    assert read_json(run.exit) is None


def test_a_started_run_of_this_version_gets_no_new_folder_for_a_lost_one(root):
    run = root.run("runs", ID)
    run.make()
    run.stdout.write_text("a line\n")
    remove_folder(run.control)

    give_control_folders(root)

    assert not run.has_control


def test_a_state_root_may_be_moved_with_its_old_runs(root, old, tmp_path):
    write_json(old.path / "launch.json", {"attempt": 1})
    give_control_folders(root)
    elsewhere = StateRoot(tmp_path / "elsewhere")
    os.mkdir(elsewhere.path)
    os.rename(root.trainer, elsewhere.trainer)

    assert read_json(elsewhere.run("runs", ID).launch) == {"attempt": 1}


def test_removing_the_control_folder_of_an_old_run_removes_the_link_alone(root, old):
    write_json(old.path / "launch.json", {"attempt": 1})
    give_control_folders(root)

    remove_folder(old.control)

    assert not os.path.lexists(old.control)
    assert (old.path / "launch.json").exists()
