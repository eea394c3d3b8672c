import pytest

from mosaic.model.task import Task


@pytest.mark.parametrize(
    ("settings", "task"),
    [
        ({}, Task()),
        ({"algo": "ppo", "env_id": "CartPole-v1", "seed": 3}, Task("ppo", "CartPole-v1", 3)),
        ({"env": "walker_walk", "seed": 0}, Task("", "walker_walk", 0)),
        ({"script.env": "CartPole-v1"}, Task("", "CartPole-v1")),
        ({"script.env.id": "CartPole-v1"}, Task("", "CartPole-v1")),
        ({"algo": "", "extras.algo": "dqn"}, Task("dqn")),
        ({"algo": 3, "env_id": ["a"], "seed": "3"}, Task()),
        ({"seed": True}, Task()),
        ({"seed": 2**63}, Task()),
        ({"seed": 2**63, "extras.seed": 7}, Task(seed=7)),
    ],
)
def test_a_task_is_read_from_the_names_that_workers_use(settings, task):
    assert Task.of(settings) == task


def test_a_text_that_cannot_be_stored_is_made_storable():
    task = Task.of({"algo": "a\ud800b", "env_id": "x" * 1000})

    assert task == Task("a?b", "x" * 200)
