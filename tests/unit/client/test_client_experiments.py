"""Which runs of an experiment are missing: of each point the newest run decides."""

import asyncio
from types import SimpleNamespace

import pytest

from mosaic.client import experiments
from mosaic.client.experiments import newest_at_points, plan_experiment, resume_runs
from mosaic.model.errors import MosaicError
from mosaic.model.experiment import Experiment, point_key, read_document, reconstructed
from mosaic.model.states import RunState

GRID = read_document({"worker": "toy", "axes": {"rate": [1]}})
POINT = point_key({"rate": 1})


def run(state, created_at):
    return SimpleNamespace(run_id=f"run{created_at}", axes={"rate": 1}, state=RunState(state), created_at=created_at)


@pytest.fixture
def keys(monkeypatch):
    """The keys of the runs that a plan would submit, given the runs that exist, newest first."""
    monkeypatch.setattr(experiments, "grid_configs", lambda name, document, wanted, root: [{} for _ in wanted])

    def plan(*runs, retry_faulted):
        async def experiment(name):
            return Experiment(name, GRID)

        async def list_runs(experiment):
            return SimpleNamespace(runs=runs)

        client = SimpleNamespace(experiment=experiment, list_runs=list_runs)
        planned = asyncio.run(plan_experiment(client, None, "g", GRID, retry_faulted, False))
        return [todo.key.rpartition("/")[2] for todo in planned.todo]

    return plan


def test_a_retry_starts_only_what_is_faulted(keys):
    assert keys(run("FAULTED", 1), retry_faulted=True) == ["retry-run1"]
    assert keys(run("FAULTED", 1), retry_faulted=False) == []
    for state in ("CANCELLED", "TERMINATED", "EXECUTING", "INIT"):
        assert keys(run(state, 1), retry_faulted=True) == []


def test_the_newest_run_at_a_point_decides_whether_it_is_retried(keys):
    faulted, done = run("FAULTED", 1), run("TERMINATED", 2)

    assert newest_at_points([done, faulted]) == newest_at_points([faulted, done]) == {POINT: done}
    assert keys(done, faulted, retry_faulted=True) == []
    assert keys(run("FAULTED", 3), done, faulted, retry_faulted=True) == ["retry-run3"]


def test_pruned_trials_of_a_search_are_not_started_again():
    search = Experiment("lr", reconstructed("toy", [{"rate": 1}], "DRIVER"), is_reconstructed=True)

    with pytest.raises(MosaicError, match="'lr' is a search"):
        asyncio.run(resume_runs(None, None, search, [run("CANCELLED", 1)]))
