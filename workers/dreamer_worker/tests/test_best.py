"""The best agent so far: evaluations while training, kept by their mean, and played again."""

import json

import numpy as np
import pytest
from dreamer_worker.checkpoint import Epochs, read_arrays
from mosaic_sdk.files import read_json

TINY = {
    "run_id": "TEST",
    "script": "train",
    "env": "dummy_grid",
    "random_agent": True,
    "envs": 2,
    "eval_envs": 0,
    "batch_size": 2,
    "batch_length": 6,
    "train_ratio": 2,
    "replay_gb": 0.01,
    "outputs": ["jsonl"],
    **{f"{name}_every_s": 1000 for name in ("log", "report", "save")},
}
SEEDS = [1_000_000, 1_000_001, 1_000_002]


def scripted(training, scores):
    """The evaluator's episodes score as scripted; everything else is real."""
    left = iter(scores)

    def policy(carry, obs, mode):
        # dummy_grid gives a reward of 1 for the way to the far corner: right three times, down three times.
        asked = int(np.where(obs["is_first"], 0, carry["asked"])[0])
        if asked == 0:
            policy.wins = next(left)
        action = (0 if asked < 3 else 1) if policy.wins else 2
        return {"asked": np.asarray([asked + 1])}, {"action": np.asarray([action])}, {}

    plain = training.agent.policy
    training.agent.policy = lambda carry, obs, mode: (policy if mode == "eval" else plain)(carry, obs, mode)


def saved(run):
    return [line["payload"] for line in run.lines if line.get("event") == "checkpoint_saved"]


def test_the_best_evaluation_is_kept_when_later_ones_are_worse(training_in, tmp_path, capfd):
    training = training_in(tmp_path, steps=160, eval_every=40, eval_episodes=3, outputs=["jsonl", "mosaic"])
    scripted(training, [0, 0, 1, 1, 1, 1, 0, 1, 1, 0, 0, 0])

    training.run()

    best = read_json(tmp_path / "checkpoints" / "best" / "best.json")
    kept = [json.loads(line)["payload"] for line in capfd.readouterr().out.splitlines() if "checkpoint_saved" in line]
    assert [(episode["step"], episode["score"]) for episode in kept if episode.get("best")] == [
        (40, pytest.approx(1 / 3)),
        (80, 1),
    ]
    assert (best["step"], best["score"], best["episodes"], best["seeds"]) == (80, 1.0, 3, SEEDS)
    assert "updates" in read_arrays(tmp_path / "checkpoints" / "best" / best["path"])
    written = [json.loads(line) for line in (tmp_path / "metrics.jsonl").read_text().splitlines()]
    assert [line["evaluation/score"] for line in written if "evaluation/score" in line] == pytest.approx(
        [1 / 3, 1, 2 / 3, 0]
    )
    assert [line["seed"] for line in written if "seed" in line] == SEEDS * 4


def test_a_run_that_continues_in_its_folder_remembers_its_best(training_in, tmp_path):
    first = training_in(tmp_path, steps=40, eval_every=40, eval_episodes=1)
    scripted(first, [1])
    first.run()

    second = training_in(tmp_path, steps=80, eval_every=40, eval_episodes=1)
    scripted(second, [0])
    second.run()

    assert read_json(tmp_path / "checkpoints" / "best" / "best.json")["step"] == 40


@pytest.mark.parametrize("script", ["train", "parallel"])
def test_a_run_reports_its_evaluations_and_its_best_can_be_played(run_of, script):
    run = run_of(script=script, steps=400, eval_every=100, eval_episodes=3, eval_envs=0, train_ratio=2)
    assert run.start().wait() == 0, run.stderr

    best = next(payload for payload in reversed(saved(run)) if payload.get("best"))
    plain = [payload for payload in saved(run) if not payload.get("best")]
    episodes = [line for line in run.lines if line.get("agent_id") == "eval"]
    steps = sorted({line["global_step"] for line in episodes})
    assert plain[-1]["step"] == run.counters["env_steps"] >= 400
    assert steps[0] >= 100  # how many there are depends on how far the envs are ahead of the learner
    assert [line["episode_seed"] for line in episodes] == SEEDS * len(steps)
    assert read_json(run.folder / "checkpoints" / "best" / "best.json")["step"] == best["step"] in steps

    played = run_of(script="eval", episodes=2, capture_video=True, checkpoint=best["path"])
    assert played.start().wait() == 0, played.stderr

    summary = read_json(played.folder / "eval_summary.json")
    assert summary["seeds"] == SEEDS[:2]
    films = sorted(path.name for path in (played.folder / "videos" / "eval").iterdir())
    assert films == ["episode-000-seed-1000000.gif", "episode-001-seed-1000001.gif"]


def test_a_run_continues_from_the_given_epoch(run_of):
    run = run_of(script="train", steps=200, save_every_s=0.05)
    assert run.start().wait() == 0, run.stderr
    older = Epochs(run.folder / "checkpoints").committed()[-1]
    folder = Epochs(run.folder / "checkpoints").path(older)
    step = Epochs(run.folder / "checkpoints").read(older)["counters"]["env_steps"]

    other = run_of(script="train", steps=300, checkpoint=str(folder))
    assert other.start().wait() == 0, other.stderr

    loaded = [line["payload"] for line in other.lines if line.get("event") == "checkpoint_loaded"]
    assert [(payload["epoch"], payload["step"]) for payload in loaded] == [(older, step)]
    assert other.counters["env_steps"] == 300


def test_a_run_cannot_continue_from_the_best_agent_alone(run_of):
    run = run_of(script="train", steps=40, eval_every=20, eval_episodes=1)
    assert run.start().wait() == 0, run.stderr
    best = run.folder / "checkpoints" / "best" / "agent.npz"

    other = run_of(script="train", steps=80, checkpoint=str(best))

    assert other.start().wait() != 0
    assert "holds the agent alone" in other.stderr
    assert "Traceback" not in other.stderr
