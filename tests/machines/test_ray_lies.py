"""A node that lies: what it can send with the session of its own run, during the run and after its end."""

import hashlib
import json

import grpc
import pytest
from far_runs import GRACE, digests, wait_for_steps
from raw_client import raw_client_of, session_of

from mosaic.model.durable import read_json
from mosaic.model.states import RunState
from mosaic.wire import mosaic_pb2 as pb

pytestmark = pytest.mark.timeout(400)  # of the first test: Ray's start, which may take several tries
Code = grpc.StatusCode


@pytest.fixture
def node(ray_lab):
    """Calls a method as the node of a run would."""
    with raw_client_of(ray_lab) as client:

        def call(method, run, message, owner=None):
            owner = owner or run
            message.run_id = run.run_id
            return client.call(method, message, session_of(ray_lab, owner).session_token, owner.run_id).code

        yield call


def file(path, data=b"bad", size=None):
    size = len(data) if size is None else size
    return pb.PutFileRequest(path=path, size=size, sha256=hashlib.sha256(data).digest(), data=data)


def exit_of(lab, run, **facts):
    launch = read_json(lab.rundir(run).launch)
    facts = {"attempt": launch["attempt"], "secret": launch["secret"], "exit_code": 0, **facts}
    return pb.ReportRunRequest(exit_json=json.dumps(facts))


def test_a_lying_node_reaches_only_its_own_runs_files_and_only_until_its_end(ray_lab, node, tmp_path):
    other = ray_lab.wait_until_over(ray_lab.submit(steps=20, checkpoint_every=10, on="ray", limits=GRACE))
    run = ray_lab.submit(steps=100_000, rate=30, on="ray", limits=GRACE)
    wait_for_steps(ray_lab, run)
    home, kept = ray_lab.rundir(run), digests(ray_lab.rundir(other).path)
    (home.path / "out").symlink_to(tmp_path)

    outside = ["../x", "/etc/x", "a/../../x", "telemetry.sqlite", "config/base_config.json", "out/x", "a//b", "."]
    refused = [node("PutFile", run, file(path)) for path in outside]
    huge = [node("PutFile", run, file("a", size=size)) for size in (1 << 62, 1 << 39)]
    others = [node("PutFile", other, file("checkpoints/x"), owner=run), node("PutFile", other, file("checkpoints/x"))]
    lies = [exit_of(ray_lab, run, **lie) for lie in ({"stdout_bytes": "x"}, {"secret": "x"}, {"attempt": 7})]
    reports = [node("ReportRun", run, lie) for lie in lies]
    is_live = not ray_lab.state(run).is_over
    ray_lab.client.cancel_run(run.run_id)
    over = ray_lab.wait_until_over(run)
    ended = read_json(home.exit)
    late = [node("PutFile", run, file("checkpoints/x")), node("ReportRun", run, exit_of(ray_lab, run))]

    assert set(refused) == {Code.INVALID_ARGUMENT}
    assert huge == [Code.INVALID_ARGUMENT, Code.RESOURCE_EXHAUSTED]
    assert others == [Code.PERMISSION_DENIED, Code.INVALID_ARGUMENT]
    assert reports == [Code.INVALID_ARGUMENT, Code.PERMISSION_DENIED, Code.PERMISSION_DENIED]
    assert (is_live, over.state, over.telemetry) == (True, RunState.CANCELLED, "")
    assert late == [Code.INVALID_ARGUMENT, Code.OK]
    assert read_json(home.exit) == ended
    assert list(tmp_path.iterdir()) == []
    assert digests(ray_lab.rundir(other).path) == kept
