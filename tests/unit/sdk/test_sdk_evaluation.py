"""mosaic_sdk.evaluation: every episode is reported, and eval_summary.json has one shape."""

import json
import math
import os

import pytest
from mosaic_sdk.emit import Emitter
from mosaic_sdk.evaluation import FIRST_SEED, Evaluation, seeds_from


@pytest.fixture
def emitter(tmp_path):
    fd = os.open(tmp_path / "lines", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    yield Emitter(fd, "R1")
    os.close(fd)


def lines(tmp_path):
    return [json.loads(line) for line in (tmp_path / "lines").read_text().splitlines()]


def evaluation(emitter, **more):
    about = {"run_id": "R1", "worker": "acme", "env_id": "Count-v0", "algo": "ppo", "checkpoint": "/x.pt"}
    return Evaluation(emitter=emitter, **{**about, **more})


def test_the_summary_has_the_numbers_and_a_row_per_episode(tmp_path, emitter):
    found = evaluation(emitter, deterministic=False)
    found.add(3, 1.0, 10, True, False)
    found.add(4, 5.0, 30, False, True, discounted_return=2.5)

    path = found.write(tmp_path, checkpoint_step=50)

    assert json.loads((tmp_path / "eval_summary.json").read_text()) == {
        **{"version": 1, "run_id": "R1", "worker": "acme", "env_id": "Count-v0", "algo": "ppo"},
        **{"checkpoint": "/x.pt", "deterministic": False, "episodes": 2, "mean_return": 3.0, "std_return": 2.0},
        **{"min_return": 1.0, "max_return": 5.0, "mean_length": 20.0, "seeds": [3, 4], "checkpoint_step": 50},
        "rows": [
            {"episode_index": 0, "seed": 3, "return": 1.0, "length": 10, "terminated": True, "truncated": False},
            {
                **{"episode_index": 1, "seed": 4, "return": 5.0, "length": 30, "terminated": False},
                **{"truncated": True, "discounted_return": 2.5},
            },
        ],
    }
    assert path == str(tmp_path / "eval_summary.json")


def test_every_episode_is_reported_when_it_is_added(tmp_path, emitter):
    evaluation(emitter).add(3, 1.0, 10, True, False)
    evaluation(emitter, agent_id="eval", global_step=500, first_index=7).add(4, 2.0, 20, False, True)

    plain, training = lines(tmp_path)
    assert (plain["event_type"], plain["episode_index"], plain["total_reward"]) == ("episode", 0, 1.0)
    assert (plain["steps"], plain["terminated"], plain["truncated"]) == (10, True, False)
    assert (plain["episode_seed"], "agent_id" in plain, "global_step" in plain) == (3, False, False)
    assert (training["agent_id"], training["global_step"], training["episode_index"]) == ("eval", 500, 7)


def test_an_evaluation_without_episodes_has_no_numbers(emitter):
    found = evaluation(emitter)

    assert found.summary()["mean_return"] is None
    assert math.isnan(found.mean_return)


def test_the_summary_goes_to_the_runs_folder(tmp_path, emitter, monkeypatch):
    monkeypatch.setenv("MOSAIC_RUN_DIR", str(tmp_path / "run"))

    assert evaluation(emitter).write() == str(tmp_path / "run" / "eval_summary.json")


def test_seeds_are_a_range_that_no_training_uses_unless_given():
    assert seeds_from(None, 3) == [FIRST_SEED, FIRST_SEED + 1, FIRST_SEED + 2]
    assert seeds_from(0, 2) == [0, 1]


@pytest.mark.parametrize(
    ("returns", "mean", "spread"),
    [
        ((math.nan, 1.0), None, None),
        ((math.inf, -math.inf), None, None),
        ((1e308, 1e308), 1e308, 0.0),
        ((1e200, -1e200), 0.0, 1e200),
    ],
)
def test_the_summary_is_valid_json_whatever_the_returns_are(tmp_path, emitter, returns, mean, spread):
    def refuse(constant):
        pytest.fail(f"{constant} is not JSON")

    found = evaluation(emitter)
    for seed, one in enumerate(returns):
        found.add(seed, one, 1, True, False)

    found.write(tmp_path)

    summary = json.loads((tmp_path / "eval_summary.json").read_text(), parse_constant=refuse)
    assert (summary["mean_return"], summary["std_return"]) == (mean, pytest.approx(spread) if spread else spread)
    assert summary["rows"][0]["return"] == (returns[0] if math.isfinite(returns[0]) else None)
    assert math.isnan(found.mean_return) == (mean is None)
