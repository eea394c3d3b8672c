"""What of RLlib's results becomes a metric, and the watch that RLlib calls."""

import copy
import math
import pickle

import numpy as np
import pytest
from mosaic_sdk.cli import WorkFailed
from ray_worker.telemetry import MOST_METRICS, Watch, metrics_of, refuse_divergence, take_rows


class Episode:
    is_terminated, is_truncated = True, False

    def get_return(self):
        return 3.0

    def __len__(self):
        return 2


class Runner:
    pass


def test_finite_numbers_become_metrics_by_their_path():
    result = {
        "env_runners": {"episode_return_mean": np.float32(2.5), "sample_timer": 0.1, "hist": [1, 2], "nothing": None},
        "learners": {"default_policy": {"total_loss": np.array(0.5), "is_new": True, "kl": math.nan}},
        "config": {"lr": 0.1},
        "timestamp": 17,
    }

    assert metrics_of(result) == {"env_runners/episode_return_mean": 2.5, "learners/default_policy/total_loss": 0.5}


def test_the_number_of_metrics_is_limited():
    assert len(metrics_of({"learners": {f"m{n}": 1.0 for n in range(2 * MOST_METRICS)}})) == MOST_METRICS


def test_a_loss_that_is_not_finite_ends_the_training():
    refuse_divergence({"learners": {"p": {"total_loss": 1.0, "kl": math.nan}}})
    with pytest.raises(WorkFailed, match="learners/p/policy_loss is inf"):
        refuse_divergence({"learners": {"p": {"policy_loss": math.inf}}})


def test_a_module_that_was_not_updated_has_not_diverged():
    refuse_divergence({"learners": {"p": {"pi_loss": math.nan, "num_module_steps_trained": math.nan}}})
    with pytest.raises(WorkFailed, match="learners/p/pi_loss is nan"):
        refuse_divergence({"learners": {"p": {"pi_loss": math.nan, "num_module_steps_trained": 526}}})


def test_the_watch_stays_one_object_when_rllib_copies_its_config():
    watch = Watch()

    assert copy.deepcopy({"callback": watch.on_episode_step})["callback"].__self__ is watch


def test_a_watch_in_another_process_keeps_its_episodes_until_they_are_fetched():
    watch, runner = pickle.loads(pickle.dumps(Watch())), Runner()

    watch.on_episode_end(episode=Episode(), env_runner=runner, env_index=1)

    row = {"total_reward": 3.0, "steps": 2, "env_index": 1, "terminated": True, "truncated": False}
    assert take_rows(runner) == [row]
    assert take_rows(runner) == []
