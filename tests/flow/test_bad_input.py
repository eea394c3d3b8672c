"""Bad input gets a clear message or is kept as a reject; nothing is lost and the daemon stays up."""

import json
import socket
import sqlite3
import subprocess
import sys

import grpc
import pytest
from lab import wait_until

from mosaic.client import TrainerClient
from mosaic.daemon.settings import Settings
from mosaic.model.durable import read_json
from mosaic.model.errors import BadConfig, MosaicError, UnknownRun
from mosaic.model.rundir import StateRoot
from mosaic.model.states import RunState
from mosaic.wire import mosaic_pb2 as pb
from mosaic.wire.mosaic_pb2_grpc import TrainerServiceStub

S = RunState
OWNER_CALLS = [
    ("SubmitRun", pb.SubmitRunRequest(config_json="{}")),
    ("CancelRun", pb.RunRequest(run_id="01")),
    ("DeleteRun", pb.RunRequest(run_id="01")),
    ("GetRun", pb.RunRequest(run_id="01")),
    ("ListRuns", pb.ListRunsRequest()),
    ("WatchRuns", pb.WatchRunsRequest()),
    ("StreamRunSteps", pb.StreamRequest(run_id="01")),
    ("StreamRunEpisodes", pb.StreamRequest(run_id="01")),
    ("StreamRunEvents", pb.StreamRequest(run_id="01")),
    ("StreamRunLogs", pb.StreamLogsRequest(run_id="01")),
    ("QueryCurve", pb.QueryCurveRequest(run_id="01")),
    ("GetHealth", pb.GetHealthRequest()),
    ("Shutdown", pb.ShutdownRequest()),
]
SESSION_CALLS = [
    ("Heartbeat", lambda run_id: pb.HeartbeatRequest(run_id=run_id)),
    ("PublishTelemetry", lambda run_id: pb.PublishTelemetryRequest(run_id=run_id)),
]


def call(lab, method, request, token=None):
    """The status of one call with exactly this token."""
    address = read_json(lab.root.address)["addresses"][0]
    metadata = [("authorization", f"Bearer {token}")] if token is not None else []
    with grpc.insecure_channel(address) as channel:
        reply = getattr(TrainerServiceStub(channel), method)
        try:
            result = reply(iter([request]) if method == "PublishTelemetry" else request, metadata=metadata, timeout=10)
            list(result) if hasattr(result, "__iter__") else result
        except grpc.RpcError as error:
            return error.code()
    return None


def session_of(lab, run):
    """The session that a tailer gets for its nonce."""
    launch = read_json(lab.rundir(run).launch)
    with grpc.insecure_channel(read_json(lab.root.address)["addresses"][0]) as channel:
        request = pb.RegisterWorkerRequest(run_id=run.run_id, attempt=launch["attempt"], nonce=launch["nonce"])
        return TrainerServiceStub(channel).RegisterWorker(request).session_token


def daemon(*arguments):
    command = [sys.executable, "-m", "mosaic.daemon.server", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=60)


def test_every_call_without_the_owners_token_is_refused(shared_lab):
    for token in (None, "", "wrong"):
        for method, request in OWNER_CALLS:
            assert call(shared_lab, method, request, token) is grpc.StatusCode.UNAUTHENTICATED, method


def test_a_session_token_opens_its_own_run_and_nothing_else(shared_lab):
    mine, other = shared_lab.submit(steps=5), shared_lab.submit(steps=5)
    shared_lab.wait_until_over(mine)
    shared_lab.wait_until_over(other)
    token = session_of(shared_lab, mine)

    for method, request in OWNER_CALLS:
        assert call(shared_lab, method, request, token) is grpc.StatusCode.UNAUTHENTICATED, method
    for method, request in SESSION_CALLS:
        assert call(shared_lab, method, request(other.run_id), token) is grpc.StatusCode.PERMISSION_DENIED, method
        assert call(shared_lab, method, request(mine.run_id), "wrong") is grpc.StatusCode.UNAUTHENTICATED, method
    assert call(shared_lab, "Heartbeat", pb.HeartbeatRequest(run_id=mine.run_id), token) is None


def test_a_wrong_nonce_does_not_register(shared_lab):
    run = shared_lab.submit(steps=5)
    shared_lab.wait_until_over(run)

    for nonce in ("", "wrong"):
        request = pb.RegisterWorkerRequest(run_id=run.run_id, attempt=1, nonce=nonce)
        assert call(shared_lab, "RegisterWorker", request) is grpc.StatusCode.PERMISSION_DENIED


def test_a_publish_that_does_not_start_where_the_store_ends_is_refused(shared_lab):
    run = shared_lab.submit(steps=5)
    shared_lab.wait_until_over(run)
    request = pb.PublishTelemetryRequest(run_id=run.run_id, start=1, end=2)

    assert (
        call(shared_lab, "PublishTelemetry", request, session_of(shared_lab, run))
        is grpc.StatusCode.FAILED_PRECONDITION
    )


@pytest.mark.parametrize(
    ("config", "field"),
    [
        ("{", "config"),
        ("[]", "config"),
        ({}, "metadata.worker"),
        ({"metadata": {"worker": {"module": "no_such_worker.cli"}}}, "metadata.worker.module"),
        ({"metadata": {"run_id": "x", "worker": {"module": "toy_worker.cli"}}}, "metadata.run_id"),
        (
            {"metadata": {"worker": {"module": "toy_worker.cli", "environment": {"LD_PRELOAD": "x"}}}},
            "metadata.worker.environment",
        ),
    ],
)
def test_a_bad_config_names_the_field_and_writes_nothing(shared_lab, config, field):
    before = _files(shared_lab), shared_lab.client.list_runs().total

    with pytest.raises(MosaicError, match=field.replace(".", r"\.")):
        shared_lab.client.submit_run(config if isinstance(config, str) else json.dumps(config))

    assert (_files(shared_lab), shared_lab.client.list_runs().total) == before


def _files(lab):
    """Configs and folders of runs. The daemon writes its registry and its reserve of disk space whenever it likes."""
    return {path for path in lab.root.trainer.glob("*/*") if path.parent.name != "reserve"}


def test_a_used_run_id_is_refused(shared_lab):
    run = shared_lab.submit(steps=1)

    with pytest.raises(BadConfig, match="run_id"):
        shared_lab.client.submit_run({"metadata": {"run_id": run.run_id, "worker": {"module": "toy_worker.cli"}}})
    shared_lab.wait_until_over(run)


def test_one_idempotency_key_is_one_run_and_no_key_is_a_new_one(shared_lab):
    config = {"metadata": {"worker": {"module": "toy_worker.cli", "config": {"steps": 1}}}}

    first, again = shared_lab.client.submit_run(config, "key"), shared_lab.client.submit_run(config, "key")
    other = shared_lab.client.submit_run(config)

    assert first.run_id == again.run_id != other.run_id
    for run in (first, other):
        shared_lab.wait_until_over(run)


def test_an_unknown_run_is_reported_as_unknown(shared_lab):
    with pytest.raises(UnknownRun, match="01NOSUCHRUN"):
        shared_lab.client.get_run("01NOSUCHRUN")


def test_garbage_on_stdout_is_kept_as_text_or_reject_and_the_events_around_it_are_stored(shared_lab):
    run = shared_lab.submit(steps=200, garbage_every=7)

    end = shared_lab.wait_until_over(run)

    assert end.state is S.TERMINATED
    assert [step["step_index"] for step in shared_lab.events(run, "step")] == list(range(200))
    assert b"\xff" in shared_lab.text(run)
    assert shared_lab.rejects(run)
    assert all(reject.problem for reject in shared_lab.rejects(run))


def test_a_line_of_ten_megabytes_is_a_reject_and_the_rest_is_stored(shared_lab):
    run = shared_lab.submit(steps=50, long_line_bytes=10_000_000)

    end = shared_lab.wait_until_over(run)

    assert end.state is S.TERMINATED
    assert end.summary.steps == 50
    (reject,) = [reject for reject in shared_lab.rejects(run) if reject.length > 8 << 20]
    assert reject.text


def test_half_a_line_is_a_reject(shared_lab):
    run = shared_lab.submit(steps=50, half_line_then_kill=25)

    end = shared_lab.wait_until_over(run)

    assert end.state is S.FAULTED
    assert any("cut" in reject.problem for reject in shared_lab.rejects(run))


def test_a_second_daemon_exits_and_the_first_keeps_serving(lab):
    result = daemon("--root", lab.root.path)

    assert result.returncode == 3
    assert "already serves" in result.stderr
    assert lab.client.health().healthy


def test_a_port_in_use_is_reported_in_one_sentence(home):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()

        result = daemon("--root", home, "--tcp", f"127.0.0.1:{taken.getsockname()[1]}")

    assert result.returncode == 1
    assert "cannot be bound" in result.stderr
    assert "Traceback" not in result.stderr


def test_a_port_that_the_daemon_chose_itself_may_be_taken_by_another_program(home):
    root = StateRoot(home)
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        root.make()
        Settings(tcp=address, tcp_is_automatic=True).save(root)

        with TrainerClient.connect(root) as client:
            # The daemon answers on its Unix socket before it has found another port.
            wait_until(lambda: Settings.load(root).tcp != address, words="another address")
            client.shutdown()

    assert Settings.load(root).tcp.startswith("127.0.0.1:")
    assert Settings.load(root).tcp_is_automatic


def test_an_address_that_is_not_loopback_is_refused(home):
    result = daemon("--root", home, "--tcp", "0.0.0.0:50055")

    assert result.returncode == 1
    assert "not a loopback address" in result.stderr


def test_a_newer_registry_is_refused_and_not_changed(lab):
    lab.stop_daemon()
    with sqlite3.connect(lab.root.registry) as db:
        db.execute("PRAGMA user_version = 999")

    result = daemon("--root", lab.root.path)

    assert result.returncode == 1
    assert "schema 999" in result.stderr


def test_a_root_of_another_machine_is_refused(lab):
    lab.stop_daemon()
    lab.root.machine_id.write_text("another machine\n")

    result = daemon("--root", lab.root.path)

    assert result.returncode == 1
    assert "MOSAIC_HOME" in result.stderr


def test_a_token_that_other_users_can_read_is_refused(lab):
    lab.stop_daemon()
    lab.root.token.chmod(0o644)

    result = daemon("--root", lab.root.path)

    assert result.returncode == 1
    assert "can be read by other users" in result.stderr


def test_files_that_matter_are_private(lab):
    run = lab.submit(steps=1)
    lab.wait_until_over(run)

    private = [lab.root.token, lab.root.registry, lab.rundir(run).launch, lab.root.config_file(run.run_id)]
    assert {path.stat().st_mode & 0o077 for path in private} == {0}
    assert lab.root.path.stat().st_mode & 0o777 == 0o700
    assert lab.rundir(run).path.stat().st_mode & 0o777 == 0o700


def test_a_stale_socket_and_pid_file_do_not_matter(lab):
    lab.kill_daemon()
    assert lab.root.pid.exists()

    with TrainerClient.connect(lab.root) as client:
        assert client.health().healthy
