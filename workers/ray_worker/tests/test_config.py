"""Settings: what is refused, what a checkpoint fills in, and the schema."""

import pytest
from mosaic_sdk import keywords
from mosaic_sdk.config import ConfigError
from ray_worker import get_worker_schema
from ray_worker.algorithms import ALGORITHMS, parameters
from ray_worker.config import RayWorkerConfig


def config(**keys):
    return RayWorkerConfig.from_dict({"run_id": "R", **keys})


@pytest.mark.parametrize(
    ("keys", "reason"),
    [
        (
            {"extras": {"algo_params": {"clip_parm": 0.2}}},
            "ppo has no training parameter clip_parm. Did you mean clip_param",
        ),
        ({"extras": {"algo_params": {"epsilon": 0.1}}}, "ppo has no training parameter epsilon"),
        ({"extras": {"algo_params": {"num_epochs": "many"}}}, "num_epochs: must be an integer, not"),
        ({"extras": {"model_config": {"fcnet_hidden": [8]}}}, "no setting fcnet_hidden. Did you mean fcnet_hiddens"),
        ({"algo": "pppo"}, "there is no algorithm 'pppo'. Did you mean"),
        ({"algo": "cql"}, "cql cannot be used: it learns from recorded episodes"),
        ({"num_env_runner": 2}, "Did you mean 'extras.num_env_runners'"),
        ({"extras": {"mode": "policy_eval"}}, "policy_path is missing"),
        ({"extras": {"policy_path": "/x"}}, "mode train starts from scratch"),
        ({"seed": -1}, "seed: must be at least 0"),
    ],
)
def test_settings_that_cannot_be_used_are_refused_with_the_reason(keys, reason):
    with pytest.raises(ConfigError, match=reason):
        config(**keys)


def test_a_training_in_one_process_needs_no_ray_instance():
    assert not config().needs_instance
    assert config(extras={"num_env_runners": 1}).needs_instance
    assert config(extras={"num_learners": 1}).needs_instance
    assert config(extras={"ray_instance": "always"}).needs_instance


def test_a_resumed_training_takes_what_it_leaves_out_from_its_checkpoint():
    saved = config(
        algo="dqn", env_id="Acrobot-v1", seed=7, extras={"algo_params": {"gamma": 0.9, "tau": 0.5}}
    ).to_dict()
    extras = {"mode": "resume_training", "policy_path": "/c", "algo_params": {"tau": 1.0}}

    whole = config(total_timesteps=5, extras=extras).filled_from(saved)

    assert (whole.algo, whole.env_id, whole.seed, whole.total_timesteps) == ("dqn", "Acrobot-v1", 7, 5)
    assert whole.algo_params == {"gamma": 0.9, "tau": 1.0}
    assert (whole.mode, whole.policy_path) == ("resume_training", "/c")


def test_the_schema_states_every_parameter_of_every_algorithm():
    params = get_worker_schema()["properties"]["extras"]["properties"]["algo_params"]

    assert set(params[keywords.ALGORITHMS]) == set(ALGORITHMS)
    assert params["properties"].keys() == {name for algo in ALGORITHMS for name in parameters(algo)}
    assert parameters("dqn")["double_q"] == {"type": "boolean", "default": True}
    assert "default" not in params["properties"]["lr"]  # each algorithm has its own
