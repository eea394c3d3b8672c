"""mosaic_sdk.checkpoints: which checkpoints are whole, which is the newest and the best, and which are refused."""

import json
import os

import pytest
from mosaic_sdk import __version__
from mosaic_sdk.checkpoints import CheckpointError, Checkpoints, commit, find, read, remove
from mosaic_sdk.config import ConfigError


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "run" / "checkpoints"


def file(folder, step, data=b"weights", **more):
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"checkpoint-{step:012d}.pt"
    path.write_bytes(data)
    about = {"worker": "acme", "step": step, "settings": {"lr": 0.1}, "env_id": "A-v1", "algo": "ppo"}
    return commit(path, **{**about, **more})


def epoch(folder, number, is_committed=True):
    path = folder / f"epoch-{number:08d}"
    path.mkdir(parents=True)
    (path / "agent.npz").write_bytes(b"arrays")
    if is_committed:
        commit(path, worker="dreamer", step=number * 100, settings={}, digests=True, epoch=number)
    return path


def test_a_file_has_its_settings_beside_it(folder):
    made = file(folder, 500, format=2)

    found = read(made.path)

    assert json.loads((folder / "checkpoint-000000000500.pt.commit.json").read_text()) == {
        **{"version": 1, "worker": "acme", "format": 2, "sdk": __version__, "step": 500, "env_id": "A-v1"},
        **{"algo": "ppo", "settings": {"lr": 0.1}, "parts": {"checkpoint-000000000500.pt": {"bytes": 7}}},
    }
    assert found == made
    assert (found.step, found.settings, found.name) == (500, {"lr": 0.1}, "checkpoint-000000000500.pt")


def test_a_folder_counts_when_its_commit_file_is_there(folder):
    epoch(folder, 1)
    epoch(folder, 2, is_committed=False)
    epochs = Checkpoints(folder, "epoch-????????")

    assert [checkpoint.name for checkpoint in epochs.all()] == ["epoch-00000001"]
    assert (epochs.latest().step, epochs.latest().about["epoch"]) == (100, 1)
    with pytest.raises(CheckpointError, match=r"epoch-00000002 is not a complete checkpoint: it has no commit\.json"):
        read(folder / "epoch-00000002")


def test_files_that_are_older_than_the_commit_files_still_count(folder):
    file(folder, 500)
    old = folder / "checkpoint-000000000400.pt"
    old.write_bytes(b"older")

    assert [checkpoint.step for checkpoint in Checkpoints(folder).all()] == [None, 500]
    assert read(old).settings == {}
    read(old).require(worker="acme", format=1, env_id="A-v1", algo="ppo")


def test_a_checkpoint_of_the_wrong_size_is_skipped(folder):
    file(folder, 400)
    cut = file(folder, 500)
    with open(cut.path, "wb") as output:
        output.write(b"we")

    assert Checkpoints(folder).latest().step == 400
    assert cut.damage() == "checkpoint-000000000500.pt does not have the size it was saved with"


def test_changed_bytes_are_found_by_their_digest(folder):
    path = epoch(folder, 1)
    (path / "agent.npz").write_bytes(b"ARRAYS")

    assert read(path).damage() == "agent.npz does not have the content it was saved with"
    assert read(path).damage(digests=False) == ""
    (path / "agent.npz").unlink()
    assert read(path).damage() == "agent.npz cannot be read (No such file or directory)"


@pytest.mark.parametrize(
    ("wanted", "reason"),
    [
        ({"worker": "other"}, "is a checkpoint of the worker acme, and this run's is other. Choose another"),
        ({"env_id": "B-v1"}, "is a checkpoint of the environment A-v1, and this run's is B-v1. Set env_id=A-v1"),
        ({"algo": "dqn"}, "is a checkpoint of the algorithm ppo, and this run's is dqn. Set algo=ppo"),
        ({"format": 1}, "has format 2, but this worker reads format 1. Install a newer worker."),
    ],
)
def test_a_checkpoint_of_something_else_is_refused_in_one_sentence(folder, wanted, reason):
    made = file(folder, 500, format=2)

    with pytest.raises(ConfigError) as error:
        made.require(**wanted)

    assert str(error.value).startswith(f"{made.path} {reason}")
    made.require(worker="acme", format=3, env_id="A-v1", algo="ppo")


def test_a_checkpoint_of_a_newer_mosaic_is_refused_and_not_listed(folder):
    made = file(folder, 500)
    sidecar = folder / f"{made.name}.commit.json"
    sidecar.write_text(json.dumps({**json.loads(sidecar.read_text()), "version": 2}))

    with pytest.raises(CheckpointError, match="has version 2, but this worker reads version 1"):
        read(made.path)
    assert Checkpoints(folder).all() == []


def test_a_damaged_commit_file_and_a_missing_checkpoint_are_refused(folder):
    made = file(folder, 500)
    (folder / f"{made.name}.commit.json").write_text("{")

    with pytest.raises(CheckpointError, match=r"cannot be read: .* Use an older checkpoint"):
        read(made.path)
    with pytest.raises(CheckpointError, match="There is no checkpoint /nowhere"):
        read("/nowhere")


def test_the_best_one_is_named_by_best_json_and_replaces_the_one_before(folder):
    checkpoints = Checkpoints(folder)
    first = file(folder / "best", 100)
    checkpoints.keep_best(first.path, step=100, score=1.5, seeds=[7, 8], env_id="A-v1")
    second = file(folder / "best", 200)
    checkpoints.keep_best(second.path, step=200, score=2.5, seeds=[7, 8], env_id="A-v1")

    assert json.loads((folder / "best" / "best.json").read_text()) == {
        **{"version": 1, "path": second.name, "step": 200, "score": 2.5, "episodes": 2, "seeds": [7, 8]},
        "env_id": "A-v1",
    }
    assert checkpoints.best() == second
    assert (checkpoints.best_score(env_id="A-v1"), checkpoints.best_score(env_id="B-v1")) == (2.5, None)
    assert sorted(os.listdir(folder / "best")) == ["best.json", second.name, second.name + ".commit.json"]


def test_without_a_best_one_there_is_none(folder):
    assert (Checkpoints(folder).best(), Checkpoints(folder).best_score(), Checkpoints(folder).latest()) == (None,) * 3


def test_pruning_keeps_the_newest_complete_ones_and_what_is_being_written(folder):
    for step in (100, 200, 300):
        file(folder, step)
    for number in (1, 2, 3):
        epoch(folder, number, is_committed=number != 1)
    epoch(folder, 4, is_committed=False)

    Checkpoints(folder).prune(2)
    Checkpoints(folder, "epoch-????????").prune(1)

    names = [name for name in sorted(os.listdir(folder)) if not name.endswith(".json")]
    assert names == ["checkpoint-000000000200.pt", "checkpoint-000000000300.pt", "epoch-00000003", "epoch-00000004"]
    assert not (folder / "checkpoint-000000000100.pt.commit.json").exists()


def test_a_run_its_folders_and_a_checkpoint_itself_are_found(folder):
    file(folder, 100)
    newest, best = file(folder, 200), file(folder / "best", 100)
    Checkpoints(folder).keep_best(best.path, step=100, score=1.0, seeds=[1])

    assert find(folder.parent) == find(folder) == find(newest.path) == newest
    assert find(folder / "best") == best
    assert find(epoch(folder, 1)).about["worker"] == "dreamer"
    with pytest.raises(CheckpointError, match="has no complete checkpoint"):
        find(folder.parent.parent)


def test_the_parts_of_a_folder_include_those_in_its_subfolders(tmp_path):
    (tmp_path / "epoch-1" / "optimizer").mkdir(parents=True)
    (tmp_path / "epoch-1" / "agent.npz").write_bytes(b"arrays")
    (tmp_path / "epoch-1" / "optimizer" / "state.npz").write_bytes(b"moments")

    made = commit(tmp_path / "epoch-1", worker="acme", step=1, settings={}, digests=True)

    assert {name: part["bytes"] for name, part in made.about["parts"].items()} == {
        "agent.npz": 6,
        "optimizer/state.npz": 7,
    }
    assert made.damage() == ""
    (tmp_path / "epoch-1" / "optimizer" / "state.npz").write_bytes(b"truncat")
    assert made.damage() == "optimizer/state.npz does not have the content it was saved with"


def test_removing_a_link_to_a_checkpoint_leaves_the_checkpoint(folder, tmp_path):
    archived = epoch(tmp_path / "archive", 1)
    folder.mkdir(parents=True)
    (folder / "epoch-00000001").symlink_to(archived)

    remove(folder / "epoch-00000001")

    assert os.listdir(folder) == []
    assert read(archived).step == 100


def test_a_checkpoint_that_another_process_removes_at_the_same_time_is_no_error(folder, monkeypatch):
    made = file(folder, 500)
    unlink = os.unlink

    def removed_meanwhile(path):
        unlink(path)
        unlink(path)

    monkeypatch.setattr(os, "unlink", removed_meanwhile)
    remove(made.path)

    assert os.listdir(folder) == []


def test_a_best_score_that_is_not_a_number_does_not_count(folder):
    made = file(folder / "best", 500)
    Checkpoints(folder).keep_best(made.path, step=500, score=float("nan"), seeds=[1])

    assert Checkpoints(folder).best_score() is None  # NaN would be better than every later score
