"""Access control: tokens, modes, paths, symbolic links, arguments."""

import concurrent.futures
import contextlib
import itertools
import json
import os
import socket
import stat
from pathlib import Path

import grpc
import pytest
from lab import Lab, wait_until
from raw_client import HEALTH, METHODS, owner_token, raw_client_of, session_of

from mosaic.daemon.admission import DRIVER_METHODS, RUN_METHODS
from mosaic.daemon.auth import Tokens
from mosaic.model.durable import read_json
from mosaic.model.errors import BadConfig
from mosaic.model.states import RunState
from mosaic.model.ulid import new_ulid
from mosaic.wire import mosaic_pb2 as pb

S = RunState
Code = grpc.StatusCode
TOY = {"module": "toy_worker.cli", "config": {"steps": 1}}

# Every call must be listed here: a new one is added together with the decision who may make it.
OWNERS = {
    *("SubmitRun", "CancelRun", "CommandRun", "DeleteRun", "GetRun", "ListRuns", "WatchRuns"),
    "EditRun",
    *(
        "StreamRunSteps",
        "StreamRunEpisodes",
        "StreamRunEvents",
        "StreamRunLogs",
        "StreamFrames",
        "QueryCurve",
        "GetHealth",
    ),
    *("ImportRun", "Shutdown"),
    *("SubmitRuns", "PutExperiment", "GetExperiment", "ListExperiments", "DeleteExperiment"),
}
DRIVERS = {"SubmitRun", "CancelRun", "GetRun", "WatchRuns", "QueryCurve"}  # about the runs of its experiment
TAILERS = {"RegisterWorker", "Heartbeat", "PublishTelemetry", "LinkNode", "TakeLaunch", "ReportRun", "PutFile"}
RUN_CALLS = {
    **dict.fromkeys(("GetRun", "CancelRun", "DeleteRun"), pb.RunRequest),
    **dict.fromkeys(("StreamRunSteps", "StreamRunEpisodes", "StreamRunEvents"), pb.StreamRequest),
    "CommandRun": pb.CommandRunRequest,
    "StreamRunLogs": pb.StreamLogsRequest,
    "StreamFrames": pb.StreamFramesRequest,
    "QueryCurve": pb.QueryCurveRequest,
    "RegisterWorker": pb.RegisterWorkerRequest,
    "Heartbeat": pb.HeartbeatRequest,
    "PublishTelemetry": pb.PublishTelemetryRequest,
}
OUTSIDE = (
    *("../x", "../../registry.db", "/etc/passwd", "..", ".", "a/../../b", "x\0y", "ｅｖｉｌ/..", "0" * 5_000, "%", "~"),
)
PATH_FIELDS = ("run_id", "worker_id", "variant", "script", "module", "tensorboard_dir", "policy_path")
# Paths that are inside the folder, or only read and existing.
HARMLESS = {
    *(("tensorboard_dir", path) for path in (".", "ｅｖｉｌ/..", "0" * 5_000, "%")),
    *(("policy_path", path) for path in ("/etc/passwd", "~")),
    ("script", "/etc/passwd"),
}
OF_HOLDER = ("launch.json", "owner.lock", "tail.lock", "started.json", "exit.json", "holder.log", "tailer.log")
PLACES = (
    *("logs/worker.stdout.log", "logs/worker.stderr.log", "telemetry.sqlite", "provenance.json"),
    *OF_HOLDER,
)
VARIABLES = [
    *[(name, "x") for name in ("LD_PRELOAD", "CUDA_VISIBLE_DEVICES", "MOSAIC_RUN_ID", "MOSAIC_HOME", "MOSAIC_X")],
    *[(name, "x") for name in ("A=B", "A\nB", "A\0B", "", " LD_PRELOAD", "LD_PRELOAD ", "LD_PRELOAD\n", "Ａ", "1A")],
    *[("A", value) for value in ("a\0b", "x" * (128 << 10), 5, None, ["x"], True)],
]
PRINT_ARGUMENTS = """
import json, os, sys
print(json.dumps([sys.argv[1:], {name: os.environ[name] for name in ("A", "B", "ld_preload")}]))
"""


@contextlib.contextmanager
def mask(value):
    old = os.umask(value)
    try:
        yield
    finally:
        os.umask(old)


@pytest.fixture
def waiting(make_lab):
    """Runs that are submitted and cannot start before `go` waits for one."""
    lab = make_lab("--max-runs", "1")
    first = lab.submit(steps=1_000_000, rate=10)
    lab.wait_for(first, S.EXECUTING)

    def go(run):
        lab.client.cancel_run(first.run_id)
        return lab.wait_until_over(run)

    return lab, lambda: lab.submit(steps=3), go


# ---- tokens


def test_every_call_of_the_contract_has_an_access_rule():
    assert METHODS.keys() == OWNERS | TAILERS
    assert RUN_METHODS == TAILERS
    assert DRIVER_METHODS == DRIVERS


@pytest.mark.parametrize("number", [0, 1], ids=["unix", "tcp"])
def test_no_address_answers_without_the_right_token(make_lab, number):
    lab = make_lab("--tcp", "127.0.0.1:0")
    token = owner_token(lab)
    keys = (None, "", "wrong", token[:-1], f"{token} ", f" {token}", token.swapcase(), f"{token}, {token}")

    with raw_client_of(lab, number) as client:
        for method in (*sorted(OWNERS), *HEALTH, "/grpc.health.v1.Health/List", "/mosaic.v1.TrainerService/NoSuchCall"):
            for key in keys:
                code = client.call(method, b"", key).code
                assert code is Code.UNAUTHENTICATED or (code is Code.UNIMPLEMENTED and "NoSuch" in method), method
        assert client.call("GetHealth", b"", token).code is Code.OK
        assert client.call(HEALTH[0], b"", token).reply == b"\x08\x01"  # SERVING


def test_a_token_counts_only_in_its_header(lab):
    token = owner_token(lab)
    wrong_places = [
        [("authorization", token)],
        [("authorization", f"Basic {token}")],
        [("authorization-bin", f"Bearer {token}".encode())],
        [("token", token)],
        [("authorization", "Bearer wrong"), ("authorization", f"Bearer {token}")],
    ]

    with raw_client_of(lab) as client:
        for headers in wrong_places:
            assert client.call_with("GetHealth", b"", headers).code is Code.UNAUTHENTICATED, headers


def test_a_message_is_not_parsed_before_the_token_is_checked(lab):
    with raw_client_of(lab) as client:
        assert client.call("SubmitRun", b"\xff\xff", "wrong").code is Code.UNAUTHENTICATED
        assert client.call("SubmitRun", b"\xff\xff", owner_token(lab)).code is Code.INVALID_ARGUMENT


def test_a_session_token_grants_no_stream_and_no_health_not_even_of_its_own_run(lab):
    run = lab.submit(steps=3)
    lab.wait_until_over(run)
    token = session_of(lab, run).session_token

    with raw_client_of(lab) as client:
        for method in OWNERS:
            request = RUN_CALLS[method](run_id=run.run_id) if method in RUN_CALLS else b""
            assert client.call(method, request, token).code is Code.UNAUTHENTICATED, method
        for method in HEALTH:
            assert client.call(method, b"", token).code is Code.UNAUTHENTICATED


def test_the_token_and_the_nonce_of_another_attempt_are_refused(lab):
    run = lab.submit(steps=3)
    lab.wait_until_over(run)
    mine = session_of(lab, run).session_token
    next_ones = Tokens.load(lab.root).session(run.run_id, 2)
    nonce = json.loads(lab.rundir(run).launch.read_text())["nonce"]

    with raw_client_of(lab) as client:
        for method in ("Heartbeat", "PublishTelemetry"):
            request = RUN_CALLS[method](run_id=run.run_id)
            assert client.call(method, request, next_ones, run.run_id).code is Code.PERMISSION_DENIED
            assert client.call(method, request, next_ones).code is Code.UNAUTHENTICATED
        for attempt in (0, 2, 2**32 - 1):
            request = pb.RegisterWorkerRequest(run_id=run.run_id, attempt=attempt, nonce=nonce)
            assert client.call("RegisterWorker", request).code is Code.PERMISSION_DENIED
        assert client.call("Heartbeat", pb.HeartbeatRequest(run_id=run.run_id), mine, run.run_id).code is Code.OK


def test_the_token_of_a_deleted_run_is_invalid(lab):
    run = lab.submit(steps=3)
    lab.wait_until_over(run)
    token = session_of(lab, run).session_token

    lab.client.delete_run(run.run_id)

    with raw_client_of(lab) as client:
        assert (
            client.call("Heartbeat", pb.HeartbeatRequest(run_id=run.run_id), token, run.run_id).code is Code.NOT_FOUND
        )


def test_a_session_token_outlives_the_daemon_and_a_new_owner_token_invalidates_it(lab):
    run = lab.submit(steps=1_000_000, rate=10)
    lab.wait_for(run, S.EXECUTING)
    token = session_of(lab, run).session_token

    lab.kill_daemon()
    lab.restart_daemon()
    with raw_client_of(lab) as client:
        assert client.call("Heartbeat", pb.HeartbeatRequest(run_id=run.run_id), token).code is Code.OK
    lab.kill_daemon()
    lab.root.token.unlink()
    lab.restart_daemon()
    session_of(lab, run)

    with raw_client_of(lab) as client:
        request = pb.HeartbeatRequest(run_id=run.run_id)
        assert client.call("Heartbeat", request, token, run.run_id).code is Code.PERMISSION_DENIED


@pytest.mark.parametrize("proof", ["no token", "wrong token", "session of another run"])
def test_a_caller_on_tcp_without_a_right_does_not_make_the_daemon_hold_its_messages(make_lab, proof):
    lab = make_lab("--tcp", "127.0.0.1:0")
    run = lab.submit(steps=3)
    lab.wait_until_over(run)
    headers = {
        "no token": [],
        "wrong token": [("authorization", "Bearer wrong"), ("mosaic-run-id", run.run_id)],
        "session of another run": [
            ("authorization", f"Bearer {session_of(lab, run).session_token}"),
            ("mosaic-run-id", new_ulid()),
        ],
    }[proof]
    before, message = peak_mb(lab), b"x" * (12 << 20)

    with raw_client_of(lab, 1) as client, concurrent.futures.ThreadPoolExecutor(8) as pool:
        answers = pool.map(lambda method: client.call_with(method, message, headers), [*TAILERS, "SubmitRun"] * 6)
        codes = {answer.code for answer in answers}

    assert codes <= {Code.UNAUTHENTICATED, Code.PERMISSION_DENIED, Code.NOT_FOUND}
    assert peak_mb(lab) - before < 10


def test_many_connections_with_unfinished_calls_on_tcp_leave_the_unix_socket_usable(make_lab):
    lab = make_lab("--tcp", "127.0.0.1:0")
    wait_until(lambda: len(read_json(lab.root.address)["addresses"]) > 1, words="its TCP address")
    host, _, port = read_json(lab.root.address)["addresses"][1].rpartition(":")
    before = peak_mb(lab)

    with contextlib.ExitStack() as stack:
        for _ in range(600):
            stack.enter_context(socket.create_connection((host, int(port)), timeout=10)).sendall(unfinished_call())
        assert lab.client.health().healthy
        descriptors = len(os.listdir(f"/proc/{lab.daemon_pid()}/fd"))

    assert descriptors < 350
    assert peak_mb(lab) - before < 50


def test_a_worker_of_an_older_mosaic_calls_heartbeat_on_tcp_without_its_runs_id(make_lab):
    lab = make_lab("--tcp", "127.0.0.1:0")
    run = lab.submit(steps=1_000_000, rate=10)
    lab.wait_for(run, S.EXECUTING)
    token = session_of(lab, run).session_token

    with raw_client_of(lab, 1) as client:
        assert client.call("Heartbeat", pb.HeartbeatRequest(run_id=run.run_id), token).code is Code.OK
        other = pb.HeartbeatRequest(run_id=new_ulid())
        assert client.call("Heartbeat", other, token).code is Code.NOT_FOUND


def test_a_heartbeat_call_with_a_negative_count_is_refused_with_a_sentence(lab):
    run = lab.submit(steps=3)
    lab.wait_until_over(run)
    token = session_of(lab, run).session_token

    with raw_client_of(lab) as client:
        answer = client.call("Heartbeat", pb.HeartbeatRequest(run_id=run.run_id, progress=-1), token, run.run_id)

    assert answer.code is Code.INVALID_ARGUMENT
    assert answer.details == "progress: is -1; it counts from 0."


# ---- modes


@pytest.mark.parametrize("umask", [0o000, 0o022, 0o077], ids=["000", "022", "077"])
def test_only_the_owner_may_read_what_mosaic_creates_and_a_worker_keeps_the_users_umask(home, script, umask):
    with mask(umask):
        lab = Lab(home, ("--tcp", "127.0.0.1:0"))
    try:
        runs = [
            lab.submit(steps=20, text_every=5, stderr_lines=2),
            lab.submit(steps=20, crash_at=3),
            lab.submit_worker({"script": script("train.sh", "#!/bin/sh\necho hello\n: > mine\n")}),
            lab.submit_worker({"script": script("none.sh", "#!/no/such/interpreter\n")}),
            lab.submit_worker({**TOY, "config": {"steps": 1, "extras": {"mode": "policy_eval"}}}),
            lab.submit(steps=1_000_000, rate=10),
        ]
        lab.wait_for(runs[-1], S.EXECUTING)
        for run in runs[:-1]:
            lab.wait_until_over(run)

        mine = lab.rundir(runs[2]).path / "mine"
        theirs = {mine, *home.rglob("analytics.json")}  # written by a worker
        modes = {path: stat.S_IMODE(path.lstat().st_mode) for path in (home, *home.rglob("*")) if path not in theirs}

        assert {path: oct(mode) for path, mode in modes.items() if mode & 0o077} == {}
        assert modes[lab.root.socket.parent] == 0o700
        assert lab.root.socket.is_socket()
        assert stat.S_IMODE(mine.stat().st_mode) == 0o666 & ~umask
    finally:
        lab.close()


def test_a_root_that_other_users_could_enter_is_made_private(home):
    home.chmod(0o755)
    lab = Lab(home)
    lab.close()

    assert stat.S_IMODE(home.stat().st_mode) == 0o700


# ---- paths


def test_a_run_id_in_a_call_never_becomes_a_path(lab):
    run = lab.submit(steps=1)
    lab.wait_until_over(run)
    before = listing(lab.root.path)

    with raw_client_of(lab) as client:
        for method, request in RUN_CALLS.items():
            for run_id in (*OUTSIDE, f"{run.run_id}/../{run.run_id}", f"{run.run_id}\0", f"{run.run_id}/", ""):
                answer = client.call(method, request(run_id=run_id), owner_token(lab))
                assert answer.code is Code.NOT_FOUND, (method, run_id, answer)

    assert listing(lab.root.path) == before


def test_no_field_of_a_config_leads_out_of_the_runs_folder(lab):
    with raw_client_of(lab) as client:
        for field, evil in itertools.product(PATH_FIELDS, OUTSIDE):
            request = pb.SubmitRunRequest(config_json=json.dumps(config_with(field, evil)))
            answer = client.call("SubmitRun", request, owner_token(lab))
            if (field, evil) not in HARMLESS:
                assert answer.code is Code.INVALID_ARGUMENT, (field, evil, answer)
                assert field in answer.details or "module" in answer.details

    assert lab.client.list_runs().total == len(HARMLESS)


def test_an_existing_folder_in_place_of_the_runs_folder_is_left_alone(lab, tmp_path):
    run_id = new_ulid()
    (lab.root.area("runs") / run_id).symlink_to(tmp_path)

    with pytest.raises(Exception, match="already exists"):
        lab.client.submit_run({"metadata": {"run_id": run_id, "worker": TOY}})

    assert list(tmp_path.iterdir()) == []


def test_deleting_a_run_whose_folder_became_a_link_does_not_follow_it(lab, tmp_path):
    run = lab.submit(steps=3)
    lab.wait_until_over(run)
    moved = tmp_path / "moved"
    lab.rundir(run).path.rename(moved)
    lab.rundir(run).path.symlink_to(moved)

    lab.client.delete_run(run.run_id)

    assert (moved / "telemetry.sqlite").exists()
    assert lab.client.list_runs().total == 0


def test_deleting_a_run_does_not_follow_a_link_inside_its_folder(lab, tmp_path):
    (tmp_path / "precious").write_text("precious")
    run = lab.submit(steps=3)
    lab.wait_until_over(run)
    (lab.rundir(run).checkpoints / "link").symlink_to(tmp_path)

    lab.client.delete_run(run.run_id)

    assert (tmp_path / "precious").read_text() == "precious"
    assert not lab.rundir(run).path.exists()


@pytest.mark.parametrize("target", ["precious", "missing"])
def test_a_link_planted_in_a_run_folder_is_never_written_through(waiting, tmp_path, target):
    lab, submit, go = waiting
    (tmp_path / "precious").write_text("precious")
    runs = {place: submit() for place in PLACES}
    for place, run in runs.items():
        folder = lab.rundir(run).control if place in OF_HOLDER else lab.rundir(run).path
        (folder / place).symlink_to(tmp_path / target)

    ends = {place: go(run) for place, run in runs.items()}

    assert (tmp_path / "precious").read_text() == "precious"
    assert not (tmp_path / "missing").exists()
    assert {end.state for end in ends.values()} == {S.FAULTED}
    assert [place for place, end in ends.items() if f"{place} is a symbolic link" not in end.reason] == []
    assert lab.client.health().healthy


def test_a_link_planted_at_a_config_file_is_replaced(waiting, tmp_path):
    lab, submit, go = waiting
    run = submit()
    (tmp_path / "precious").write_text("precious")
    lab.root.worker_file(run.run_id).symlink_to(tmp_path / "precious")

    end = go(run)

    assert end.state is S.TERMINATED
    assert (tmp_path / "precious").read_text() == "precious"
    assert not lab.root.worker_file(run.run_id).is_symlink()


# ---- arguments and environment


def test_arguments_and_environment_arrive_unchanged_and_are_not_interpreted(lab, script, tmp_path):
    path, bait = script("arguments.py", PRINT_ARGUMENTS), tmp_path / "bait"
    arguments = [f"$(touch {bait})", f"; touch {bait}", "two\nlines", "", "-c", "--config=/x", "'\"\\", "é\u2028"]
    environment = {"A": f"x\nMOSAIC_RUN_ID=stolen\nLD_PRELOAD={bait}", "B": "a=b=c", "ld_preload": "harmless"}

    run = lab.submit_worker({"script": path, "arguments": arguments, "environment": environment})
    end = lab.wait_until_over(run)

    assert (end.state, end.reason) == (S.TERMINATED, "")
    assert json.loads(lab.text(run)) == [arguments, environment]
    assert not bait.exists()


def test_a_variable_that_would_affect_other_processes_is_refused(lab):
    for name, value in VARIABLES:
        with pytest.raises(BadConfig, match=r"^metadata\.worker\.environment"):
            lab.client.submit_run({"metadata": {"worker": {**TOY, "environment": {name: value}}}})

    assert lab.client.list_runs().total == 0


def test_more_arguments_than_the_kernel_accepts_are_a_fault_with_that_reason(lab):
    end = lab.wait_until_over(lab.submit_worker({**TOY, "arguments": ["x" * 100_000] * 30}))

    assert end.state is S.FAULTED
    assert "Argument list too long" in end.reason


def peak_mb(lab):
    """The most memory that the daemon has had."""
    status = Path(f"/proc/{lab.daemon_pid()}/status").read_text()
    return int(status.split("VmHWM:")[1].split()[0]) // 1024


def unfinished_call():
    """HTTP/2 as far as the first bytes of a message of 60 MiB."""

    def frame(kind, flags, stream, payload):
        return len(payload).to_bytes(3, "big") + bytes([kind, flags]) + stream.to_bytes(4, "big") + payload

    def header(name, value):
        return b"".join([b"\0", *(bytes([len(text)]) + text.encode() for text in (name, value))])

    headers = {":method": "POST", ":scheme": "http", ":path": "/mosaic.v1.TrainerService/SubmitRun", ":authority": "x"}
    headers |= {"te": "trailers", "content-type": "application/grpc"}
    block = b"".join(header(name, value) for name, value in headers.items())
    start = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + frame(4, 0, 0, b"")
    data = b"\0" + (60 << 20).to_bytes(4, "big") + bytes(1_000)
    return start + frame(1, 4, 1, block) + frame(0, 0, 1, data)


def listing(folder):
    """All files below, except those that a live daemon keeps writing."""
    return {path for path in folder.rglob("*") if not path.name.endswith(("-wal", "-shm"))}


def config_with(field, value):
    worker = dict(TOY)
    metadata = {"worker": worker}
    if field == "run_id":
        metadata["run_id"] = value
    elif field in ("tensorboard_dir", "policy_path"):
        # A module without a schema: the toy worker's schema would refuse the key before the path is checked.
        metadata["worker"] = {"module": "rich.palette", "config": {field: value}}
    elif field == "script":
        metadata["worker"] = {"script": value}
    else:
        worker[field] = value
    return {"metadata": metadata}
