"""The CleanRL worker through the real daemon: what is refused at submit, and custom scripts from end to end.

These tests need the worker's environment, which `make test` builds. Its own suite is in workers/cleanrl_worker/tests.
"""

import json
import os
from pathlib import Path

import pytest
from lab import wait_until

from mosaic.model.errors import BadConfig
from mosaic.model.states import RunState

S = RunState
REPO = Path(__file__).parents[2]
ENVIRONMENT = REPO / ".venv-cleanrl"
# The environment of the variant jax.
JAX = Path(os.environ.get("MOSAIC_TEST_CLEANRL_JAX", "/nowhere"))
LONG_S = 600  # importing torch on a busy machine takes minutes
MODULE = {"module": "cleanrl_worker.cli"}

HEAD = """#!/usr/bin/env bash
# @description: phases of a test
# @phases: 2
# @total_timesteps: 512
set -euo pipefail
phase() { python -m cleanrl_worker.phase "$@"; }
"""
TRAIN = "phase 1/2 train algo=dqn env_id=CartPole-v1 total_timesteps=512 algo_params.learning_starts=100\n"
EVALUATE = 'phase 2/2 evaluate mode=policy_eval policy_path="$MOSAIC_CHECKPOINT_DIR" eval_episodes=2\n'

pytestmark = pytest.mark.skipif(
    not (ENVIRONMENT / ".ready").exists(),
    reason="the worker's environment is missing. Build it with: make .venv-cleanrl/.ready",
)


@pytest.fixture(autouse=True)
def installed(home):
    """As if `mosaic worker install cleanrl` had built it in this home."""
    (home / "envs").mkdir()
    (home / "envs/cleanrl").symlink_to(ENVIRONMENT)


def events(lab, run):
    return [event for event in lab.events(run, "lifecycle") if event["event"] != "heartbeat"]


@pytest.mark.parametrize(
    ("config", "message"),
    [
        (
            {"algo": "ppo_continuous_action_isaacgym"},
            r"config\.algo: ppo_continuous_action_isaacgym is unavailable here: it needs NVIDIA's isaacgym",
        ),
        ({"algo": "dqn_atary"}, r'"dqn_atary" is not one of its \d+ valid values\. Did you mean dqn_atari'),
        ({"algo": "dqn", "extras": {"algo_params": {"clip_coef": 0.1}}}, r"clip_coef: dqn has no such setting"),
        ({"algo": "dqn", "extras": {"algo_params": {"gamma": 2}}}, "gamma: must be at most 1, not 2"),
        (
            {"extras": {"lerning_rate": 1}},
            r"extras\.lerning_rate: the worker has no such setting\. Did you mean 'learning_rate'",
        ),
        ({"extras": {"algo_params": {"buffer_size": 9}}}, r"buffer_size: ppo has no such setting"),
        (
            {"learning_rate": 1, "extras": {"learning_rate": 2}},
            r"learning_rate: is the same setting as extras\.algo_params\.learning_rate but has another value",
        ),
        ({"algo": "dqn", "extras": {"upstream_path": "/nowhere"}}, "upstream_path: '/nowhere' does not exist"),
        ({"algo": "dqn_jax"}, "algo=dqn_jax needs the variant jax.*Install it with: mosaic worker install cleanrl@jax"),
        (
            {"extras": {"curriculum_schedule": [{"env_id": "X", "condition": "stepps>=3"}]}},
            r"\[0\]\.condition: must look like steps>=100000 or episodes>=500\|episode_return>=0\.9",
        ),
    ],
)
def test_an_invalid_config_is_refused_at_submit_with_the_reason(lab, config, message):
    with pytest.raises(BadConfig, match=message):
        lab.submit_worker({**MODULE, "config": config})

    assert lab.client.list_runs().total == 0


def test_a_learning_rate_in_extras_becomes_the_algorithms(lab):
    extras = {"learning_rate": 0.0003, "cuda": True, "tensorboard_dir": "tensorboard"}
    config = {"env_id": "CartPole-v1", "algo": "ppo", "total_timesteps": 1e4, "seed": 42, "extras": extras}

    run = lab.submit_worker({**MODULE, "config": config})
    lab.client.cancel_run(run.run_id)

    kept = lab.client.get_run(run.run_id)
    placed = {"cuda": True, "tensorboard_dir": "tensorboard", "algo_params": {"learning_rate": 0.0003}}
    assert kept.config["metadata"]["worker"]["config"] == {**config, "extras": placed}
    assert (kept.total_steps, kept.settings["extras.algo_params.learning_rate"]) == (10_000, 0.0003)
    assert kept.settings["extras.algo_params.num_envs"] == 4  # CleanRL's default


def test_a_run_of_the_default_length_shows_progress(lab):
    run = lab.submit_worker({**MODULE, "config": {"algo": "dqn"}})
    lab.client.cancel_run(run.run_id)

    assert run.total_steps == 500_000


def test_a_checkout_may_have_any_algorithm_and_hyperparameter(lab, tmp_path):
    (tmp_path / "pqn.py").write_text("print('not structured like a CleanRL script')")
    extras = {"upstream_path": str(tmp_path), "algo_params": {"warmth": 1}}

    run = lab.submit_worker({**MODULE, "config": {"algo": "pqn", "extras": extras}})

    end = lab.wait_until_over(run, LONG_S)
    assert end.reason.startswith("exit code 2\nalgo: ")
    assert "pqn.py has no parse_args() and no class Args" in end.reason


def test_the_phases_of_a_script_are_one_run_with_one_progress_and_folder(lab, mosaic, script):
    path = script("two.sh", f"{HEAD}{TRAIN}echo between the phases\n{EVALUATE}")

    printed = json.loads(mosaic("run", "--script", path, "--env-of", "cleanrl", "--set", "seed=3", "--json"))
    run = lab.client.get_run(printed["run_id"])

    assert (run.state, run.area, run.progress) == (S.TERMINATED, "custom_scripts", 1.0)
    kinds = [event["event"] for event in events(lab, run)]
    assert kinds == [
        *("run_started", "phase_started", "checkpoint_saved", "phase_completed"),
        *("phase_started", "checkpoint_loaded", "phase_completed", "run_completed"),
    ]
    phases = [event["payload"] for event in events(lab, run) if event["event"] == "phase_started"]
    assert [(each["phase"], each["phases"], each["name"]) for each in phases] == [(1, 2, "train"), (2, 2, "evaluate")]
    assert b"between the phases\n" in lab.text(run)
    assert json.loads((lab.rundir(run).config / "phase-1-train.json").read_text())["seed"] == 3
    assert json.loads((lab.rundir(run).path / "eval_summary.json").read_text())["episodes"] == 2


def test_a_failed_phase_ends_the_script_with_its_error(lab, script):
    path = script("fails.sh", f"{HEAD}phase 1/2 train algo=dqn env_id=CartPol-v1\n{EVALUATE}")

    run = lab.submit_worker({"script": path, "variant": "cleanrl"})

    end = lab.wait_until_over(run, LONG_S)
    assert end.state is S.FAULTED
    assert end.reason.startswith("exit code 2\nenv_id: there is no environment 'CartPol-v1'. Did you mean CartPole-v1")
    assert [event["event"] for event in events(lab, run)] == ["run_started", "phase_started", "phase_failed"]


def test_a_script_that_continues_after_a_failed_phase_has_not_failed(lab, script):
    path = script("goes_on.sh", f"{HEAD}phase 1/2 train algo=no_such || echo never mind\n")

    run = lab.submit_worker({"script": path, "variant": "cleanrl"})

    assert lab.wait_until_over(run, LONG_S).state is S.TERMINATED
    assert b"never mind" in lab.text(run)


def test_cancelling_a_script_ends_its_phase_and_its_training(lab, script):
    path = script("long.sh", HEAD + TRAIN.replace("=512", "=100000000") + "echo never printed\n")
    run = lab.submit_worker({"script": path, "variant": "cleanrl"})
    lab.wait_for(run, S.EXECUTING, timeout_s=LONG_S)

    lab.client.cancel_run(run.run_id)

    end = lab.wait_until_over(run, LONG_S)
    assert (end.state, end.reason) == (S.CANCELLED, "cancelled by request")
    assert b"never printed" not in lab.text(run)
    assert [event["event"] for event in events(lab, run)][-2:] == ["checkpoint_saved", "phase_cancelled"]
    mark = run.run_id.encode()
    wait_until(lambda: not [pid for pid in lab.processes() if mark in Path(f"/proc/{pid}/cmdline").read_bytes()])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "settings", "env_id"),
    [
        ("babyai_quick_test", ["total_timesteps=2048"], "BabyAI-GoToRedBallNoDists-v0"),
        ("babyai_goto_curriculum", ["total_timesteps=8192"], "BabyAI-GoToLocal-v0"),
    ],
)
def test_a_shipped_script_runs_by_its_name(lab, mosaic, name, settings, env_id):
    options = [part for setting in [*settings, "eval_episodes=2", "seed=1"] for part in ("--set", setting)]

    printed = json.loads(mosaic("run", "--script", name, "--env-of", "cleanrl", *options, "--json"))

    run = lab.client.get_run(printed["run_id"])
    assert (run.state, run.progress) == (S.TERMINATED, 1.0)
    assert events(lab, run)[-1]["event"] == "run_completed"
    summary = json.loads((lab.rundir(run).path / "eval_summary.json").read_text())
    assert (summary["env_id"], summary["episodes"]) == (env_id, 2)


@pytest.mark.slow
@pytest.mark.skipif(
    not JAX.exists(), reason="the variant jax is missing. Set MOSAIC_TEST_CLEANRL_JAX to the folder of its environment"
)
def test_an_algorithm_that_needs_jax_chooses_its_variant(lab, mosaic, home):
    (home / "envs/cleanrl@jax").symlink_to(JAX)

    printed = json.loads(
        mosaic("run", "cleanrl", "algo=dqn_jax", "total_timesteps=300", "learning_starts=100", "--json")
    )

    run = lab.client.get_run(printed["run_id"])
    assert (run.state, run.reason) == (S.TERMINATED, "")
    assert json.loads(lab.rundir(run).launch.read_text())["argv"][0] == str(home / "envs/cleanrl@jax/bin/python")
    assert "checkpoint_saved" in [event["event"] for event in events(lab, run)]
