"""Every script that can be run in this environment: trained, saved, and resumed from halfway."""

import importlib.util
import os

import pytest
from cleanrl_worker.checkpoints import load_checkpoint
from cleanrl_worker.registry import ALGORITHMS
from cleanrl_worker.short import short_config

VARIANT = "jax" if importlib.util.find_spec("jax") else ""
HERE = [found for found in ALGORITHMS.values() if found.is_available and found.variant == VARIANT]

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("algorithm", HERE, ids=lambda found: found.name)
def test_it_trains_saves_and_goes_on(launch, algorithm):
    config = short_config(algorithm)

    whole = launch(config)

    assert whole.code == 0, whole.last_words
    saved = sorted(os.listdir(os.path.join(whole.ground.run, "checkpoints")))
    assert len(saved) == 2
    middle = os.path.join(whole.ground.run, "checkpoints", saved[0])
    resumed = launch({"extras": {"mode": "resume_training", "policy_path": middle}})
    assert resumed.code == 0, resumed.last_words
    one, other = load_checkpoint(whole.ground.run), load_checkpoint(resumed.ground.run)
    assert (one.global_step, one.loop, one.algo) == (other.global_step, other.loop, algorithm.name)
    assert one.modules
    assert set(one.modules) == set(other.modules)


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
