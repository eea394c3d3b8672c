"""examples/small_worker, the small worker of docs/howto/new-worker.md: it trains, resumes, evaluates and is short."""

import importlib.util
import json
from pathlib import Path

import pytest
from mosaic_sdk.interactive import Session

EXAMPLE = Path(__file__).parents[3] / "examples/small_worker/small_sb3_worker.py"
A2C = {"algo": "a2c", "env_id": "CartPole-v1", "extras": {"checkpoint_every": 100, "algo_params": {"gamma": 0.9}}}


@pytest.fixture
def small():
    spec = importlib.util.spec_from_file_location("small_sb3_worker", EXAMPLE)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def run_small(run, small, monkeypatch):
    monkeypatch.setattr("stable_baselines3_worker.cli.main", small.main)
    return run


def test_the_small_worker_trains_resumes_evaluates_and_plays(run_small, small):
    first = run_small(total_timesteps=200, **A2C)
    assert first.code == 0, first.errors
    assert [one["payload"]["step"] for one in first.of("checkpoint_saved")] == [100, 200]
    assert first.of("episode")
    assert first.of("heartbeat")[-1]["payload"] == {"progress": 200, "total": 200}

    resume = {"mode": "resume_training", "policy_path": str(first.folder)}
    second = run_small(total_timesteps=300, extras=resume)
    assert second.code == 0, second.errors
    assert second.of("checkpoint_loaded")[0]["payload"]["step"] == 200
    assert second.of("run_completed")[0]["payload"]["total_steps"] == 300

    extras = {"mode": "policy_eval", "policy_path": str(second.folder), "eval_episodes": 2}
    one, two = run_small(kind="evals", extras=extras), run_small(kind="evals", extras=extras)
    assert one.code == 0, one.errors
    summary = json.loads((one.folder / "eval_summary.json").read_text())
    assert (summary["seeds"], summary["checkpoint_step"]) == ([1_000_000, 1_000_001], 300)
    assert summary["rows"] == json.loads((two.folder / "eval_summary.json").read_text())["rows"]

    config = small.Config.from_dict({"run_id": "x", "extras": {**extras, "mode": "interactive"}})
    session = Session(lambda: small.Policy(config), run_id="x", first_seed=1)
    ready, length = session.answer('{"cmd": "reset", "seed": 1000000}')[0], 0
    while session.answer('{"cmd": "step"}')[-1]["type"] == "step":
        length += 1
    assert (ready["policy"], length + 1) == ("checkpoint", summary["rows"][0]["length"])
    session.close()


def test_it_refuses_what_it_does_not_know_without_importing_torch(run_small):
    wrong = run_small(algo="a2c", extras={"algo_params": {"batch_size": 8}})
    missing = run_small(algo="ppo", env_id="NoSuch-v0")

    assert (wrong.code, missing.code) == (2, 2)
    assert "batch_size: a2c has no such setting" in wrong.errors
    assert "env_id: Environment `NoSuch` doesn't exist" in missing.errors


def test_it_has_no_more_than_150_lines_of_code():
    lines = [line.strip() for line in EXAMPLE.read_text().splitlines()]

    assert len([line for line in lines if line]) <= 150
