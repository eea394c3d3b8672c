"""The agent learns: tasks small enough for a CPU, in the loop of --script train.

Each test has a score to reach within a number of env steps. The score is that of the evaluation env, which plays the
most likely actions. LEARN_SEED=1 in the environment selects another seed than 0, LEARN_KERNELS=interpreted the
hand-written kernels.
"""

import os
from collections import deque

import numpy as np
import pytest
from dreamer_worker.config import DreamerConfig
from dreamer_worker.parallel import prepare, resume
from dreamer_worker.telemetry import Telemetry
from dreamer_worker.train import Training

pytestmark = [pytest.mark.slow, pytest.mark.timeout(3600)]

# So small that an update takes some 20 ms of one core, and a rate for thousands of updates instead of millions.
SMALL = {
    "rssm": {"deter": 64, "hidden": 32, "stoch": 8, "classes": 8, "blocks": 4},
    "nets": {"units": 32, "bins": 63, "vector_layers": 1, "policy_layers": 1, "value_layers": 1},
    "learning": {"imagined_steps": 8},
    "optimizer": {"lr": 2e-3, "warmup": 100},
    "compute": {"dtype": "float32", "kernels": os.environ.get("LEARN_KERNELS", "auto")},
}


class Scores:
    """An output of the logger that keeps the last evaluations."""

    def __init__(self, count):
        self.steps, self.last = 0, deque(maxlen=count)

    def episode(self, step, number, episode):
        self.steps = step
        if episode["eval"]:
            self.last.append(episode["score"])

    def scalars(self, step, values):
        pass

    def close(self):
        pass

    @property
    def mean(self):
        return float(np.mean(self.last)) if len(self.last) == self.last.maxlen else float("-inf")


def learn(folder, goal, over, **config):
    """Train until the last `over` evaluations have the mean `goal`, or to the end; returns the mean score."""
    settings = {"run_id": "LEARN", "script": "train", "logdir": str(folder), "outputs": ["jsonl"], "agent": SMALL}
    settings["seed"] = int(os.environ.get("LEARN_SEED", "0"))
    settings |= {f"{name}_every_s": 1e6 for name in ("log", "report", "save")}
    config = prepare(DreamerConfig.from_dict({**settings, **config}))
    resume(config)
    training, scores = Training(config, Telemetry(run_id="LEARN")), Scores(over)
    training.logger.outputs.append(scores)
    carry = training.agent.init_train(config.batch_size)
    try:
        while scores.mean < goal and training.counters["env_steps"] < config.steps:
            training.play()
            carry = training.learn(carry)
    finally:
        training.close()
    print(f"{config.env}: {scores.mean:.3f} after {training.counters.to_dict()}")
    return scores.mean


def test_an_observation_is_remembered_until_it_is_needed(tmp_path):
    # Nothing that is seen later depends on the side. Only the reward does, and it reveals the side only together with
    # the answer: for some 800 updates nothing seems to be learned, then it is within a few hundred.
    found = learn(
        tmp_path,
        goal=0.95,
        over=40,
        env="dummy_memory",
        env_options={"length": 3},
        envs=8,
        batch_size=16,
        batch_length=10,
        train_ratio=20,
        steps=40_000,
    )

    assert found >= 0.95  # 0.5 by chance


def test_a_point_is_pushed_to_the_middle_with_continuous_actions(tmp_path):
    found = learn(
        tmp_path,
        goal=16.0,
        over=20,
        env="dummy_cont",
        envs=8,
        batch_size=16,
        batch_length=10,
        train_ratio=20,
        steps=40_000,
    )

    assert found >= 16.0  # 10 at random; 18.6 is the best there is


def test_a_pole_is_balanced(tmp_path):
    pytest.importorskip("gymnasium")
    found = learn(
        tmp_path,
        goal=120,
        over=5,
        env="gym_CartPole-v1",
        envs=4,
        batch_size=8,
        batch_length=16,
        train_ratio=64,
        steps=15_000,
        agent={**SMALL, "learning": {"imagined_steps": 12}, "optimizer": {"lr": 1e-3, "warmup": 100}},
    )

    assert found >= 120  # some 20 at random
