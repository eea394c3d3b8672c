"""Odd lines: through the parser alone, and from a real worker's stdout to the store."""

import json
import re

import grpc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from odd_lines import RUN_ID, OddLines, problem_with
from raw_client import owner_token

from mosaic.model.durable import read_json
from mosaic.model.run import UNNUMBERED
from mosaic.model.states import RunState
from mosaic.tail.parse import Parser, Request
from mosaic.wire import mosaic_pb2 as pb
from mosaic.wire.mosaic_pb2_grpc import TrainerServiceStub

S = RunState
MANY = settings(max_examples=300, deadline=None, derandomize=True, database=None)
# In pieces that end anywhere, so that the tailer reads half lines.
PRINT = """
import sys
data = open(sys.argv[1], "rb").read()
for start in range(0, len(data), 7_001):
    sys.stdout.buffer.write(data[start : start + 7_001])
    sys.stdout.buffer.flush()
"""


def parsed(data, run_id=RUN_ID):
    request = Request(run_id=run_id)
    Parser(run_id).parse(data, 0, 1, request)
    return request


@MANY
@given(st.binary(max_size=300))
def test_any_bytes_are_kept_once(data):
    assert problem_with(data, parsed(data)) == ""


@MANY
@given(st.dictionaries(st.sampled_from(["type", "event", "step_index", "name", "value", "payload"]), st.text()))
def test_any_object_is_kept_once(fields):
    data = json.dumps(fields).encode() + b"\n"

    assert problem_with(data, parsed(data)) == ""


@pytest.mark.parametrize("seed", range(10))
def test_odd_lines_are_kept_once(seed):
    data = OddLines(seed).some(500)

    request = parsed(data)

    assert problem_with(data, request) == ""
    assert request.events
    assert request.rejects
    assert request.texts


def test_the_check_finds_a_byte_that_is_missing_and_one_that_is_kept_twice():
    data = b'{"type":"step","step_index":1}\ntext\n'
    missing, twice = parsed(data), parsed(data)
    del missing.events[:]
    twice.texts[0].offset -= 3
    twice.rejects.add(offset=2, length=40)

    assert problem_with(data, parsed(data)) == ""
    assert "neither text nor reject" in problem_with(data, missing)
    assert problem_with(data, twice)


@pytest.mark.parametrize(("seed", "cut"), [(101, 1), (102, 9)], ids=["whole", "cut"])
def test_odd_lines_of_a_worker_are_stored_once_each_as_event_text_or_reject(lab, tmp_path, seed, cut):
    data = OddLines(seed).some(6_000)[: 1 - cut or None]
    (tmp_path / "data").write_bytes(data)
    (tmp_path / "print.py").write_text(PRINT)

    run = lab.submit_worker({"script": str(tmp_path / "print.py"), "arguments": [str(tmp_path / "data")]})
    end = lab.wait_until_over(run)
    stored, wanted = as_stored(lab, run), parsed(data, run.run_id)
    # As the store numbers episodes that have no index.
    for number, event in enumerate(event for event in wanted.events if event.HasField("episode")):
        if event.episode.episode_index == UNNUMBERED:
            event.episode.episode_index = number

    assert end.state.is_over
    # Nothing is missing; lines that only look like telemetry are counted.
    assert re.fullmatch(r"|[\d,]+ lines look like telemetry but are not: .*", end.telemetry, re.DOTALL)
    assert lab.rundir(run).stdout.stat().st_size == len(data)
    assert problem_with(data, stored) == ""
    assert list(map(what, stored.events)) == list(map(what, wanted.events))
    assert [reject.offset for reject in stored.rejects] == [reject.offset for reject in wanted.rejects]
    assert [event.seq for event in stored.events] == list(range(1, len(wanted.events) + 1))
    assert len([event.to_dict() for event in lab.client.stream_events(run.run_id)]) == len(wanted.events)
    assert lab.client.health().healthy


def as_stored(lab, run):
    """The run's stdout as the daemon returns it."""
    request, headers = Request(run_id=run.run_id), [("authorization", f"Bearer {owner_token(lab)}")]
    with grpc.insecure_channel(read_json(lab.root.address)["addresses"][0]) as channel:
        stub = TrainerServiceStub(channel)
        for batch in stub.StreamRunEvents(pb.StreamRequest(run_id=run.run_id), metadata=headers, timeout=60):
            request.events.extend(batch.events)
        for batch in stub.StreamRunLogs(pb.StreamLogsRequest(run_id=run.run_id), metadata=headers, timeout=60):
            request.texts.extend(text for text in batch.texts if text.stream == pb.STDOUT)
            request.rejects.extend(reject for reject in batch.rejects if reject.stream == pb.STDOUT)
    return request


def what(event):
    """All of an event but its time and number, and the sign of a zero, which SQLite does not keep."""
    copy = pb.Event()
    copy.CopyFrom(event)
    if copy.HasField("episode"):
        copy.episode.total_reward += 0.0
    if copy.HasField("step") and copy.step.HasField("reward"):
        copy.step.reward += 0.0
    copy.ClearField("ts_ns")
    copy.ClearField("seq")
    return copy.SerializeToString(deterministic=True)
