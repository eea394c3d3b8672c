"""The settings recorded with a run: every one that was in force, submitted or by default."""

from mosaic.catalog.common import with_common
from mosaic.catalog.in_force import settings_in_force

GAMMA = {"gamma": {"type": "number", "default": 0.99}}
ALGORITHMS = {
    "ppo": {**GAMMA, "num_envs": {"type": "integer", "default": 4}},
    "dqn": {**GAMMA, "buffer_size": {"type": "integer", "default": 10_000}},
}
SCHEMA = with_common(
    {
        "properties": {
            "algo": {"enum": ["ppo", "dqn"], "default": "ppo"},
            "steps": {"type": "integer", "default": 500},
            "total_timesteps": {"type": "integer", "default": 500, "x-mosaic-same-as": "steps"},
            "seed": {"type": ["integer", "null"], "default": None},
            "shares": {"type": "object", "default": {"uniform": 1.0}, "description": "of replay"},
            "needs": {"type": "string"},
            "extras": {
                "properties": {
                    "policy_path": {"type": "string", "default": ""},
                    "algo_params": {"properties": GAMMA, "x-mosaic-algorithms": ALGORITHMS},
                }
            },
        },
        "x-mosaic-inherits-with": ["extras.policy_path"],
    }
)


def in_force(**config):
    found = settings_in_force(config, SCHEMA)
    return {key: value for key, value in found.items() if "fastlane" not in key and "observ" not in key}


def test_defaults_are_those_of_the_algorithm_that_runs():
    common = {"seed": None, "shares.uniform": 1.0, "extras.policy_path": "", "extras.algo_params.gamma": 0.99}

    assert in_force() == {**common, "algo": "ppo", "steps": 500, "extras.algo_params.num_envs": 4}
    assert in_force(algo="dqn") == {**common, "algo": "dqn", "steps": 500, "extras.algo_params.buffer_size": 10_000}


def test_a_submitted_value_replaces_its_default_completely():
    found = in_force(shares={"priority": 0.5}, extras={"algo_params": {"gamma": 0.9}}, needs="x", run_id="R")

    assert found["shares.priority"] == 0.5
    assert "shares.uniform" not in found
    assert (found["extras.algo_params.gamma"], found["extras.algo_params.num_envs"], found["needs"]) == (0.9, 4, "x")
    assert "run_id" not in found


def test_no_defaults_are_recorded_with_a_checkpoint():
    assert in_force(extras={"policy_path": "/x"}, steps=9) == {"extras.policy_path": "/x", "steps": 9}


def test_settings_that_mosaic_itself_reads_are_in_force_too():
    assert settings_in_force({}, SCHEMA)["extras.fastlane_video_mode"] == "single"
