"""From an evaluation script to a trainer config."""

import pytest
from mosaic_sdk.operators.script import EvalScript

from mosaic.catalog.evaluation import MANUAL, evaluation_config, for_author
from mosaic.catalog.request import RunOptions
from mosaic.submit.config import read_config, refuse_unknown

ENV = {"id": "CartPole-v1", "kwargs": {}, "wrappers": [], "api": "auto"}


def config_of(*, options=None, mode="script", **script):
    whole = EvalScript.parse({"env": "CartPole-v1", "seeds": "0-2", **script})
    return evaluation_config(whole, mode, options)


def test_the_script_is_a_setting_of_the_eval_worker():
    config = config_of(operators={"chance": "random"}, mode=MANUAL)

    worker = config["metadata"]["worker"]
    assert (worker["module"], worker["commands"]) == ("eval_worker.cli", True)
    assert worker["config"]["mode"] == MANUAL
    assert worker["config"]["script"]["seeds"] == [0, 1, 2]
    assert "operators" not in config["metadata"]


def test_only_operators_of_other_workers_are_for_the_daemon():
    operators = {"ppo": "rl:last:best", "gpt": "llm:tiny", "toy": "worker:toy", "me": "human", "chance": "random"}

    config = config_of(operators=operators)

    assert config["metadata"]["operators"] == {
        "ppo": {"kind": "rl", "run": "last", "checkpoint": "best", "env": ENV},
        "gpt": {"kind": "llm", "settings": {"model": "tiny"}},
        "toy": {"kind": "worker", "worker": "toy", "env": ENV},
    }


def test_the_daemon_reads_what_is_built():
    config = config_of(operators={"ppo": "rl:last", "gpt": "llm:tiny"}, options=RunOptions(cpus=2.0, tags=["a"]))

    refuse_unknown(config)
    read = read_config(config)
    assert (read.area, set(read.operators), read.resources.cpus, read.tags) == ("evals", {"ppo", "gpt"}, 2.0, ("a",))


def test_the_run_is_named_by_the_option_the_script_or_the_environment():
    operators = {"chance": "random"}

    assert config_of(operators=operators)["metadata"]["run_name"] == "eval of CartPole-v1"
    assert config_of(operators=operators, name="mine")["metadata"]["run_name"] == "mine"
    named = config_of(operators=operators, name="mine", options=RunOptions(name="other"))
    assert named["metadata"]["run_name"] == "other"


@pytest.mark.parametrize(
    "changes",
    [
        {"operators": {"ppo": {"kind": "rl", "run": "last", "owns_env": False}}},
        {"operators": {"ppo": "rl:last"}, "env": "pettingzoo/connect_four_v3"},
        {"operators": {"ppo": "rl:last"}, "env": "MosaicMultiGrid-Soccer-v0"},
        {
            "operators": {"ppo": "rl:last", "chance": "random"},
            "lanes": [{"name": "a", "agents": {"player_0": "ppo", "player_1": "chance"}}],
        },
    ],
    ids=["owns_env is false", "several agents", "several agents in a grid", "a seat in a lane"],
)
def test_an_operator_that_is_one_of_several_agents_gets_no_env(changes):
    assert "env" not in config_of(**changes)["metadata"]["operators"]["ppo"]


def test_a_checkpoint_that_exists_here_becomes_absolute(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "best.pt").write_text("x")

    here = config_of(operators={"a": "rl:last:best.pt", "b": "rl:last:checkpoints/c.pt"})["metadata"]["operators"]

    assert (here["a"]["checkpoint"], here["b"]["checkpoint"]) == (str(tmp_path / "best.pt"), "checkpoints/c.pt")


def test_the_option_best_is_not_a_file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "best").mkdir()

    assert config_of(operators={"a": "rl:last:best"})["metadata"]["operators"]["a"]["checkpoint"] == "best"


def test_errors_are_in_the_words_of_the_script():
    assert for_author("metadata.operators.ppo.run: there is no run.") == "operators.ppo.run: there is no run."
    assert for_author("metadata.worker.config.script.env: no.") == "env: no."
