"""Runs that their cluster ended are continued in the background."""

import asyncio
import json
from types import SimpleNamespace

import pytest

from mosaic.daemon.requeue import Requeue
from mosaic.model.run import Membership
from mosaic.model.states import RunState


@pytest.fixture
def continued(tmp_path):
    """The configs that are submitted after this run has ended."""

    def after(**fields):
        submitted = []
        config = tmp_path / "config.json"
        config.write_text(json.dumps({"payload": {"requeue_as_resume": 2}}))

        async def do(ask):
            return []

        async def submit(text, key, why):
            submitted.append(json.loads(text))
            return SimpleNamespace(run_id="B")

        trainer = SimpleNamespace(
            registry=SimpleNamespace(do=do), root=SimpleNamespace(config_file=lambda run_id: config), submit=submit
        )
        facts = {"run_id": "A", "on": "slurm", "state": RunState.FAULTED, "membership": Membership(), **fields}

        async def wait():
            requeue = Requeue(trainer)
            requeue.after(SimpleNamespace(**facts))
            await asyncio.gather(*requeue._tasks)

        asyncio.run(wait())
        return submitted

    return after


def test_a_preempted_member_of_an_experiment_is_continued_as_one(continued):
    axes = {"learning_rate": 1e-3, "seed": 4}

    (config,) = continued(reason="preempted: by a job of higher priority", membership=Membership("lr", axes))

    assert config["metadata"] == {
        "parent_run_id": "A",
        "relation": "resume",
        "experiment": {"name": "lr", "axes": axes},
    }
    assert config["payload"] == {"on": "slurm", "requeue_as_resume": 1}


def test_a_preempted_run_of_no_experiment_is_continued_alone(continued):
    (config,) = continued(reason="node failed: n1")

    assert config["metadata"] == {"parent_run_id": "A", "relation": "resume"}


@pytest.mark.parametrize(
    "fields",
    [
        {"reason": "exit code 1"},
        {"reason": "preempted: x", "state": RunState.CANCELLED},
        {"reason": "preempted: x", "on": ""},
    ],
)
def test_a_run_that_ended_by_itself_is_not_continued(continued, fields):
    assert continued(**fields) == []
