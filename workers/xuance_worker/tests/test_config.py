"""Settings: what is accepted, what is refused and with which words, and which of XuanCe's files is taken."""

import json

import pytest
from mosaic_sdk import keywords
from mosaic_sdk.config import ConfigError
from mosaic_sdk.library.settings import POLICY_EVAL
from xuance_worker import get_worker_schema, presets
from xuance_worker.algorithms import ALGORITHMS, UNAVAILABLE
from xuance_worker.config import XuanceConfig


def config(**keys):
    return XuanceConfig.from_dict({"run_id": "TEST", **keys})


@pytest.mark.parametrize(
    ("keys", "words"),
    [
        ({"algo": "pppo"}, "algo: there is no 'pppo'"),
        ({"algo": "dreamerv3"}, "MOSAIC's dreamer worker has it"),
        ({"extras": {"algo_params": {"learning_rte": 1}}}, "Did you mean learning_rate"),
        ({"extras": {"algo_params": {"gamma": "high"}}}, "must be of type number, not 'high'"),
        ({"extras": {"algo_params": {"log_dir": "/tmp"}}}, "ppo has no such hyperparameter"),
        ({"learning_rte": 1}, "the worker has no such setting"),
        ({"algo": "qmix", "env_id": "CartPole-v1"}, "qmix needs an environment of MPE"),
        ({"algo": "ppo", "env_id": "simple_spread_v3"}, "ppo needs an environment with one agent"),
        ({"extras": {"mode": "policy_eval"}}, "needs the checkpoint to load"),
        ({"extras": {"policy_path": "x.pt"}}, "starts from scratch"),
    ],
)
def test_what_cannot_be_run_is_refused(keys, words):
    with pytest.raises(ConfigError, match=words):
        config(**keys)


def test_test_mode_is_an_evaluation():
    assert config(extras={"test_mode": True, "policy_path": "x.pt"}).mode == POLICY_EVAL


def test_a_whole_number_written_as_a_fraction_becomes_an_integer_where_xuance_has_integers():
    given = presets.checked("dqn", {"buffer_size": 1e4, "gamma": 1.0})

    assert [(type(value), value) for value in given.values()] == [(int, 10000), (float, 1.0)]


@pytest.mark.parametrize(
    ("algo", "family", "env_id", "is_continuous", "file"),
    [
        ("ppo", "classic_control", "CartPole-v1", False, "ppo/classic_control/CartPole-v1.yaml"),
        ("ppo", "mujoco", "Ant-v5", True, "ppo/mujoco.yaml"),
        ("ppo", "classic_control", "MountainCarContinuous-v0", True, "ppo/classic_control/Pendulum-v1.yaml"),
        ("ppo_kl", "classic_control", "CartPole-v1", False, "ppo/classic_control/CartPole-v1.yaml"),
        ("qmix", "mpe", "simple_tag_v3", None, "qmix/mpe/simple_spread_v3.yaml"),
    ],
)
def test_an_environment_without_a_file_takes_that_of_a_similar_one(algo, family, env_id, is_continuous, file):
    assert str(presets.find(algo, family, env_id, is_continuous).relative_to(presets.root())) == file


def test_an_algorithm_that_cannot_take_the_actions_is_refused():
    with pytest.raises(ConfigError, match="no settings of dqn for continuous actions"):
        presets.find("dqn", "classic_control", "Pendulum-v1", True)


def test_the_schema_has_the_hyperparameters_of_every_algorithm():
    schema = get_worker_schema()
    by_algorithm = schema["properties"]["extras"]["properties"]["algo_params"][keywords.ALGORITHMS]

    assert set(schema["properties"]["algo"]["enum"]) == set(ALGORITHMS) == set(by_algorithm)
    assert not set(ALGORITHMS) & set(UNAVAILABLE)
    assert all("gamma" in names for names in by_algorithm.values())
    assert "clip_range" in by_algorithm["ppo"]
    assert "clip_range" not in by_algorithm["dqn"]
    json.dumps(schema)
