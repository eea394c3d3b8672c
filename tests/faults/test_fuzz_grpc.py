"""Anything at all, said to every call: the daemon answers with a reason, and the run beside it loses nothing."""

import shutil
import tempfile
from pathlib import Path
from types import SimpleNamespace

import grpc
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from knock import MET_A_BUG, METHODS, door_of, owner_token, session_of
from lab import Lab
from wild import HORRORS, configs, edges, messages

from mosaic.model.states import RunState
from mosaic.wire import mosaic_pb2 as pb

S = RunState
Code = grpc.StatusCode
# The same examples every time; benchmarks/fuzz.py is the place for new ones.
FEW = settings(max_examples=60, deadline=None, derandomize=True, database=None, suppress_health_check=list(HealthCheck))
ENDS_THINGS = {"CancelRun", "DeleteRun", "Shutdown"}
SPARED = sorted(METHODS.keys() - {"Shutdown"})  # any bytes that parse would end the daemon, as they should


@pytest.fixture(scope="module")
def siege():
    """A daemon with one finished run and one that goes on; at the end nothing of the latter may be missing."""
    home = Path(tempfile.mkdtemp(prefix="mosaic-"))
    lab = Lab(home, ("--max-runs", "1"))
    try:
        finished = lab.submit(steps=50, text_every=10)
        lab.wait_until_over(finished)
        live = lab.submit(steps=1_000_000, rate=500, metrics_every=0, episode_length=1_000_000)
        lab.wait_for(live, S.EXECUTING)
        pid = lab.daemon_pid()
        with door_of(lab) as door:
            yield SimpleNamespace(lab=lab, door=door, finished=finished, live=live, token=owner_token(lab))
        assert lab.daemon_pid() == pid
        assert lab.client.health().healthy
        assert "unexpected error" not in lab.root.daemon_log.read_text()
        assert_nothing_is_missing(lab, live)
    finally:
        lab.close()
        shutil.rmtree(home, ignore_errors=True)


def assert_nothing_is_missing(lab, run):
    lab.client.cancel_run(run.run_id)
    assert lab.wait_until_over(run).state is S.CANCELLED
    steps = [row[0] for row in lab.table(run, "SELECT step_index FROM steps ORDER BY seq")]
    printed = [line for line in lab.rundir(run).stdout.read_bytes().split(b"\n")[:-1] if b'"step_index"' in line]
    assert steps == list(range(len(printed)))


@pytest.mark.parametrize("method", SPARED)
def test_any_bytes_are_answered_with_a_reason(siege, method):
    @FEW
    @given(st.binary(max_size=200))
    def try_it(data):
        answer = siege.door.knock(method, data, siege.token)
        assert answer.code not in MET_A_BUG, answer

    try_it()


@pytest.mark.parametrize("method", SPARED)
def test_any_message_of_the_right_kind_is_answered_with_a_reason(siege, method):
    run_ids = st.just(siege.finished.run_id) if method not in ENDS_THINGS else st.sampled_from(["", "../x", "\0", "~"])
    token = session_of(siege.lab, siege.finished).session_token if method in ("Heartbeat", "PublishTelemetry") else ""

    @FEW
    @given(messages(METHODS[method].input_type), run_ids)
    def try_it(request, run_id):
        if "run_id" in request.DESCRIPTOR.fields_by_name:
            request.run_id = run_id
        answer = siege.door.knock(method, request, token or siege.token)
        assert answer.code not in MET_A_BUG, answer

    try_it()


@pytest.mark.parametrize("method", SPARED)
def test_every_number_at_its_edge_is_answered_with_a_reason(siege, method):
    for request in edges(METHODS[method].input_type):
        if method not in ENDS_THINGS and "run_id" in request.DESCRIPTOR.fields_by_name:
            request.run_id = siege.finished.run_id
        answer = siege.door.knock(method, request, siege.token)
        assert answer.code not in MET_A_BUG, (request, answer)


def test_any_batch_that_continues_the_stream_is_stored_or_refused_whole(siege):
    session = session_of(siege.lab, siege.finished)
    ends = {pb.STDOUT: session.cursor.stdout_offset, pb.STDERR: session.cursor.stderr_offset}

    @FEW
    @given(messages(pb.PublishTelemetryRequest.DESCRIPTOR), st.sampled_from([pb.STDOUT, pb.STDERR]), st.integers(0, 40))
    def try_it(request, stream, length):
        request.run_id, request.stream, request.start = siege.finished.run_id, stream, ends[stream]
        request.end = ends[stream] + length
        for part in (*request.texts, *request.rejects, *request.gaps):
            part.stream, part.offset = stream, min(part.offset, request.end)
        answer = siege.door.knock("PublishTelemetry", request, session.session_token)
        if answer.code is Code.OK:
            ends[stream] = request.end
        cursor = session_of(siege.lab, siege.finished).cursor
        assert answer.code in (Code.OK, Code.INVALID_ARGUMENT), answer
        assert ends == {pb.STDOUT: cursor.stdout_offset, pb.STDERR: cursor.stderr_offset}

    try_it()

    for method in ("StreamRunEvents", "StreamRunSteps", "StreamRunLogs", "GetRun", "QueryCurve"):
        request = METHODS[method].input_type._concrete_class(run_id=siege.finished.run_id)
        assert siege.door.knock(method, request, siege.token).code is Code.OK, method


def test_any_config_is_taken_or_refused_with_the_field(siege):
    @FEW
    @given(configs())
    def try_it(text):
        answer = siege.door.knock("SubmitRun", pb.SubmitRunRequest(config_json=text), siege.token)
        assert answer.code in (Code.OK, Code.INVALID_ARGUMENT), answer
        assert answer.code is Code.OK or ": " in answer.details

    try_it()


@pytest.mark.parametrize("text", HORRORS, ids=lambda text: f"{text[:12]!r}-{len(text)}")
def test_a_horror_is_refused_with_a_sentence(siege, text):
    answer = siege.door.knock("SubmitRun", pb.SubmitRunRequest(config_json=text), siege.token)

    assert answer.code is Code.INVALID_ARGUMENT
    assert 0 < len(answer.details) < 5_000


def test_a_message_over_the_limit_is_refused_and_the_next_one_served(siege):
    request = pb.SubmitRunRequest(config_json="x" * (65 << 20))

    assert siege.door.knock("SubmitRun", request, siege.token).code is Code.RESOURCE_EXHAUSTED
    assert siege.door.knock("GetHealth", b"", siege.token).code is Code.OK
