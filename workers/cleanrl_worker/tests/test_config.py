"""The config: both shapes of the file, every extra, and what is refused."""

import json

import pytest
from cleanrl_worker import cli, get_worker_schema
from cleanrl_worker.arguments import resolve
from cleanrl_worker.cli import make_plan
from cleanrl_worker.config import CleanRLWorkerConfig
from cleanrl_worker.registry import find
from cleanrl_worker.upstream import find_script
from mosaic_sdk.config import ConfigError
from mosaic_sdk.contract import WorkerConfig

FLAT = {
    "run_id": "01A",
    "algo": "dqn",
    "env_id": "Acrobot-v1",
    "total_timesteps": 1000,
    "seed": 3,
    "extras": {"cuda": True},
}


def test_a_setting_is_found_in_any_place_and_a_hyperparameter_on_the_top_level_is_refused():
    config = CleanRLWorkerConfig.from_dict({**FLAT, "mode": "policy_eval", "policy_path": "p", "version": 1})

    assert (config.mode, config.policy_path) == ("policy_eval", "p")
    with pytest.raises(ConfigError, match="learning_rate: the worker has no such setting"):
        CleanRLWorkerConfig.from_dict({**FLAT, "learning_rate": 1})


def test_two_names_of_a_setting_with_different_values_are_refused():
    with pytest.raises(ConfigError, match="is the same setting as env_id but has another value"):
        CleanRLWorkerConfig.from_dict({**FLAT, "env": "X-v0"})

    assert CleanRLWorkerConfig.from_dict({**FLAT, "env": FLAT["env_id"]}).env_id == FLAT["env_id"]


def test_flat_and_nested_files_say_the_same(tmp_path):
    nested = {"run_name": "x", "metadata": {"run_id": "01A", "worker": {"worker_id": "w", "config": {**FLAT}}}}
    (tmp_path / "nested.json").write_text(json.dumps(nested))

    config = CleanRLWorkerConfig.load(str(tmp_path / "nested.json"))

    assert config == CleanRLWorkerConfig.from_dict({**FLAT, "worker_id": "w"})
    assert CleanRLWorkerConfig.from_dict(nested) == config


def test_it_comes_back_from_its_dict_and_cannot_be_changed():
    config = CleanRLWorkerConfig.from_dict(FLAT)

    assert isinstance(config, WorkerConfig)
    assert CleanRLWorkerConfig.from_dict(config.to_dict()) == config
    with pytest.raises(AttributeError):
        config.seed = 4  # type: ignore[misc]


def test_extras_have_names_and_defaults():
    plain = CleanRLWorkerConfig.from_dict({"run_id": "01A"})
    config = CleanRLWorkerConfig.from_dict(
        {
            "run_id": "01A",
            "extras": {
                "mode": "resume_training",
                "use_cuda": True,
                "tensorboard_dir": "tb",
                "track_wandb": True,
                "algo_params": {"learning-rate": 1e-3},
                "fastlane_video_mode": "grid",
                "fastlane_slot": 2,
                "fastlane_grid_limit": 9,
                "checkpoint_path": "/x.pt",
                "curriculum_schedule": [{"env_id": "A"}],
            },
        }
    )

    assert (plain.algo, plain.env_id, plain.mode, plain.cuda, plain.tensorboard_dir) == (
        "ppo",
        "CartPole-v1",
        "train",
        False,
        "tensorboard",
    )
    assert (plain.fastlane_video_mode, plain.fastlane_slot, plain.fastlane_grid_limit, plain.policy_path) == (
        "single",
        0,
        4,
        "",
    )
    assert (config.mode, config.cuda, config.tensorboard_dir, config.track_wandb) == (
        "resume_training",
        True,
        "tb",
        True,
    )
    assert (config.fastlane_video_mode, config.fastlane_slot, config.fastlane_grid_limit) == ("grid", 2, 9)
    assert (config.policy_path, config.algo_params) == ("/x.pt", {"learning_rate": 1e-3})
    assert config.curriculum_schedule == [{"env_id": "A"}]


def test_a_hyperparameter_may_be_in_extras_itself():
    config = CleanRLWorkerConfig.from_dict(
        {"run_id": "01A", "extras": {"learning-rate": 3e-4, "algo_params": {"gamma": 0.9}, "cuda": False}}
    )

    assert config.algo_params == {"learning_rate": 3e-4, "gamma": 0.9}
    assert resolve(config, find_script(find("ppo")))["learning_rate"] == 3e-4


@pytest.mark.parametrize(
    ("extras", "message"),
    [
        (
            {"lerning_rate": 1},
            r"extras.lerning_rate: the worker has no such setting, and ppo has no .* Did you mean learning",
        ),
        ({"checkpoint_evry": 1}, "Did you mean checkpoint_every?"),
        ({"learning_rate": "fast"}, "extras.learning_rate: must be a number, not 'fast'"),
        ({"track": True}, "extras.track: set it as extras.track_wandb instead"),
        (
            {"agent": "mpl"},
            "extras.agent: must be one of auto, cleanrl, mlp, minigrid, not 'mpl'. Did you mean mlp?",
        ),
    ],
)
def test_a_key_in_extras_is_a_setting_a_hyperparameter_or_refused(extras, message):
    with pytest.raises(ConfigError, match=message.replace("?", r"\?")):
        resolve(CleanRLWorkerConfig.from_dict({"run_id": "01A", "extras": extras}), find_script(find("ppo")))


def test_an_evaluation_takes_any_algorithms_hyperparameters_and_no_misspelt_ones(tmp_path):
    requested = {"mode": "policy_eval", "policy_path": str(tmp_path)}

    make_plan(CleanRLWorkerConfig.from_dict({"run_id": "01A", "extras": {**requested, "buffer_size": 5}}))
    with pytest.raises(ConfigError, match=r"extras.eval_episode: .* Did you mean eval_episodes\?"):
        make_plan(CleanRLWorkerConfig.from_dict({"run_id": "01A", "extras": {**requested, "eval_episode": 5}}))


def test_a_hyperparameter_that_is_given_twice_is_refused():
    with pytest.raises(ConfigError, match=r"extras.gamma: it is in extras.algo_params as well"):
        CleanRLWorkerConfig.from_dict({"run_id": "01A", "extras": {"gamma": 0.9, "algo_params": {"gamma": 0.8}}})


def test_the_schema_has_every_setting_that_extras_may_hold():
    properties = get_worker_schema()["properties"]["extras"]["properties"]

    assert set(properties) == CleanRLWorkerConfig.extras_names()


def test_a_curriculum_is_named_after_the_environment_it_leads_to():
    stages = [{"env_id": "A-v0", "steps": 5}, {"env_id": "B-v0"}]

    config = CleanRLWorkerConfig.from_dict({"run_id": "01A", "extras": {"curriculum_schedule": stages}})

    assert config.env_id == "B-v0"


def test_test_mode_is_an_evaluation():
    config = CleanRLWorkerConfig.from_dict({"run_id": "01A", "extras": {"test_mode": True, "policy_path": "p"}})

    assert config.mode == "policy_eval"


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"run_id": ""}, "run_id is missing"),
        ({"total_timesteps": 0}, "total_timesteps: must be at least 1, not 0"),
        ({"total_timesteps": "many"}, "total_timesteps: must be an integer"),
        ({"seed": -1}, "seed: must be at least 0"),
        ({"algo": 3}, "algo: must be a string"),
        ({"extras": []}, "extras: must be an object"),
        ({"extras": {"mode": "play"}}, "extras.mode: must be one of train"),
        ({"extras": {"mode": "policy_eval"}}, "extras.policy_path is missing"),
        ({"extras": {"mode": "resume_training"}}, "extras.policy_path is missing"),
        ({"extras": {"cuda": "yes"}}, 'extras.cuda: must be true or false, not "yes"'),
        ({"extras": {"fastlane_video_mode": "loud"}}, "extras.fastlane_video_mode: must be one of single"),
        ({"extras": {"algo_params": 3}}, "extras.algo_params: must be an object"),
        ({"extras": {"checkpoint_every": -1}}, "extras.checkpoint_every: must be at least 0"),
    ],
)
def test_an_invalid_setting_is_refused_with_its_place(wrong, message):
    with pytest.raises(ConfigError, match=message.replace("[", r"\[")):
        CleanRLWorkerConfig.from_dict({**FLAT, **wrong})


def test_a_resumed_training_keeps_what_its_config_leaves_open():
    config = CleanRLWorkerConfig.from_dict(
        {"run_id": "01A", "extras": {"mode": "resume_training", "policy_path": "p", "algo_params": {"gamma": 0.9}}}
    )
    params = {"gamma": 0.5, "num_envs": 8, "seed": 7, "total_timesteps": 99, "batch_size": 1024}

    filled = config.filled_from(params, "dqn", "Acrobot-v1", {"gamma", "num_envs"})

    assert (filled.algo, filled.env_id, filled.seed, filled.total_timesteps) == ("dqn", "Acrobot-v1", 7, 99)
    assert filled.algo_params == {"gamma": 0.9, "num_envs": 8}


def test_a_training_refuses_a_checkpoint_it_would_not_load(tmp_path, capsys):
    checkpoint, file = tmp_path / "checkpoint.pt", tmp_path / "config.json"
    checkpoint.touch()
    file.write_text(json.dumps({**FLAT, "extras": {"policy_path": str(checkpoint)}}))

    code = cli.main(["--config", str(file), "--dry-run"])

    assert code != 0
    assert "policy_path: mode train starts from scratch" in "".join(capsys.readouterr())
