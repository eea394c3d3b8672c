"""Every script that can be run in this environment: trained, saved, resumed from halfway, and evaluated."""

import importlib.util
import os
from pathlib import Path

import numpy as np
import pytest
from cleanrl_worker.checkpoints import load_checkpoint
from cleanrl_worker.registry import ALGORITHMS, VECTOR
from cleanrl_worker.short import short_config, teacher_of

VARIANT = "jax" if importlib.util.find_spec("jax") else ""
HERE = [found for found in ALGORITHMS.values() if found.is_available and found.variant == VARIANT]

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]


def weights(value):
    """All arrays in a tree of weights, torch's or JAX's, in one order."""
    if isinstance(value, dict):
        return [part for key in sorted(value) for part in weights(value[key])]
    return [np.asarray(value)]


@pytest.mark.parametrize("algorithm", HERE, ids=lambda found: found.name)
def test_it_trains_saves_resumes_and_is_evaluated(launch, algorithm):
    config = short_config(algorithm)
    if teacher_of(algorithm):
        teacher = launch(short_config(ALGORITHMS[teacher_of(algorithm)]))
        config["extras"]["algo_params"]["teacher_path"] = teacher.ground.run
    # Evaluated halfway too: the resumed training, which is not evaluated there, must still end the same.
    halfway = {"eval_every": config["total_timesteps"] // 2, "eval_episodes": 1, "eval_max_episode_steps": 10}
    config["extras"] |= halfway

    whole = launch(config)

    assert whole.code == 0, whole.last_words
    folder = Path(whole.ground.run, "checkpoints")
    saved = sorted(path.name for path in folder.glob("*.pt"))
    assert len(saved) == 2
    assert (folder / "best" / "best.json").exists()
    assert len([line for line in whole.measurements() if line.get("name") == "eval/mean_return"]) == 2
    beat = whole.events("heartbeat")[-1]["payload"]
    assert beat["progress"] == beat["total"]
    for line in whole.measurements():
        if line["event_type"] == "episode" and line.get("agent_id") != "eval":
            assert line["terminated"] or line["truncated"]
            assert 0 < line["global_step"] <= beat["total"]
    middle = os.path.join(whole.ground.run, "checkpoints", saved[0])
    resumed = launch({"extras": {"mode": "resume_training", "policy_path": middle}})
    assert resumed.code == 0, resumed.last_words
    one, other = load_checkpoint(whole.ground.run), load_checkpoint(resumed.ground.run)
    assert (one.global_step, one.loop, one.algo) == (other.global_step, other.loop, algorithm.name)
    assert one.modules
    assert set(one.modules) == set(other.modules)
    # Classic control and MuJoCo are restored completely; image environments start a new episode and report it.
    is_exact = resumed.events("checkpoint_loaded")[0]["payload"]["not_carried_on"] == []
    assert is_exact == (algorithm.takes == VECTOR)
    if is_exact:
        pairs = zip(weights(one.modules), weights(other.modules), strict=True)
        assert all(np.array_equal(here, there) for here, there in pairs)

    requested = {"mode": "policy_eval", "eval_episodes": 2, "eval_max_episode_steps": 20}
    evaluated = launch({"seed": 5, "extras": {**requested, "policy_path": whole.ground.run}})
    assert evaluated.code == 0, evaluated.last_words
    episodes = [line for line in evaluated.measurements() if line["event_type"] == "episode"]
    assert [line["episode_seed"] for line in episodes] == [5, 6]


@pytest.mark.skipif(VARIANT == "jax", reason="a script of the default environment")
def test_weights_and_biases_offline_and_videos_stay_in_the_run_folder(launch):
    config = short_config(ALGORITHMS["dqn"])
    config["extras"] |= {"track_wandb": True, "capture_video": True}

    trial = launch(config)

    assert trial.code == 0, trial.last_words
    assert any(name.startswith("offline-run") for name in os.listdir(os.path.join(trial.ground.run, "wandb")))
    videos = [name for _, _, files in os.walk(os.path.join(trial.ground.run, "videos")) for name in files]
    assert any(name.endswith(".mp4") for name in videos)
    assert trial.ground.files_outside() == []
