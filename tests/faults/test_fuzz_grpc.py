"""Any bytes to every call: the daemon answers with a reason, and a run at the same time loses nothing."""

import shutil
import tempfile
from pathlib import Path
from types import SimpleNamespace

import grpc
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from lab import Lab
from raw_client import INTERNAL_ERRORS, METHODS, owner_token, raw_client_of, session_of
from wild import INVALID_CONFIGS, configs, edges, messages

from mosaic.model.states import RunState
from mosaic.wire import mosaic_pb2 as pb

S = RunState
Code = grpc.StatusCode
# The same examples every time; benchmarks/fuzz.py is the place for new ones.
FEW = settings(max_examples=60, deadline=None, derandomize=True, database=None, suppress_health_check=list(HealthCheck))
ENDS_THINGS = {"CancelRun", "DeleteRun", "Shutdown"}
SPARED = sorted(METHODS.keys() - {"Shutdown"})  # any valid bytes would end the daemon, as they should


@pytest.fixture(scope="module")
def fuzzed():
    """A daemon with a finished run and a live one; at the end nothing of the latter may be missing."""
    home = Path(tempfile.mkdtemp(prefix="mosaic-"))
    lab = Lab(home, ("--max-runs", "1"))
    try:
        finished = lab.submit(steps=50, text_every=10)
        lab.wait_until_over(finished)
        live = lab.submit(steps=1_000_000, rate=500, metrics_every=0, episode_length=1_000_000)
        lab.wait_for(live, S.EXECUTING)
        pid = lab.daemon_pid()
        with raw_client_of(lab) as client:
            yield SimpleNamespace(lab=lab, client=client, finished=finished, live=live, token=owner_token(lab))
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
def test_any_bytes_are_answered_with_a_reason(fuzzed, method):
    @FEW
    @given(st.binary(max_size=200))
    def try_it(data):
        answer = fuzzed.client.call(method, data, fuzzed.token)
        assert answer.code not in INTERNAL_ERRORS, answer

    try_it()


@pytest.mark.parametrize("method", SPARED)
def test_any_message_of_the_right_kind_is_answered_with_a_reason(fuzzed, method):
    run_ids = st.just(fuzzed.finished.run_id) if method not in ENDS_THINGS else st.sampled_from(["", "../x", "\0", "~"])
    token = session_of(fuzzed.lab, fuzzed.finished).session_token if method in ("Heartbeat", "PublishTelemetry") else ""

    @FEW
    @given(messages(METHODS[method].input_type), run_ids)
    def try_it(request, run_id):
        if "run_id" in request.DESCRIPTOR.fields_by_name:
            request.run_id = run_id
        answer = fuzzed.client.call(method, request, token or fuzzed.token)
        assert answer.code not in INTERNAL_ERRORS, answer

    try_it()


@pytest.mark.parametrize("method", SPARED)
def test_every_field_at_its_limits_is_answered_with_a_reason(fuzzed, method):
    for request in edges(METHODS[method].input_type):
        fields = request.DESCRIPTOR.fields_by_name
        if method not in ENDS_THINGS and "run_id" in fields and not request.run_id:
            request.run_id = fuzzed.finished.run_id
        answer = fuzzed.client.call(method, request, fuzzed.token)
        assert answer.code not in INTERNAL_ERRORS, (request, answer)


def test_any_batch_that_continues_the_stream_is_stored_completely_or_refused(fuzzed):
    session = session_of(fuzzed.lab, fuzzed.finished)
    ends = {pb.STDOUT: session.cursor.stdout_offset, pb.STDERR: session.cursor.stderr_offset}

    @FEW
    @given(messages(pb.PublishTelemetryRequest.DESCRIPTOR), st.sampled_from([pb.STDOUT, pb.STDERR]), st.integers(0, 40))
    def try_it(request, stream, length):
        request.run_id, request.stream, request.start = fuzzed.finished.run_id, stream, ends[stream]
        request.end = ends[stream] + length
        for part in (*request.texts, *request.rejects, *request.gaps):
            part.stream, part.offset = stream, min(part.offset, request.end)
        answer = fuzzed.client.call("PublishTelemetry", request, session.session_token)
        if answer.code is Code.OK:
            ends[stream] = request.end
        cursor = session_of(fuzzed.lab, fuzzed.finished).cursor
        assert answer.code in (Code.OK, Code.INVALID_ARGUMENT), answer
        assert ends == {pb.STDOUT: cursor.stdout_offset, pb.STDERR: cursor.stderr_offset}

    try_it()

    for method in ("StreamRunEvents", "StreamRunSteps", "StreamRunLogs", "GetRun", "QueryCurve"):
        request = METHODS[method].input_type._concrete_class(run_id=fuzzed.finished.run_id)
        assert fuzzed.client.call(method, request, fuzzed.token).code is Code.OK, method


def test_any_config_is_accepted_or_refused_with_the_field(fuzzed):
    @FEW
    @given(configs())
    def try_it(text):
        answer = fuzzed.client.call("SubmitRun", pb.SubmitRunRequest(config_json=text), fuzzed.token)
        assert answer.code in (Code.OK, Code.INVALID_ARGUMENT), answer
        assert answer.code is Code.OK or ": " in answer.details

    try_it()


@pytest.mark.parametrize("text", INVALID_CONFIGS, ids=lambda text: f"{text[:12]!r}-{len(text)}")
def test_an_invalid_config_is_refused_with_a_message(fuzzed, text):
    answer = fuzzed.client.call("SubmitRun", pb.SubmitRunRequest(config_json=text), fuzzed.token)

    assert answer.code is Code.INVALID_ARGUMENT
    assert 0 < len(answer.details) < 5_000


def test_a_message_over_the_limit_is_refused_and_the_next_one_served(fuzzed):
    request = pb.SubmitRunRequest(config_json="x" * (65 << 20))

    assert fuzzed.client.call("SubmitRun", request, fuzzed.token).code is Code.RESOURCE_EXHAUSTED
    assert fuzzed.client.call("GetHealth", b"", fuzzed.token).code is Code.OK
