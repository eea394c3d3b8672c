"""The listener for nodes: TLS with the daemon's own certificate, three calls, and nothing for anybody else."""

import os
import signal
import stat

import grpc
import pytest
from lab import wait_until
from raw_client import METHODS, RawClient, owner_token, session_of

from mosaic.daemon.admission import ONLY_RUNS, RUN_METHODS
from mosaic.model.durable import read_json, write_json
from mosaic.model.states import RunState
from mosaic.wire import mosaic_pb2 as pb
from mosaic.wire.names import NODES_HOST

GRACE = {"grace_s": 2}


@pytest.fixture(scope="module")
def address(slurm_lab):
    """Open since the first run on the cluster."""
    slurm_lab.wait_until_over(slurm_lab.submit(steps=1, on="slurm", limits=GRACE))
    return read_json(slurm_lab.root.settings)["nodes"]


@pytest.fixture(scope="module")
def two_runs(slurm_lab):
    return [slurm_lab.wait_until_over(slurm_lab.submit(steps=1, on="slurm", limits=GRACE)) for _ in range(2)]


@pytest.fixture
def node(slurm_lab, address):
    credentials = grpc.ssl_channel_credentials(slurm_lab.root.nodes_certificate.read_bytes())
    options = [("grpc.ssl_target_name_override", NODES_HOST)]
    with grpc.secure_channel(address, credentials, options) as channel:
        yield RawClient(channel)


@pytest.mark.parametrize("method", sorted({*METHODS, "/grpc.health.v1.Health/Check"} - RUN_METHODS))
def test_only_the_calls_of_tailers_are_answered_even_for_the_owner(slurm_lab, node, method):
    answer = node.call(method, token=owner_token(slurm_lab))

    assert (answer.code, answer.details) == (grpc.StatusCode.UNAUTHENTICATED, ONLY_RUNS)


@pytest.mark.parametrize("method", sorted(RUN_METHODS))
def test_the_calls_of_tailers_need_the_proof_of_a_run(slurm_lab, node, method):
    assert node.call(method, token=owner_token(slurm_lab)).code is grpc.StatusCode.UNAUTHENTICATED


@pytest.mark.parametrize("method", sorted(RUN_METHODS - {"RegisterWorker", "TakeLaunch"}))
def test_the_session_of_one_run_opens_nothing_of_another(slurm_lab, node, two_runs, method):
    own, other = two_runs
    token = session_of(slurm_lab, own).session_token
    before = read_json(slurm_lab.rundir(other).exit)
    request = getattr(pb, f"{METHODS[method].input_type.name}")(run_id=other.run_id)

    answers = [node.call(method, request, token, of) for of in (own.run_id, other.run_id, "")]

    refused = (grpc.StatusCode.UNAUTHENTICATED, grpc.StatusCode.PERMISSION_DENIED)
    assert all(answer.code in refused for answer in answers), answers
    assert read_json(slurm_lab.rundir(other).exit) == before


def test_without_tls_nothing_is_answered(address):
    with grpc.insecure_channel(address) as channel:
        assert RawClient(channel).call("GetHealth").code is grpc.StatusCode.UNAVAILABLE


def test_the_key_is_readable_by_the_owner_alone(slurm_lab, address):
    for path in (slurm_lab.root.nodes_key, slurm_lab.root.nodes_certificate):
        assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_the_listener_is_not_an_address_for_clients(slurm_lab, address):
    assert address not in read_json(slurm_lab.root.address)["addresses"]


def test_a_tailer_on_a_node_refuses_a_daemon_with_another_certificate(slurm_lab, address):
    """Nothing is sent to it, no daemon is started from the node, and what was printed is stored in the end."""
    run = slurm_lab.submit(steps=100_000, rate=50, on="slurm", limits=GRACE)
    slurm_lab.wait_until_run(run, lambda now: now.summary.steps > 0, "its first step")
    launch_file = slurm_lab.rundir(run).launch
    launch = read_json(launch_file)
    daemon = {**launch["daemon"], "certificate": _other_certificate(slurm_lab)}
    write_json(launch_file, {**launch, "daemon": daemon})

    os.kill(slurm_lab.tailer_pid(run), signal.SIGKILL)
    wait_until(lambda: "Registration: UNAVAILABLE" in slurm_lab.rundir(run).tailer_log.read_text(), 60, "a refusal")
    stored = slurm_lab.client.get_run(run.run_id).summary.steps
    wait_until(lambda: slurm_lab.rundir(run).stdout.read_bytes().count(b"\n") > stored + 100, 60, "more lines")
    later = slurm_lab.client.get_run(run.run_id).summary.steps
    write_json(launch_file, launch)
    os.kill(slurm_lab.tailer_pid(run), signal.SIGKILL)
    slurm_lab.wait_until_run(run, lambda now: now.summary.steps > stored, "the next step")
    slurm_lab.client.cancel_run(run.run_id)
    over = slurm_lab.wait_until_over(run)

    assert later == stored
    assert (over.state, over.telemetry) == (RunState.CANCELLED, "")
    assert [event["step_index"] for event in slurm_lab.events(run, "step")] == list(range(over.summary.steps))


def _other_certificate(lab):
    from mosaic.daemon.certificate import load_certificate
    from mosaic.model.rundir import StateRoot

    other = StateRoot(lab.root.path / "other")
    other.trainer.mkdir(parents=True, exist_ok=True)
    return load_certificate(other)[1].decode()
