"""A worker that registers itself over gRPC, and the capabilities that each run registers."""

import json
import os
import shutil
import signal
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path

import grpc
import pytest
from lab import Lab, wait_until

import mosaic
from mosaic.model.durable import read_json
from mosaic.model.states import RunState
from mosaic.wire import mosaic_pb2 as pb
from mosaic.wire.mosaic_pb2_grpc import TrainerServiceStub

S = RunState
Code = grpc.StatusCode
FIXTURE = Path(__file__).parents[1] / "fixtures/grpc_worker/grpc_worker"
OWN = {"worker_type": "grpc", "max_agents": 4, "supported_paradigms": ["sequential"], "likes": "tea"}


@pytest.fixture(scope="module")
def lab():
    """A daemon with the worker installed, in an environment that can also import the platform's packages."""
    home = Path(tempfile.mkdtemp(prefix="mosaic-"))
    lab = Lab(home)
    venv = lab.root.envs / "grpc"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", venv], check=True)
    (site,) = venv.glob("lib/python*/site-packages")
    shutil.copytree(FIXTURE, site / "grpc_worker")
    about = site / "grpc_worker-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: grpc-worker\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text("[mosaic.workers]\ngrpc = grpc_worker:get_worker_metadata\n")
    folders = [sysconfig.get_path("purelib"), str(Path(mosaic.__file__).parents[1])]
    (site / "platform.pth").write_text("\n".join(folders) + "\n")
    yield lab
    lab.close()
    shutil.rmtree(home, ignore_errors=True)


def submit_grpc_worker(lab, limits=None, **config):
    worker = {"module": "grpc_worker.cli", "use_grpc": True, "config": {"capabilities": OWN, **config}}
    return lab.submit_worker(worker, limits=limits)


def register(lab, run, **changes):
    """The daemon's reply to this run's registration, with some fields changed."""
    launch = read_json(lab.rundir(run).launch)
    ids = {"run_id": run.run_id, "attempt": launch["attempt"], "nonce": launch["nonce"], **changes}
    with grpc.insecure_channel(read_json(lab.root.address)["addresses"][0]) as channel:
        return TrainerServiceStub(channel).RegisterWorker(pb.RegisterWorkerRequest(**ids), timeout=30)


def test_a_worker_registers_itself_with_its_own_capabilities(lab):
    run = submit_grpc_worker(lab)

    end = lab.wait_until_over(run)

    assert (end.state, end.reason) == (S.TERMINATED, "")
    assert lab.client.get_run(run.run_id).capabilities == OWN
    assert [move.new for move in lab.client.get_run(run.run_id).history] == [S.INIT, S.HANDSHAKE, S.READY, S.TERMINATED]


def test_it_gets_the_same_session_as_its_tailer(lab):
    run = submit_grpc_worker(lab)
    lab.wait_until_over(run)

    assert (lab.rundir(run).path / "session.txt").read_text() == register(lab, run).session_token


def test_its_capabilities_survive_a_restart_and_the_next_registration_of_its_tailer(lab):
    run = submit_grpc_worker(lab, hangs=True)
    session = lab.rundir(run).path / "session.txt"
    wait_until(session.exists, words="its registration")

    lab.kill_daemon()
    lab.restart_daemon()
    capabilities = json.dumps(read_json(lab.rundir(run).launch)["capabilities"])
    register(lab, run, capabilities_json=capabilities)  # as its tailer does
    register(lab, run)

    assert lab.client.get_run(run.run_id).capabilities == OWN
    lab.client.cancel_run(run.run_id)
    lab.wait_until_over(run)


def test_a_heartbeat_call_counts_like_a_heartbeat_line(lab):
    # A worker that never sent one is never ended because of missing heartbeats.
    run = submit_grpc_worker(lab, limits={"heartbeat_s": 1}, hangs=True)

    end = lab.wait_until_over(run)

    assert end.state is S.FAULTED
    assert "no heartbeat" in end.reason


def test_a_heartbeat_call_is_remembered_after_a_restart(lab):
    run = submit_grpc_worker(lab, limits={"heartbeat_s": 2}, hangs=True)
    wait_until((lab.rundir(run).path / "heartbeats_sent.txt").exists, words="its heartbeats")
    tailer = lab.tailer_pid(run)

    # The tailer of a worker without output has nothing to send to a new daemon; here it certainly sends nothing.
    os.kill(tailer, signal.SIGSTOP)
    lab.kill_daemon()
    lab.restart_daemon()
    wait_until(lab.rundir(run).exit.exists, words="its end")
    os.kill(tailer, signal.SIGCONT)

    assert "no heartbeat" in lab.wait_until_over(run).reason


def test_the_tailer_registers_the_capabilities_in_the_catalog(lab):
    run = lab.submit(steps=3)
    lab.wait_until_over(run)

    capabilities = lab.client.get_run(run.run_id).capabilities

    assert capabilities == read_json(lab.rundir(run).launch)["capabilities"]
    assert capabilities["worker_type"] == "toy"
    assert capabilities["estimated_memory_mb"] > 0


@pytest.mark.parametrize(
    ("changes", "code", "sentence"),
    [
        ({"nonce": ""}, Code.PERMISSION_DENIED, "is not the nonce of attempt 1"),
        ({"nonce": "wrong"}, Code.PERMISSION_DENIED, "is not the nonce of attempt 1"),
        ({"attempt": 2}, Code.PERMISSION_DENIED, "is not the nonce of attempt 1"),
        ({"run_id": "01HZY0000000000000000000AB"}, Code.NOT_FOUND, "There is no run"),
        ({"capabilities_json": "{"}, Code.INVALID_ARGUMENT, "capabilities_json: is not valid JSON"),
        ({"capabilities_json": "[]"}, Code.INVALID_ARGUMENT, "must be a JSON object"),
        (
            {"capabilities_json": '{"max_agents": "four"}'},
            Code.INVALID_ARGUMENT,
            "max_agents: must be a non-negative integer",
        ),
        ({"capabilities_json": '{"requires_gpu": 1}'}, Code.INVALID_ARGUMENT, "requires_gpu: must be true or false"),
        ({"capabilities_json": '{"x": "' + "x" * 70_000 + '"}'}, Code.INVALID_ARGUMENT, "is longer than 65536 bytes"),
    ],
    ids=lambda value: str(value)[:40],
)
def test_an_invalid_registration_is_refused_with_a_sentence(lab, finished, changes, code, sentence):
    with pytest.raises(grpc.RpcError) as refusal:
        register(lab, finished, **changes)

    assert refusal.value.code() is code
    assert sentence in refusal.value.details()
    assert lab.client.get_run(finished.run_id).capabilities["worker_type"] == "toy"


def test_the_nonce_of_one_run_does_not_register_another(lab, finished):
    other = lab.submit(steps=3)
    lab.wait_until_over(other)

    with pytest.raises(grpc.RpcError) as refusal:
        register(lab, finished, run_id=other.run_id)

    assert refusal.value.code() is Code.PERMISSION_DENIED


@pytest.fixture(scope="module")
def finished(lab):
    run = lab.submit(steps=3)
    lab.wait_until_over(run)
    return run
