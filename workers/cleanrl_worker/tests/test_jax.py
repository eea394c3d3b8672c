"""The JAX scripts: resumed bit for bit and evaluated. Skipped outside the environment of the variant jax."""

import importlib.util
import json
from pathlib import Path

import numpy as np
import pytest
from cleanrl_worker.checkpoints import load_checkpoint
from cleanrl_worker.registry import ALGORITHMS, VECTOR
from cleanrl_worker.short import short_config

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(1800),
    pytest.mark.skipif(
        importlib.util.find_spec("jax") is None,
        reason="the variant jax is not installed here: use a Python with requirements/jax.txt",
    ),
]
ON_VECTORS = [found for found in ALGORITHMS.values() if found.variant == "jax" and found.takes == VECTOR]


@pytest.fixture
def train(launch):
    """A short training of one algorithm; returns its run folder and its checkpoints, halfway and at the end."""

    def run(algo):
        trial = launch(short_config(ALGORITHMS[algo]))
        assert trial.code == 0, trial.last_words
        folder = Path(trial.ground.run)
        return folder, sorted((folder / "checkpoints").glob("*.pt"))

    return run


@pytest.fixture
def evaluate(launch):
    def run(checkpoint, **extras):
        trial = launch({"seed": 7, "extras": {"mode": "policy_eval", "policy_path": str(checkpoint), **extras}})
        assert trial.code == 0, trial.last_words
        return json.loads((Path(trial.ground.run) / "eval_summary.json").read_text())

    return run


def leaves(tree):
    """All arrays of a tree, in a fixed order."""
    return (
        [leaf for key in sorted(tree) for leaf in leaves(tree[key])] if isinstance(tree, dict) else [np.asarray(tree)]
    )


@pytest.mark.parametrize("algorithm", ON_VECTORS, ids=lambda found: found.name)
def test_a_training_resumed_from_halfway_ends_with_exactly_the_same_weights(train, launch, algorithm):
    _, (middle, end) = train(algorithm.name)

    resumed = launch({"extras": {"mode": "resume_training", "policy_path": str(middle)}})

    assert resumed.code == 0, resumed.last_words
    assert resumed.events("checkpoint_loaded")[0]["payload"]["not_carried_on"] == []
    one, other, before = (load_checkpoint(path) for path in (end, resumed.ground.run, middle))
    assert (one.global_step, one.loop, one.algo) == (other.global_step, other.loop, algorithm.name)
    pairs = zip(leaves(one.modules), leaves(other.modules), strict=True)
    assert all(np.array_equal(here, there) for here, there in pairs)
    assert not all(map(np.array_equal, leaves(one.modules), leaves(before.modules)))  # it continued to learn


@pytest.mark.parametrize("algorithm", ON_VECTORS, ids=lambda found: found.name)
def test_a_checkpoint_is_evaluated_and_the_same_seeds_give_the_same_returns(train, evaluate, algorithm):
    folder, (_, end) = train(algorithm.name)

    one = evaluate(folder, eval_episodes=3)
    again = evaluate(end, eval_episodes=3)

    assert (one["algo"], one["env_id"], one["episodes"]) == (algorithm.name, algorithm.env_id, 3)
    assert one["mean_return"] == again["mean_return"]
    assert np.isfinite(one["mean_return"])
    assert one["mean_length"] > 0
