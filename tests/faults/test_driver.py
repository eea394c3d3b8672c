"""The token of a driver: it opens the runs of its experiment, while the driver is live, and nothing else."""

import json

import grpc
import pytest
from raw_client import HEALTH, METHODS, raw_client_of, session_of
from test_security import DRIVERS, RUN_CALLS

from mosaic.daemon.auth import Tokens
from mosaic.model.durable import read_json
from mosaic.model.errors import BadConfig
from mosaic.model.states import RunState
from mosaic.model.ulid import new_ulid
from mosaic.wire import mosaic_pb2 as pb

S, Code = RunState, grpc.StatusCode
TOY = {"module": "toy_worker.cli", "config": {"steps": 3}}
LONG = {"module": "toy_worker.cli", "config": {"steps": 1_000_000, "rate": 10}}
OURS, THEIRS = {"name": "ours"}, {"name": "theirs"}
NO_RESOURCES = {"resources": {"cpus": 0, "memory_mb": 0}}


@pytest.fixture
def driver(lab):
    """A live driver of the experiment `ours`, and its token."""
    metadata = {"worker": {**LONG, "drives": True}, "experiment": OURS}
    run = lab.client.submit_run({"metadata": metadata, "payload": NO_RESOURCES})
    lab.wait_for(run, S.EXECUTING)
    return run, read_json(lab.rundir(run).launch)["env"]["MOSAIC_DRIVER_TOKEN"]


def submit(lab, experiment=None, worker=TOY):
    metadata = {"worker": worker} | ({"experiment": experiment} if experiment else {})
    return lab.client.submit_run({"metadata": metadata})


def request_of(metadata, key="experiment/ours/trial-0"):
    return pb.SubmitRunRequest(config_json=json.dumps({"metadata": metadata}), idempotency_key=key)


def test_a_driver_submits_watches_and_cancels_the_runs_of_its_experiment(lab, driver):
    run, token = driver
    with raw_client_of(lab, 1) as client:
        made = client.call("SubmitRun", request_of({"worker": LONG, "experiment": OURS}), token, run.run_id)
        assert made.code is Code.OK, made.details
        trial = pb.RunInfo.FromString(made.reply)
        lab.wait_for(lab.client.get_run(trial.run_id), S.EXECUTING)

        for method in ("GetRun", "QueryCurve"):
            answer = client.call(method, RUN_CALLS[method](run_id=trial.run_id), token, run.run_id)
            assert answer.code is Code.OK, answer.details
        watched = client.call("WatchRuns", pb.WatchRunsRequest(run_ids=[trial.run_id]), token, run.run_id)
        assert [info.run_id for info in pb.ListRunsReply.FromString(watched.reply).runs] == [trial.run_id]
        reason = "pruned at step 20: below the median"
        request = pb.RunRequest(run_id=trial.run_id, reason=reason)
        assert client.call("CancelRun", request, token, run.run_id).code is Code.OK

    end = lab.wait_until_over(lab.client.get_run(trial.run_id))
    assert (end.state, end.reason, end.experiment) == (S.CANCELLED, reason, "ours")


def test_every_other_call_is_refused_to_a_driver(lab, driver):
    run, token = driver
    with raw_client_of(lab, 1) as client:
        for method in METHODS.keys() - DRIVERS:
            request = RUN_CALLS[method](run_id=run.run_id) if method in RUN_CALLS else b""
            code = client.call(method, request, token, run.run_id).code
            assert code in (Code.UNAUTHENTICATED, Code.PERMISSION_DENIED), method
        for method in HEALTH:
            assert client.call(method, b"", token, run.run_id).code is Code.UNAUTHENTICATED


def test_a_driver_cannot_reach_the_runs_of_others(lab, driver):
    run, token = driver
    strangers = [submit(lab), submit(lab, THEIRS)]
    names = [*(stranger.run_id for stranger in strangers), new_ulid(), "last", run.run_id[:12], "", "../x"]

    with raw_client_of(lab, 1) as client:
        for name in names:
            for method in ("GetRun", "CancelRun", "QueryCurve"):
                answer = client.call(method, RUN_CALLS[method](run_id=name), token, run.run_id)
                assert answer.code is Code.PERMISSION_DENIED, (method, name, answer)
        for watched in ([], [strangers[1].run_id], [run.run_id, strangers[0].run_id]):
            answer = client.call("WatchRuns", pb.WatchRunsRequest(run_ids=watched), token, run.run_id)
            assert answer.code is Code.PERMISSION_DENIED, watched

    assert not any(lab.client.get_run(stranger.run_id).cancel_requested for stranger in strangers)


@pytest.mark.parametrize(
    ("metadata", "key"),
    [
        ({"worker": TOY}, "experiment/ours/trial-0"),
        ({"worker": TOY, "experiment": THEIRS}, "experiment/ours/trial-0"),
        ({"worker": TOY, "experiment": OURS}, ""),
        ({"worker": TOY, "experiment": OURS}, "experiment/theirs/trial-0"),
        ({"worker": {**TOY, "drives": True}, "experiment": OURS}, "experiment/ours/trial-0"),
        ({"worker": {**TOY, "use_grpc": True}, "experiment": OURS}, "experiment/ours/trial-0"),
        ({"worker": {"script": "/bin/true"}, "experiment": OURS}, "experiment/ours/trial-0"),
        ({"worker": {**TOY, "python": "/usr/bin/python3"}, "experiment": OURS}, "experiment/ours/trial-0"),
        ({"worker": {**TOY, "cwd": "/"}, "experiment": OURS}, "experiment/ours/trial-0"),
        ({"worker": {**TOY, "environment": {"A": "b"}}, "experiment": OURS}, "experiment/ours/trial-0"),
        ({"worker": {**TOY, "arguments": ["-x"]}, "experiment": OURS}, "experiment/ours/trial-0"),
        ({"worker": TOY, "experiment": OURS, "parent_run_id": "last"}, "experiment/ours/trial-0"),
        ({"worker": TOY, "experiment": OURS, "operators": {}}, "experiment/ours/trial-0"),
    ],
)
def test_a_driver_cannot_submit_anything_but_a_worker_in_its_experiment(lab, driver, metadata, key):
    run, token = driver

    with raw_client_of(lab, 1) as client:
        answer = client.call("SubmitRun", request_of(metadata, key), token, run.run_id)

    assert answer.code is Code.PERMISSION_DENIED, answer
    assert lab.client.list_runs().total == 1


def test_the_token_of_a_driver_is_valid_for_one_live_attempt_of_one_run(lab, driver):
    run, token = driver
    other = lab.client.submit_run({"metadata": {"worker": LONG, "experiment": OURS}})
    tokens = Tokens.load(lab.root)
    guesses = [
        *((tokens.driver(run.run_id, attempt, "ours"), run.run_id) for attempt in (0, 2)),
        (tokens.driver(run.run_id, 1, "theirs"), run.run_id),
        (token, other.run_id),
        (session_of(lab, run).session_token, run.run_id),
        (token, ""),
    ]

    with raw_client_of(lab, 1) as client:
        for guess, run_id in guesses:
            answer = client.call("GetRun", pb.RunRequest(run_id=run.run_id), guess, run_id)
            assert answer.code is Code.UNAUTHENTICATED, run_id
        lab.kill_daemon()
    lab.restart_daemon()
    with raw_client_of(lab, 1) as client:
        assert client.call("GetRun", pb.RunRequest(run_id=run.run_id), token, run.run_id).code is Code.OK
        lab.client.cancel_run(run.run_id)
        lab.wait_until_over(run)
        assert client.call("GetRun", pb.RunRequest(run_id=run.run_id), token, run.run_id).code is Code.UNAUTHENTICATED


def test_a_run_that_does_not_drive_is_given_no_token(lab):
    run = submit(lab, OURS)
    lab.wait_until_over(run)

    env = read_json(lab.rundir(run).launch)["env"]
    assert [name for name in env if name.startswith("MOSAIC_DRIVER")] == []


def test_a_driver_without_an_experiment_is_refused(lab):
    with pytest.raises(BadConfig, match=r"^metadata\.worker\.drives: .* Set metadata\.experiment as well"):
        submit(lab, worker={**TOY, "drives": True})

    assert lab.client.list_runs().total == 0


def test_a_reason_that_is_no_line_is_refused_and_cancels_nothing(lab):
    run = submit(lab, worker=LONG)

    for reason in ("two\nlines", "x" * 501, " "):
        with pytest.raises(BadConfig, match=r"^reason: must be one line"):
            lab.client.cancel_run(run.run_id, reason)

    assert not lab.client.get_run(run.run_id).cancel_requested


def test_the_first_reason_of_a_cancel_is_kept_from_the_request_to_the_end(lab):
    run = submit(lab, worker={"module": "toy_worker.cli", "config": {"steps": 1_000_000, "rate": 10, "seed": 1}})
    now = lab.client.cancel_run(run.run_id, "no longer needed")
    lab.client.cancel_run(run.run_id, "another reason")

    end = lab.wait_until_over(run)

    assert now.reason == "no longer needed"
    assert (end.state, end.reason) == (S.CANCELLED, "no longer needed")
