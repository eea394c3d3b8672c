"""Errors, endpoints, runs and events, from the wire to the caller."""

import json
import os
import threading
from pathlib import Path

import grpc
import numpy as np
import pytest
from oddities import plant

from mosaic.cli.main import build_parser
from mosaic.client import starting
from mosaic.client.asynchronous import config_text
from mosaic.client.endpoint import endpoint_elsewhere, find_endpoint
from mosaic.client.events import Curve, event_from_wire, log_from_wire
from mosaic.client.joined import join
from mosaic.client.remote import Tunnel, forward_command, parse_remote, read_command
from mosaic.client.run import Run
from mosaic.client.status import error_from
from mosaic.client.synchronous import LoopThread, TrainerClient
from mosaic.model import errors
from mosaic.model.daemon_address import encode
from mosaic.model.durable import write_json
from mosaic.model.host import why_bad_host
from mosaic.model.rundir import StateRoot
from mosaic.model.states import RunState
from mosaic.wire import mosaic_pb2 as pb

CODES = grpc.StatusCode
BAD_HOSTS = (
    "-oProxyCommand=touch bait",
    "me@-oX",
    "-me@box",
    "",
    "me@",
    ":/path",
    "me@bo x",
    "box\n",
    "box\x1b[2J",
    "$(touch)@b",
)


@pytest.fixture
def root(tmp_path, monkeypatch):
    for name in ("MOSAIC_ADDRESS", "MOSAIC_TOKEN_FILE", "MOSAIC_RUN_ID"):
        monkeypatch.delenv(name, raising=False)
    root = StateRoot(tmp_path / "home")
    root.make()
    return root


def failure(code, details):
    return grpc.aio.AioRpcError(code, grpc.aio.Metadata(), grpc.aio.Metadata(), details)


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        (CODES.NOT_FOUND, errors.UnknownRun),
        (CODES.INVALID_ARGUMENT, errors.BadConfig),
        (CODES.FAILED_PRECONDITION, errors.RunIsLive),
        (CODES.UNAUTHENTICATED, errors.NotAllowed),
        (CODES.PERMISSION_DENIED, errors.NotAllowed),
        (CODES.RESOURCE_EXHAUSTED, errors.StoreUnavailable),
        (CODES.INTERNAL, errors.StoreFailed),
    ],
)
def test_a_status_becomes_a_mosaic_error_with_the_daemons_message(code, kind):
    error = error_from(failure(code, "metadata.worker: is missing."), "unix:/x")

    assert type(error) is kind
    assert str(error) == "metadata.worker: is missing."


def test_a_bad_config_names_its_field():
    error = error_from(failure(CODES.INVALID_ARGUMENT, "metadata.worker: is missing."), "unix:/x")

    assert error.field == "metadata.worker"


@pytest.mark.parametrize("code", [CODES.UNAVAILABLE, CODES.DEADLINE_EXCEEDED])
def test_a_daemon_that_does_not_answer_is_named_with_what_to_do(code):
    error = error_from(failure(code, "failed to connect to all addresses; last error: UNKNOWN"), "unix:/x")

    assert type(error) is errors.NoDaemon
    assert "unix:/x" in str(error)
    assert "mosaic d" in str(error)
    assert "last error" not in str(error)


def test_the_endpoint_is_what_the_daemon_wrote_to_its_state_folder(root):
    write_json(root.address, encode(root, ["unix:/there/daemon.sock", "127.0.0.1:1"], "1.2"))
    root.token.write_text("secret\n")

    found = find_endpoint(root)

    assert (found.target, found.token, found.version) == ("unix:/there/daemon.sock", "secret", "1.2")
    assert "secret" not in repr(found)


def test_without_a_daemon_there_is_no_endpoint(root):
    assert find_endpoint(root) is None


def test_the_environment_names_another_daemon(root, monkeypatch, tmp_path):
    (tmp_path / "token").write_text("other")
    monkeypatch.setenv("MOSAIC_ADDRESS", "127.0.0.1:50055")
    monkeypatch.setenv("MOSAIC_TOKEN_FILE", str(tmp_path / "token"))

    found = endpoint_elsewhere(root)

    assert (found.target, found.token) == ("127.0.0.1:50055", "other")


def test_a_token_file_that_does_not_exist_is_named(root, monkeypatch):
    monkeypatch.setenv("MOSAIC_TOKEN_FILE", "/nowhere/token")

    with pytest.raises(errors.NotAllowed, match="/nowhere/token"):
        find_endpoint(root)


def test_a_daemon_elsewhere_is_never_started(root, monkeypatch):
    root.token.write_text("x")
    monkeypatch.setenv("MOSAIC_ADDRESS", f"unix:{root.path}/absent.sock")

    with pytest.raises(errors.NoDaemon, match=r"absent\.sock"):
        TrainerClient.connect(root)

    assert not root.daemon_log.exists()


def test_inside_a_run_no_daemon_is_started(root, monkeypatch):
    monkeypatch.setenv("MOSAIC_RUN_ID", "01JCQ000000000000000000000")

    with pytest.raises(errors.NoDaemon):
        TrainerClient.connect(root)

    assert not root.daemon_log.exists()


def test_a_daemon_that_dies_while_starting_shows_the_end_of_its_log(root, monkeypatch):
    monkeypatch.setattr(starting, "command", lambda *_: ["sh", "-c", "echo the disk is on fire >&2; exit 7"])

    with pytest.raises(errors.NoDaemon, match=r"(?s)exit code 7.*the disk is on fire"):
        TrainerClient.connect(root)


@pytest.mark.timeout(10)
@pytest.mark.parametrize("oddity", ["fifo", "folder", "socket"])
def test_a_log_that_is_not_a_file_is_named_and_no_daemon_is_started(root, monkeypatch, oddity):
    monkeypatch.setattr(starting, "command", lambda *_: ["sh", "-c", f"touch {root.path}/started"])
    plant(root.daemon_log, oddity)

    with pytest.raises(errors.NoDaemon, match=r"trainer_daemon\.log cannot be opened .* Remove what is there\."):
        TrainerClient.connect(root)

    assert not (root.path / "started").exists()


@pytest.mark.timeout(10)
def test_a_log_that_becomes_a_fifo_does_not_stop_the_report_of_a_failed_start(root, monkeypatch):
    to_a_fifo = f"rm {root.daemon_log}; mkfifo {root.daemon_log}; exit 7"
    monkeypatch.setattr(starting, "command", lambda *_: ["sh", "-c", to_a_fifo])

    with pytest.raises(errors.NoDaemon, match="exit code 7"):
        TrainerClient.connect(root)


@pytest.mark.timeout(10)
def test_a_named_token_without_an_end_is_refused(root, monkeypatch):
    monkeypatch.setenv("MOSAIC_TOKEN_FILE", "/dev/zero")

    with pytest.raises(errors.NotAllowed, match="/dev/zero is not a token"):
        find_endpoint(root)


def test_a_daemon_that_found_another_one_is_not_a_failure(root, monkeypatch):
    monkeypatch.setattr(starting, "command", lambda *_: ["sh", "-c", "exit 3"])
    daemon = starting.StartedDaemon(root)
    daemon._process.wait()

    daemon.check()


def test_a_daemon_that_never_answers_is_an_error_after_the_timeout(root, monkeypatch):
    monkeypatch.setattr(starting, "command", lambda *_: ["sh", "-c", "exit 3"])
    monkeypatch.setattr(starting, "ANSWER_WITHIN_S", 0.05)

    with pytest.raises(errors.NoDaemon, match="did not answer"):
        TrainerClient.connect(root)


def test_a_failed_connect_leaves_no_thread_behind(root):
    before = threading.active_count()

    with pytest.raises(errors.NoDaemon):
        TrainerClient.connect(root, start=False)

    assert threading.active_count() == before


def test_a_config_may_be_a_mapping_text_or_a_file(tmp_path):
    file = tmp_path / "config.json"
    file.write_text('{"a": 1}')

    texts = [config_text(config) for config in ({"a": 1}, '{"a": 1}', file)]

    assert [json.loads(text) for text in texts] == [{"a": 1}] * 3


def test_paths_and_numpy_numbers_in_a_config_become_plain_values():
    config = {"path": Path("/a"), "seed": np.int64(3), "lr": np.float32(0.5), "sizes": (1, 2)}

    assert json.loads(config_text(config)) == {"path": "/a", "seed": 3, "lr": 0.5, "sizes": [1, 2]}


def test_a_config_with_another_object_is_an_error_that_names_it():
    with pytest.raises(errors.MosaicError, match=r"cannot be written as JSON: <.*> is not a JSON value\."):
        config_text({"a": object()})


def run_info(**fields):
    return pb.RunInfo(run_id="01JCQ000000000000000000000", state=pb.EXECUTING, created_at=1.0, **fields)


def test_progress_and_time_left_come_from_steps_and_rate():
    info = run_info(total_steps=1000, summary=pb.Summary(last_step=249, steps_per_s=50))

    run = Run.from_wire(info)

    assert run.progress == 0.25
    assert run.eta_s == 15.0


def test_without_a_number_of_steps_there_is_no_progress():
    run = Run.from_wire(run_info(summary=pb.Summary(last_step=249, steps_per_s=50)))

    assert (run.progress, run.eta_s) == (None, None)


def test_a_run_as_json_has_plain_states_and_its_history():
    info = run_info(history=[pb.Move(new=pb.INIT, at=1.0), pb.Move(old=pb.INIT, new=pb.FAULTED, at=2.0, reason="boom")])
    info.state, info.reason, info.config_json = pb.FAULTED, "boom", '{"metadata": {}}'

    plain = json.loads(json.dumps(Run.from_wire(info).to_dict()))

    assert (plain["state"], plain["reason"], plain["config"]) == ("FAULTED", "boom", {"metadata": {}})
    assert plain["history"][0] == {"old": None, "new": "INIT", "at": 1.0, "reason": ""}
    assert plain["history"][1]["old"] == "INIT"


@pytest.mark.parametrize("state", list(RunState))
def test_every_state_of_the_model_crosses_the_wire(state):
    assert Run.from_wire(pb.RunInfo(state=pb.State.Value(state.value))).state is state


def test_other_fields_of_a_step_are_beside_its_own():
    wire = pb.Event(seq=7, ts_ns=5, step=pb.Step(step_index=3, extra=b'{"action": 2, "type": "no", "loss": NaN}'))

    plain = event_from_wire(wire).to_dict()

    assert (plain["type"], plain["seq"], plain["step_index"], plain["action"]) == ("step", 7, 3, 2)
    assert plain["reward"] is None
    assert plain["loss"] != plain["loss"]


def test_a_metric_with_one_value_also_has_a_name():
    one = event_from_wire(pb.Event(seq=1, metric=pb.Metric(names=["loss"], values=[0.5], step=9))).to_dict()
    two = event_from_wire(pb.Event(seq=2, metric=pb.Metric(names=["a", "b"], values=[1, 2], step=9))).to_dict()

    assert (one["name"], one["value"], one["step"]) == ("loss", 0.5, 9)
    assert two["values"] == {"a": 1.0, "b": 2.0}
    assert "name" not in two


def test_lifecycle_and_episode_events_keep_their_payload():
    life = pb.Lifecycle(event="run_failed", payload=b'{"error": "x"}')
    episode = pb.Episode(episode_index=4, total_reward=2.5, steps=10, extra=b'{"seed": 1}')

    assert event_from_wire(pb.Event(seq=1, lifecycle=life)).to_dict()["payload"] == {"error": "x"}
    plain = event_from_wire(pb.Event(seq=2, episode=episode)).to_dict()
    assert (plain["episode_index"], plain["total_reward"], plain["steps"], plain["seed"]) == (4, 2.5, 10, 1)


def test_log_pieces_come_in_the_order_of_the_spool():
    batch = pb.LogBatch(
        texts=[pb.LogText(offset=0, text=b"a\n"), pb.LogText(offset=50, text=b"b\n")],
        rejects=[pb.Reject(offset=10, length=30, reason="no step_index", head=b'{"type"')],
        gaps=[pb.Gap(offset=60, length=5, reason="the spool shrank")],
    )

    pieces = log_from_wire(batch)

    assert [piece.offset for piece in pieces] == [0, 10, 50, 60]
    assert pieces[1].problem == "rejected: no step_index"
    assert pieces[1].end == 40


def test_a_remote_token_is_read_and_its_socket_forwarded_by_ssh(tmp_path):
    read = read_command("me@box", "/data/it's mine")
    forward = forward_command("me@box", tmp_path / "d.sock", "unix:/far/daemon.sock")

    assert (read[0], read[-3:-1]) == ("ssh", ["--", "me@box"])
    assert forward[-3:] == [f"{tmp_path}/d.sock:/far/daemon.sock", "--", "me@box"]
    assert "ExitOnForwardFailure=yes" in forward


@pytest.mark.parametrize("host", BAD_HOSTS)
def test_a_host_that_ssh_or_a_shell_would_interpret_is_refused_before_ssh_starts(host, tmp_path, monkeypatch):
    bait = tmp_path / "bait"
    (tmp_path / "ssh").write_text(f"#!/bin/sh\ntouch {bait}\n")
    (tmp_path / "ssh").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")

    with pytest.raises(errors.MosaicError, match=r"Write user@box|ssh/config"), Tunnel(host) as tunnel:
        tunnel.open()
    with pytest.raises(SystemExit):
        build_parser(["runs"]).parse([f"--host={host}", "runs"])

    assert not bait.exists()


@pytest.mark.parametrize(
    "host", ["box", "me@box", "me@box:/data/it's mine", "DOMAIN\\me@box", "a.b-c_d", "me@192.0.2.1"]
)
def test_an_ordinary_host_is_accepted(host):
    assert why_bad_host(host) == ""


def test_the_command_that_reads_the_remote_token_works_in_a_real_shell(root):
    write_json(root.address, {"version": 1, "addresses": ["unix:/far/daemon.sock"]})
    root.token.write_text("secret\n")
    script = read_command("box", str(root.path))[-1]

    output = os.popen(script).read()

    assert parse_remote(output) == ("unix:/far/daemon.sock", "secret")


def test_a_failure_inside_the_loop_thread_reaches_the_caller():
    async def fail():
        raise errors.NoDaemon("gone")

    loop = LoopThread()
    with pytest.raises(errors.NoDaemon, match="gone"):
        loop.run(fail())
    loop.stop()


@pytest.mark.parametrize(
    ("axes", "joined"), [(("env steps", "env steps"), "env steps"), (("env steps", "steps"), "steps")]
)
def test_joined_curves_keep_the_axis_they_share(axes, joined):
    curves = [Curve("episode/return", [1], [1.0], [1.0], [1.0], [1], axis) for axis in axes]

    assert join("episode/return", curves).axis == joined


def test_a_run_has_its_algorithm_environment_and_seed():
    named = Run.from_wire(run_info(algo="ppo", env_id="CartPole-v1", seed=0))
    unnamed = Run.from_wire(run_info())

    assert (named.algo, named.env_id, named.seed) == ("ppo", "CartPole-v1", 0)
    assert (unnamed.algo, unnamed.env_id, unnamed.seed) == ("", "", None)


def test_a_curve_without_times_says_so():
    columns = {"step": [1, 2], "mean": [1, 2], "min": [1, 2], "max": [1, 2], "count": [1, 1]}

    assert Curve.from_wire(pb.Curve(**columns)).seconds is None
    assert Curve.from_wire(pb.Curve(**columns, seconds=[0.5, 1.5])).seconds == [0.5, 1.5]
