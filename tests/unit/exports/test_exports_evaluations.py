"""Which evaluations belong to a model."""

import json
from types import SimpleNamespace

import pytest

from mosaic.exports.evaluations import evaluations_of


@pytest.mark.parametrize(
    ("facts", "counts"),
    [
        ({"worker": "dreamer", "env_id": "CartPole-v1"}, True),
        ({"worker": "dreamer", "env_id": "dream:CartPole-v1"}, False),  # played in the world model
        ({"worker": "eval", "env_id": "gymnasium/CartPole-v1"}, True),  # another worker's name for the same
        ({}, True),
    ],
)
def test_returns_of_another_environment_are_not_the_models(tmp_path, facts, counts):
    (tmp_path / "eval_summary.json").write_text(json.dumps(facts))
    child = SimpleNamespace(run_id="2", relation="eval", run_dir=str(tmp_path))
    run = SimpleNamespace(children=["2"], worker_name="dreamer", env_id="CartPole-v1")
    client = SimpleNamespace(get_run=lambda run_id: child)

    assert evaluations_of(client, run) == ([child] if counts else [])
