"""Checkpoint files: written atomically, read without running code, and refused with the reason if they do not fit."""

import json
import pickle
import random
from collections import deque, namedtuple

import numpy as np
import pytest
import torch
from cleanrl_worker.checkpoints import load_checkpoint, put_weights, save_checkpoint
from cleanrl_worker.plain import NotPlain, from_plain, to_plain
from mosaic_sdk import checkpoints
from mosaic_sdk.checkpoints import CheckpointError


def state(**more):
    return {"algo": "dqn", "env_id": "CartPole-v1", "global_step": 12, "modules": {}, **more}


@pytest.mark.parametrize(
    "value",
    [
        (1, 2.5, "x", None, True, b"\x00"),
        {"a": [1, {"b": (2, 3)}]},
        np.arange(6, dtype=np.float32).reshape(2, 3),
        np.array([2**63 + 1], np.uint64),
        np.float64(0.1),
        deque([1, 2], 3),
        random.getstate(),
        np.random.default_rng(3).bit_generator.state,
    ],
    ids=lambda value: type(value).__name__,
)
def test_plain_values_come_back_as_they_were(tmp_path, value):
    path = save_checkpoint(tmp_path, state(counters={"value": value}))

    back = load_checkpoint(path).counters["value"]

    assert type(back) is type(value)
    assert np.array_equal(back, value) if isinstance(value, np.ndarray) else back == value
    assert getattr(back, "dtype", None) == getattr(value, "dtype", None)
    assert getattr(back, "maxlen", None) == getattr(value, "maxlen", None)


def test_a_value_that_is_not_plain_is_refused_by_name():
    with pytest.raises(NotPlain, match="Point"):
        to_plain(namedtuple("Point", "x")(1))
    with pytest.raises(NotPlain, match="Random"):
        to_plain({"a": [random.Random()]})
    assert from_plain(to_plain([1])) == [1]


def test_networks_and_optimizers_are_restored_exactly(tmp_path):
    net = torch.nn.Linear(3, 2)
    optimizer = torch.optim.Adam(net.parameters())
    net(torch.ones(1, 3)).sum().backward()
    optimizer.step()

    path = save_checkpoint(
        tmp_path, state(modules={"net": net.state_dict()}, optimizers={"optimizer": optimizer.state_dict()})
    )
    saved = load_checkpoint(path)
    other = torch.nn.Linear(3, 2)
    put_weights("net", other, saved.modules["net"], saved.path)
    again = torch.optim.Adam(other.parameters())
    again.load_state_dict(saved.optimizers["optimizer"])

    assert all(torch.equal(a, b) for a, b in zip(net.parameters(), other.parameters(), strict=True))
    assert str(again.state_dict()) == str(optimizer.state_dict())


def test_the_newest_checkpoint_of_a_folder_is_loaded(tmp_path):
    for step in (5, 100, 20):
        save_checkpoint(tmp_path / "checkpoints", state(global_step=step))

    assert load_checkpoint(tmp_path).global_step == 100
    assert load_checkpoint(tmp_path / "checkpoints").global_step == 100


def test_beside_a_checkpoint_are_the_settings_in_force_and_its_size(tmp_path):
    path = save_checkpoint(tmp_path, state(), {"algo": "dqn", "extras": {"cuda": False}})

    about = json.loads((tmp_path / f"{path.name}.commit.json").read_text())

    assert (about["worker"], about["format"], about["step"]) == ("cleanrl", 1, 12)
    assert (about["algo"], about["env_id"]) == ("dqn", "CartPole-v1")
    assert about["settings"] == {"algo": "dqn", "extras": {"cuda": False}}
    assert about["parts"] == {path.name: {"bytes": path.stat().st_size}}


def test_a_checkpoint_of_an_earlier_version_has_no_settings_beside_it_and_is_loaded(tmp_path):
    folder = tmp_path / "checkpoints"
    folder.mkdir()
    old = folder / "checkpoint-000000000012.pt"
    torch.save({"format": 1, **state(params={"gamma": 0.5}, loop=3)}, old)

    for path in (old, folder, tmp_path):
        loaded = load_checkpoint(path)
        assert (loaded.algo, loaded.global_step, loaded.loop, loaded.params) == ("dqn", 12, 3, {"gamma": 0.5})
        assert loaded.path == str(old)


def test_a_checkpoint_that_replaces_another_does_not_keep_its_commit_file(tmp_path, monkeypatch):
    save_checkpoint(tmp_path, state())
    with monkeypatch.context() as patch:
        patch.setattr(checkpoints, "commit", lambda *args, **more: (_ for _ in ()).throw(OSError("disk full")))
        with pytest.raises(OSError, match="disk full"):
            save_checkpoint(tmp_path, state(counters={"a": list(range(1000))}))

    assert len(load_checkpoint(tmp_path).counters["a"]) == 1000


def test_a_truncated_file_is_skipped_for_an_older_one(tmp_path):
    save_checkpoint(tmp_path, state(global_step=5))
    newest = save_checkpoint(tmp_path, state(global_step=6))
    newest.write_bytes(newest.read_bytes()[:300])

    assert load_checkpoint(tmp_path).global_step == 5


def test_a_failed_save_leaves_the_old_checkpoint_and_no_other_files(tmp_path, monkeypatch):
    path = save_checkpoint(tmp_path, state(counters={"a": 1}))
    monkeypatch.setattr(torch, "save", lambda *args: (_ for _ in ()).throw(OSError("disk full")))

    with pytest.raises(OSError, match="disk full"):
        save_checkpoint(tmp_path, state(counters={"a": 2}))

    assert load_checkpoint(path).counters == {"a": 1}
    assert sorted(file.name for file in tmp_path.iterdir()) == [path.name, f"{path.name}.commit.json"]


def test_a_file_that_would_run_code_is_not_loaded(tmp_path):
    class Bomb:
        def __reduce__(self):
            return (exec, (f"open({str(tmp_path / 'ran')!r}, 'w')",))

    (tmp_path / "bomb.pt").write_bytes(pickle.dumps({"format": 1, "modules": Bomb()}))
    torch.save({"format": 1, "modules": Bomb()}, tmp_path / "bomb2.pt")

    for name in ("bomb.pt", "bomb2.pt"):
        with pytest.raises(CheckpointError, match="damaged or not a checkpoint"):
            load_checkpoint(tmp_path / name)
    assert not (tmp_path / "ran").exists()


def test_an_unusable_checkpoint_is_refused_with_the_reason(tmp_path):
    torch.save({"format": 99}, tmp_path / "new.pt")
    torch.save({"format": 1, "algo": "dqn"}, tmp_path / "half.pt")
    whole = save_checkpoint(tmp_path / "some", state())
    (tmp_path / "cut.pt").write_bytes(whole.read_bytes()[:300])

    for name, message in (
        ("none.pt", "There is no checkpoint"),
        ("new.pt", "its format is 99, not 1"),
        ("half.pt", "not a complete checkpoint: its env_id"),
        ("cut.pt", "damaged or not a checkpoint"),
        (".", "has no complete checkpoint"),
    ):
        with pytest.raises(CheckpointError, match=message):
            load_checkpoint(tmp_path / name)


def test_a_checkpoint_of_another_algorithm_or_environment_is_refused(tmp_path):
    saved = load_checkpoint(save_checkpoint(tmp_path, state()))

    saved.require(algo="dqn", env_id="CartPole-v1")
    with pytest.raises(CheckpointError, match="of the algorithm dqn, but this run's is c51"):
        saved.require(algo="c51")
    with pytest.raises(CheckpointError, match="of the environment CartPole-v1, but this run's is Acrobot-v1"):
        saved.require(env_id="Acrobot-v1")


def test_weights_of_another_shape_are_refused_and_change_nothing(tmp_path):
    net = torch.nn.Linear(3, 2)
    before = net.weight.clone()
    saved = torch.nn.Linear(4, 2).state_dict()

    with pytest.raises(CheckpointError, match=r"in net, weight is \(2, 4\) and must be \(2, 3\)"):
        put_weights("net", net, saved, "x.pt")
    with pytest.raises(CheckpointError, match="bias is missing, extra is not in this run's network"):
        put_weights("net", net, {"weight": net.weight, "extra": before}, "x.pt")
    assert torch.equal(net.weight, before)


def test_models_that_upstream_saved_are_loaded(tmp_path):
    weights = torch.nn.Linear(3, 2).state_dict()
    torch.save(weights, tmp_path / "dqn.cleanrl_model")
    torch.save(
        {"model_weights": weights, "args": {"env_id": "CartPole-v1", "n_atoms": 101}}, tmp_path / "c51.cleanrl_model"
    )

    dqn, c51 = (load_checkpoint(tmp_path / f"{name}.cleanrl_model") for name in ("dqn", "c51"))

    assert torch.equal(dqn.modules["q_network"]["weight"], weights["weight"])
    assert (c51.env_id, c51.params["n_atoms"]) == ("CartPole-v1", 101)
