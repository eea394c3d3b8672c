"""The checkpoint's file: whole or not there, read without running code, and honest about what does not fit."""

import pickle
import random
from collections import deque, namedtuple

import numpy as np
import pytest
import torch
from cleanrl_worker.checkpoints import CheckpointError, load_checkpoint, put_weights, save_checkpoint
from cleanrl_worker.plain import NotPlain, from_plain, to_plain


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


def test_what_is_no_plain_value_is_refused_by_name():
    with pytest.raises(NotPlain, match="Point"):
        to_plain(namedtuple("Point", "x")(1))
    with pytest.raises(NotPlain, match="Random"):
        to_plain({"a": [random.Random()]})
    assert from_plain(to_plain([1])) == [1]


def test_networks_and_optimizers_go_on_where_they_were(tmp_path):
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


def test_the_newest_of_a_folder_is_taken(tmp_path):
    for step in (5, 100, 20):
        save_checkpoint(tmp_path / "checkpoints", state(global_step=step))

    assert load_checkpoint(tmp_path).global_step == 100
    assert load_checkpoint(tmp_path / "checkpoints").global_step == 100


def test_a_save_that_fails_leaves_the_old_file_and_no_rubbish(tmp_path, monkeypatch):
    path = save_checkpoint(tmp_path, state(counters={"a": 1}))
    monkeypatch.setattr(torch, "save", lambda *args: (_ for _ in ()).throw(OSError("disk full")))

    with pytest.raises(OSError, match="disk full"):
        save_checkpoint(tmp_path, state(counters={"a": 2}))

    assert load_checkpoint(path).counters == {"a": 1}
    assert [file.name for file in tmp_path.iterdir()] == [path.name]


def test_a_file_that_would_run_code_is_not_read(tmp_path):
    class Bomb:
        def __reduce__(self):
            return (exec, (f"open({str(tmp_path / 'ran')!r}, 'w')",))

    (tmp_path / "bomb.pt").write_bytes(pickle.dumps({"format": 1, "modules": Bomb()}))
    torch.save({"format": 1, "modules": Bomb()}, tmp_path / "bomb2.pt")

    for name in ("bomb.pt", "bomb2.pt"):
        with pytest.raises(CheckpointError, match="damaged, or no checkpoint"):
            load_checkpoint(tmp_path / name)
    assert not (tmp_path / "ran").exists()


def test_what_cannot_be_used_says_what_is_wrong(tmp_path):
    torch.save({"format": 99}, tmp_path / "new.pt")
    torch.save({"format": 1, "algo": "dqn"}, tmp_path / "half.pt")
    whole = save_checkpoint(tmp_path / "some", state())
    (tmp_path / "cut.pt").write_bytes(whole.read_bytes()[:300])

    for name, words in (
        ("none.pt", "There is no checkpoint"),
        ("new.pt", "format 99, and 1 is read"),
        ("half.pt", "no whole checkpoint: its env_id"),
        ("cut.pt", "damaged, or no checkpoint"),
        (".", "holds no checkpoint"),
    ):
        with pytest.raises(CheckpointError, match=words):
            load_checkpoint(tmp_path / name)


def test_a_checkpoint_of_another_algorithm_or_environment_is_refused(tmp_path):
    saved = load_checkpoint(save_checkpoint(tmp_path, state()))

    saved.require(algo="dqn", env_id="CartPole-v1")
    with pytest.raises(CheckpointError, match="of the algorithm dqn, and this run is c51"):
        saved.require(algo="c51")
    with pytest.raises(CheckpointError, match="of the environment CartPole-v1, and this run is Acrobot-v1"):
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


def test_upstreams_own_models_are_read_as_their_networks(tmp_path):
    weights = torch.nn.Linear(3, 2).state_dict()
    torch.save(weights, tmp_path / "dqn.cleanrl_model")
    torch.save(
        {"model_weights": weights, "args": {"env_id": "CartPole-v1", "n_atoms": 101}}, tmp_path / "c51.cleanrl_model"
    )

    dqn, c51 = (load_checkpoint(tmp_path / f"{name}.cleanrl_model") for name in ("dqn", "c51"))

    assert torch.equal(dqn.modules["q_network"]["weight"], weights["weight"])
    assert (c51.env_id, c51.params["n_atoms"]) == ("CartPole-v1", 101)
