"""The schema that the daemon, the help and the forms use."""

import functools
import json
import subprocess
import sys

import cleanrl_worker
from cleanrl_worker import get_worker_metadata
from cleanrl_worker.config import SCRIPTS_SEED, CleanRLWorkerConfig
from cleanrl_worker.descriptions import DESCRIPTIONS
from cleanrl_worker.registry import ALGORITHMS
from cleanrl_worker.upstream import find_script

get_worker_schema = functools.cache(cleanrl_worker.get_worker_schema)  # reading every script takes half a second


def test_every_algorithm_has_its_own_hyperparameters_with_its_own_defaults():
    schema = get_worker_schema()
    own = schema["properties"]["extras"]["properties"]["algo_params"]["x-mosaic-algorithms"]

    assert own["dqn"]["buffer_size"]["default"] == 10_000
    assert own["dqn_atari"]["buffer_size"]["default"] == 1_000_000
    assert own["sac_continuous_action"]["policy_lr"]["exclusiveMinimum"] == 0
    assert own["ppo_upstream"]["clip_coef"]["type"] == "number"
    assert "env_id" not in own["dqn"]


def test_a_hyperparameter_of_several_scripts_is_listed_once_with_all_defaults():
    places = get_worker_schema()["properties"]["extras"]["properties"]["algo_params"]
    size = places["properties"]["buffer_size"]

    assert size["type"] == "integer"
    assert "default" not in size
    assert "10000 (dqn, c51 …)" in size["description"]
    assert places["additionalProperties"] is False


def test_jax_scripts_choose_their_variant():
    assert get_worker_schema()["x-mosaic-variants"]["algo"]["dqn_jax"] == "jax"


def test_every_name_is_a_choice_or_unavailable_with_its_reason():
    algo = get_worker_schema()["properties"]["algo"]

    assert set(algo["enum"]) | set(algo["x-mosaic-unavailable"]) == set(ALGORITHMS)
    assert set(algo["enum"]).isdisjoint(algo["x-mosaic-unavailable"])
    assert (
        "isaacgym, which is not on the package index" in algo["x-mosaic-unavailable"]["ppo_continuous_action_isaacgym"]
    )


def test_a_checkout_may_have_any_algorithm_and_hyperparameter():
    properties = get_worker_schema()["properties"]
    extras = properties["extras"]["properties"]

    assert "upstream_path" in extras
    assert properties["algo"]["x-mosaic-open-with"] == "extras.upstream_path"
    assert extras["algo_params"]["x-mosaic-open-with"] == "extras.upstream_path"


def test_it_is_generated_without_importing_the_scripts_libraries():
    code = "import sys, cleanrl_worker as w; w.get_worker_schema(); print({'torch', 'gymnasium'} & set(sys.modules))"

    imported = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout

    assert imported.strip() == "set()"
    assert json.dumps(get_worker_schema())


def test_it_describes_its_upstream_version_and_its_spaces():
    metadata, capabilities = get_worker_metadata()

    assert (metadata.upstream_library, metadata.upstream_version) == ("cleanrl", "1.2.0")
    assert capabilities.worker_type == "cleanrl"
    assert capabilities.env_families == ("gymnasium", "atari", "procgen", "mujoco", "dm_control", "minigrid", "babyai")
    assert (capabilities.action_spaces, capabilities.observation_spaces) == (
        ("discrete", "continuous"),
        ("vector", "image"),
    )
    assert (capabilities.max_agents, capabilities.supports_checkpointing, capabilities.requires_gpu) == (1, True, False)


def test_it_states_the_seed_that_is_used_when_none_is_given():
    for algo, found in ALGORITHMS.items():
        if not found.reason:
            assert find_script(found).flags["seed"].default == SCRIPTS_SEED, algo

    assert get_worker_schema()["properties"]["seed"]["default"] == SCRIPTS_SEED


def test_it_states_aliases_and_the_keys_that_inherit_from_a_checkpoint():
    schema = get_worker_schema()
    extras = schema["properties"]["extras"]

    assert schema["properties"]["env"]["x-mosaic-same-as"] == "env_id"
    assert extras["properties"]["use_cuda"]["x-mosaic-same-as"] == "cuda"
    assert extras["additionalProperties"] is False
    assert schema["x-mosaic-inherits-with"] == ["extras.policy_path", "extras.checkpoint_path"]


def test_every_hyperparameter_has_a_description_that_was_checked_against_the_scripts():
    own = get_worker_schema()["properties"]["extras"]["properties"]["algo_params"]["x-mosaic-algorithms"]
    runnable = {name for algo, keys in own.items() if not ALGORITHMS[algo].reason for name in keys}

    assert runnable <= set(DESCRIPTIONS)
    assert own["ppo_rnd_envpool"]["int_coef"]["description"] == "Weight of the intrinsic advantages."


def test_the_settings_of_the_config_class_are_those_of_the_schema():
    properties = get_worker_schema()["properties"]
    extras = properties["extras"]["properties"]

    for name, one in CleanRLWorkerConfig.described().items():
        if name not in ("run_id", "worker_id"):
            part = (extras if one.place else properties)[name]
            assert part["description"].endswith("."), name
    assert extras["checkpoint_every"]["default"] == CleanRLWorkerConfig.from_dict({"run_id": "1"}).checkpoint_every


def test_as_an_operator_it_plays_the_checkpoint_in_interactive_mode():
    way = get_worker_schema()["x-mosaic-interactive"]
    filled = {name: value for name, value in way["settings"].items() if not value.startswith("{")}

    config = CleanRLWorkerConfig.from_dict({"run_id": "R1", "extras": {"mode": filled["extras.mode"]}})
    assert config.mode == "interactive"
    assert way["arguments"] == ["--interactive"]
    known = [*config.described(), *config.extras_names()]
    assert {name.removeprefix("extras.") for name in way["settings"]} <= set(known)
