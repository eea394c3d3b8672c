"""Finding checkpoints in all three folders of runs, and reading what scripts say about themselves."""

import json
import os

import pytest

from mosaic.model.rundir import StateRoot
from mosaic.present.checkpoints import find_checkpoints
from mosaic.present.script_header import read_header


@pytest.fixture
def root(tmp_path):
    root = StateRoot(tmp_path)
    root.make()
    return root


def save(root, area, run_id, name, at, content=b"x" * 1500, about=None):
    path = root.run(area, run_id).checkpoints / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    if about is not None:
        path.with_name(f"{name}.commit.json").write_text(json.dumps(about))
    os.utime(path, (at, at))
    return path


def test_checkpoints_of_all_three_folders_are_found_newest_first(root):
    save(root, "runs", "A", "checkpoint-000000000400.pt", 100)
    save(root, "custom_scripts", "B", "phase1.pt", 300, about={"step": 77})
    save(root, "evals", "C", "progress.json", 200, b"{}")

    found = find_checkpoints(root)

    assert [(one.area, one.run_id, one.step) for one in found] == [
        ("custom_scripts", "B", 77),
        ("evals", "C", None),
        ("runs", "A", 400),
    ]
    assert found[2].label == "step 400 · 1.5 kB"
    assert [one.run_id for one in find_checkpoints(root, "A")] == ["A"]


def test_the_best_one_is_marked(root):
    save(root, "runs", "A", "best/checkpoint-7.pt", 100)
    save(root, "runs", "A", "best/old.pt", 100)
    (root.run("runs", "A").checkpoints / "best" / "best.json").write_text('{"path": "checkpoint-7.pt", "step": 700}')

    (best,) = find_checkpoints(root)

    assert best.is_best
    assert best.step == 700
    assert best.label.endswith("· best")


def test_a_folder_is_a_checkpoint_once_it_is_complete(root):
    folder = root.run("runs", "A").checkpoints / "epoch-00000007"
    folder.mkdir(parents=True)
    (folder / "agent.npz").write_bytes(b"x" * 10)
    assert find_checkpoints(root) == []

    (folder / "commit.json").write_text('{"step": 5}')

    (found,) = find_checkpoints(root)
    assert found.step == 5
    assert found.bytes > 10


def test_what_is_damaged_hides_nothing_else(root):
    save(root, "runs", "A", "checkpoint-5.pt", 100)
    best = root.run("runs", "A").checkpoints / "best"
    best.mkdir()
    (best / "best.json").write_text("[broken")
    (root.area("runs") / "a file").write_text("")

    assert [one.step for one in find_checkpoints(root)] == [5]
    assert find_checkpoints(StateRoot(root.path / "nowhere")) == []


def test_the_header_of_a_script_is_read(tmp_path):
    script = tmp_path / "train.sh"
    script.write_text("#!/bin/sh\n# @description: Trains twice.\n# @phases: 2\n# @total_timesteps: 50_000\n")

    assert read_header(str(script)).sentence == "Trains twice. 2 phases, 50,000 steps."


@pytest.mark.parametrize("text", ["", "# @phases: many\n", "print('hello')\n", "# @total_timesteps: -5\n"])
def test_a_script_without_a_header_is_valid(tmp_path, text):
    script = tmp_path / "train.py"
    script.write_text(text)

    assert read_header(str(script)).sentence == ""
    assert read_header(str(script)).problem == ""


def test_a_script_that_is_not_there_is_named(tmp_path):
    assert read_header(str(tmp_path / "gone.sh")).problem.endswith("gone.sh cannot be read: No such file or directory.")
