"""What the token of a driver allows: runs of its own experiment, and nothing else."""

import asyncio
import json
from types import SimpleNamespace

import pytest

from mosaic.daemon.scope import Scope
from mosaic.model.errors import NotAllowed
from mosaic.model.run import Membership, RunConfig, WorkerSpec
from mosaic.model.ulid import new_ulid
from mosaic.registry.registry import Registry
from mosaic.submit.config import FIELDS, METADATA
from mosaic.wire import mosaic_pb2 as pb

OWN, KEY = "lr", "experiment/lr/trial-1"
BY_RUN = {"CancelRun": pb.RunRequest, "GetRun": pb.RunRequest, "QueryCurve": pb.QueryCurveRequest}


@pytest.fixture
def registry(tmp_path):
    registry = Registry.open(tmp_path / "registry.db")
    yield registry
    registry.close()


@pytest.fixture
def check(registry):
    async def do(ask):
        return ask(registry)

    scope = Scope(SimpleNamespace(do=do))
    return lambda method, request: asyncio.run(scope.check(OWN, method, request))


def run_of(registry: Registry, experiment: str) -> str:
    worker, member = WorkerSpec(module="toy_worker.cli"), Membership(experiment=experiment)
    config = RunConfig(new_ulid(), "run", "runs", "toy", worker, membership=member)
    registry.add(config)
    return config.run_id


def submit(worker=None, key=KEY, experiment=OWN, payload=None, **metadata) -> pb.SubmitRunRequest:
    document = {"worker": {"name": "toy", "config": {}, **(worker or {})}, "experiment": {"name": experiment}}
    config = {"metadata": {**document, **metadata}, "payload": payload or {}}
    return pb.SubmitRunRequest(config_json=json.dumps(config), idempotency_key=key)


@pytest.mark.parametrize("method", BY_RUN)
def test_a_driver_reaches_the_runs_of_its_experiment_only(registry, check, method):
    own, other, alone = run_of(registry, OWN), run_of(registry, "other"), run_of(registry, "")

    check(method, BY_RUN[method](run_id=own))

    for stranger in (other, alone, new_ulid(), own[:12], ""):
        with pytest.raises(NotAllowed, match=f"'{stranger}' is not the id of a run of the experiment 'lr'"):
            check(method, BY_RUN[method](run_id=stranger))


def test_a_driver_watches_only_runs_that_it_names(registry, check):
    own, other = run_of(registry, OWN), run_of(registry, "other")

    check("WatchRuns", pb.WatchRunsRequest(run_ids=[own]))

    for run_ids in ([], [own, other]):
        with pytest.raises(NotAllowed):
            check("WatchRuns", pb.WatchRunsRequest(run_ids=run_ids))


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"experiment": "other"}, "its own experiment: 'lr'"),
        ({"key": ""}, "must start with experiment/lr/"),
        ({"key": "experiment/lrx/trial-1"}, "must start with experiment/lr/"),
        ({"worker": {"script": "/tmp/x.py"}}, "may not set metadata.worker.script"),
        ({"worker": {"environment": {"A": "1"}}}, "may not set metadata.worker.environment"),
        ({"worker": {"drives": True}}, "may not set metadata.worker.drives"),
        ({"resume_from": "01JCQ5W2ZK8M3N4P5Q6R7S8T9V"}, "may not set metadata.resume_from"),
    ],
)
def test_a_driver_submits_plain_runs_of_its_experiment_only(check, changes, said):
    check("SubmitRun", submit())

    with pytest.raises(NotAllowed, match=said):
        check("SubmitRun", submit(**changes))


@pytest.mark.parametrize("key", sorted(METADATA.keys() - {"run_name", "tags", "notes", "worker", "experiment"}))
def test_a_driver_names_no_parent_no_id_and_no_role(check, key):
    with pytest.raises(NotAllowed, match=f"may not set metadata.{key}"):
        check("SubmitRun", submit(**{key: "x"}))


@pytest.mark.parametrize(
    "key", sorted({*FIELDS["metadata.worker"]} - {"module", "name", "variant", "config", "observe"})
)
def test_a_driver_starts_workers_of_the_catalog_only(check, key):
    with pytest.raises(NotAllowed, match=f"may not set metadata.worker.{key}"):
        check("SubmitRun", submit(worker={key: "x"}))


@pytest.mark.parametrize("key", FIELDS["payload"])
def test_a_driver_starts_no_parts(check, key):
    """They would not be runs of its experiment: it could start any number of them and cancel none."""
    given = submit(payload={key: {}})

    if key == "parts":
        with pytest.raises(NotAllowed, match=r"may not set payload\.parts"):
            check("SubmitRun", given)
    else:
        check("SubmitRun", given)


@pytest.mark.parametrize("method", ["DeleteRun", "SubmitRuns", "ListRuns", "SendCommand"])
def test_a_driver_calls_nothing_else(check, method):
    with pytest.raises(NotAllowed, match=f"may not call {method}"):
        check(method, pb.ListRunsRequest())
