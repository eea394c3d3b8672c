"""Names of algorithms, the scripts behind them, and the arguments they take."""

import importlib.util
import math
import sys
from dataclasses import replace

import pytest
from cleanrl_worker.arguments import command_line, differences, range_of, resolve
from cleanrl_worker.config import CleanRLWorkerConfig
from cleanrl_worker.registry import ALGORITHMS, find
from cleanrl_worker.runtime import DEFAULT_ALGO_REGISTRY
from cleanrl_worker.upstream import find_script
from mosaic_sdk.config import ConfigError

AVAILABLE = [found for found in ALGORITHMS.values() if found.is_available]


def config(algo="dqn", **algo_params):
    return CleanRLWorkerConfig.from_dict(
        {"run_id": "01A", "algo": algo, "total_timesteps": 10_000, "extras": {"algo_params": algo_params}}
    )


def resolved(algo="dqn", **algo_params):
    return resolve(config(algo, **algo_params), find_script(find(algo)))


def test_ppo_is_ours_and_upstreams_is_ppo_upstream():
    assert DEFAULT_ALGO_REGISTRY["ppo"] == "cleanrl_worker.algorithms.ppo"
    assert DEFAULT_ALGO_REGISTRY["ppo_upstream"] == "cleanrl.ppo"


@pytest.mark.parametrize("algorithm", AVAILABLE, ids=lambda found: found.name)
def test_every_script_has_the_expected_structure(algorithm):
    script = find_script(algorithm)

    assert {"env_id", "total_timesteps", "seed"} <= set(script.flags)
    assert script.main_loop is not None
    assert script.main_loop.target.id in ("update", "global_step", "phase")


def test_flags_are_those_of_the_scripts_own_parser():
    flags = find_script(find("dqn")).flags

    assert (flags["learning_rate"].kind, flags["learning_rate"].default) == ("number", 2.5e-4)
    assert (flags["buffer_size"].kind, flags["buffer_size"].default) == ("integer", 10_000)
    assert (flags["save_model"].kind, flags["save_model"].default) == ("boolean", False)
    assert flags["tau"].help == "the target network update rate"


@pytest.mark.parametrize("algorithm", AVAILABLE, ids=lambda found: found.name)
def test_the_allowed_ranges_include_every_scripts_defaults(algorithm):
    for flag in find_script(algorithm).flags.values():
        bounds = range_of(flag.name)
        if bounds and flag.default is not None:
            assert flag.default > bounds.get("exclusiveMinimum", -math.inf), flag
            assert bounds.get("minimum", -math.inf) <= flag.default <= bounds.get("maximum", math.inf), flag


def test_an_unknown_name_gets_the_closest_names():
    with pytest.raises(ConfigError, match=r"no algorithm 'dqn_atary'\. Did you mean dqn_atari"):
        find("dqn_atary")


@pytest.mark.parametrize("name", ["ppo_continuous_action_isaacgym"])
def test_an_algorithm_that_cannot_run_here_is_refused_with_the_reason(name):
    with pytest.raises(ConfigError, match=f"{name} cannot run here: .{{20}}"):
        find(name)


def test_whether_an_algorithm_can_run_depends_on_what_is_installed(tmp_path, monkeypatch):
    """A wheel with two scripts, without procgen."""
    (tmp_path / "cleanrl").mkdir()
    for name in ("__init__", "c51", "ppo_procgen"):
        (tmp_path / "cleanrl" / f"{name}.py").write_text("")
    (tmp_path / "cleanrl-9.dist-info").mkdir()
    (tmp_path / "cleanrl-9.dist-info" / "METADATA").write_text("Metadata-Version: 2.1\nName: cleanrl\nVersion: 9\n")
    monkeypatch.setattr(sys, "path", [str(tmp_path)])
    monkeypatch.delitem(sys.modules, "cleanrl", raising=False)
    reasons = {name: replace(ALGORITHMS[name]).reason for name in ("c51", "ppo_procgen", "dqn")}

    assert reasons == {
        "c51": "",
        "ppo_procgen": "it needs procgen, which is not installed in this environment",
        "dqn": "it is not in the installed CleanRL 9; set upstream_path to a checkout that has it",
    }


@pytest.mark.skipif(importlib.util.find_spec("jax") is not None, reason="this is the environment of the variant")
def test_a_script_of_another_variant_says_where_it_runs():
    with pytest.raises(ConfigError, match=r"dqn_jax needs the variant jax\. Install it with: mosaic worker install"):
        find("dqn_jax")


def test_a_checkout_of_the_users_may_have_any_name(tmp_path):
    (tmp_path / "cleanrl").mkdir()
    (tmp_path / "cleanrl" / "pqn.py").write_text("import argparse\n")

    script = find_script(find("pqn", str(tmp_path)), str(tmp_path))

    assert script.path == tmp_path / "cleanrl" / "pqn.py"
    with pytest.raises(ConfigError, match=r"has no cleanrl/mine\.py"):
        find_script(find("mine", str(tmp_path)), str(tmp_path))


NEWER = """
import os
from dataclasses import dataclass
import tyro

@dataclass
class Args:
    exp_name: str = os.path.basename(__file__)[: -len(".py")]
    seed: int = 1
    cuda: bool = True
    env_id: str = "CartPole-v1"
    total_timesteps: int = 500
    learning_rate: float = 1e-3
    \"\"\"the learning rate
    of it\"\"\"
    target_kl: float = None

if __name__ == "__main__":
    args = tyro.cli(Args)
    for iteration in range(1, 10):
        pass
"""


def test_the_flags_of_a_newer_script_are_the_fields_of_its_class(tmp_path):
    (tmp_path / "cleanrl").mkdir()
    (tmp_path / "cleanrl" / "dqn.py").write_text(NEWER)
    script = find_script(find("dqn", str(tmp_path)), str(tmp_path))

    values = resolve(config(learning_rate=0.5), script)

    assert (script.flags["learning_rate"].kind, script.flags["learning_rate"].help) == (
        "number",
        "the learning rate of it",
    )
    assert command_line(values, script) == ["--no-cuda", "--total-timesteps", "10000", "--learning-rate", "0.5"]
    assert script.main_loop is not None


def test_a_script_whose_arguments_cannot_be_read_is_not_run_with_its_defaults(tmp_path):
    (tmp_path / "mine.py").write_text("print('hello')")

    with pytest.raises(ConfigError, match=r"mine\.py has no parse_args\(\) and no class Args"):
        resolve(config(), find_script(find("mine", str(tmp_path)), str(tmp_path)))


def test_the_command_line_has_only_what_differs_from_the_scripts_defaults():
    script = find_script(find("dqn"))
    values = resolve(config(buffer_size=500, tau=1.0), script)

    assert differences(values, script) == {"buffer_size": 500, "total_timesteps": 10_000, "cuda": False}
    assert command_line(values, script) == ["--cuda", "False", "--total-timesteps", "10000", "--buffer-size", "500"]


@pytest.mark.parametrize(
    ("algo", "params", "message"),
    [
        ("dqn", {"learning_rat": 1}, "dqn has no such hyperparameter. Did you mean learning_rate"),
        ("dqn", {"learning_rate": -1.0}, "learning_rate: must be more than 0, not -1.0"),
        ("dqn", {"learning_rate": "fast"}, "learning_rate: must be a number, not 'fast'"),
        ("dqn", {"learning_rate": float("nan")}, "learning_rate: must be a finite number"),
        ("dqn", {"gamma": 1.5}, "gamma: must be at most 1, not 1.5"),
        ("dqn", {"batch_size": 0}, "batch_size: must be at least 1, not 0"),
        ("dqn", {"batch_size": 1.5}, "batch_size: must be an integer"),
        ("dqn", {"save_model": 1}, "save_model: must be true or false"),
        ("dqn", {"track": True}, "track: set it as extras.track_wandb instead"),
        ("ppo_upstream", {"num_steps": 5000}, "less than one batch of ppo_upstream"),
        ("ppo_upstream", {"num_minibatches": 5000}, "a batch of 512 steps cannot be split into 5000"),
    ],
)
def test_a_bad_hyperparameter_is_refused_with_its_name(algo, params, message):
    with pytest.raises(ConfigError, match=message):
        resolved(algo, **params)
