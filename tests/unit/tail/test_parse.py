"""One line at a time: every kind of line, and that no bytes can break the parser or get lost in it."""

import json
import math

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mosaic.tail.fields import MAX_DEPTH
from mosaic.tail.parse import TEXT_BYTES, Parser, Request
from mosaic.wire import mosaic_pb2 as pb

RUN_ID = "01HZY0000000000000000000AB"
NOW = 1_700_000_000_000_000_000


def parse(data: bytes, offset: int = 0, keep_observations: bool = False) -> pb.PublishTelemetryRequest:
    request = Request()
    Parser(RUN_ID, keep_observations).parse(data, offset, NOW, request)
    return request


def only_event(line: str) -> pb.Event:
    request = parse(line.encode() + b"\n")
    assert (len(request.events), len(request.texts), len(request.rejects)) == (1, 0, 0), request
    return request.events[0]


def test_a_step_keeps_its_typed_fields_and_the_rest_as_the_worker_wrote_it():
    event = only_event(
        '{"event_type": "STEP", "run_id": "x", "step_index": 3, "reward": -1.5, "env_index": 2, "agent_id": "a",'
        ' "episode_index": 7, "terminated": true, "truncated": false, "ts_unix_ns": 12, "action": [1,  2], "é": 1e400}'
    )

    assert event.ts_ns == 12
    assert event.step == pb.Step(
        step_index=3,
        reward=-1.5,
        env_index=2,
        agent_id="a",
        episode_index=7,
        terminated=True,
        extra='{"action":[1,  2],"é":1e400}'.encode(),
    )


def test_a_step_of_zeros_is_still_a_step():
    event = only_event('{"type": "step", "step_index": 0}')

    assert event.WhichOneof("kind") == "step"
    assert not event.step.HasField("reward")
    assert event.ts_ns == NOW


@pytest.mark.parametrize(("written", "step"), [("4096", 4096), ("0", 0), ("4096.0", 4096)])
def test_an_episode_may_contain_the_env_step_at_which_it_ended(written, step):
    event = only_event(
        f'{{"type": "episode", "episode_index": 0, "total_reward": 4, "steps": 9, "global_step": {written}}}'
    )

    assert event.episode == pb.Episode(total_reward=4.0, steps=9, global_step=step)


@pytest.mark.parametrize("written", ["-1", "1.5", '"7"', "null", "true", "1e300", "[3]"])
def test_a_global_step_with_another_meaning_is_kept_as_written(written):
    event = only_event(
        f'{{"type": "episode", "episode_index": 0, "total_reward": 4, "steps": 9, "global_step": {written}}}'
    )

    assert not event.episode.HasField("global_step")
    assert event.episode.extra == f'{{"global_step":{written}}}'.encode()


def test_an_episode_counts_its_steps_under_either_name():
    for name in ("steps", "num_steps"):
        event = only_event(
            f'{{"type": "episode", "episode_index": 0, "total_reward": 4, "{name}": 9, "metadata": {{}}}}'
        )

        assert event.episode == pb.Episode(episode_index=0, total_reward=4.0, steps=9, extra=b'{"metadata":{}}')


def test_a_metric_has_one_value_or_many():
    one = only_event('{"type": "metric", "name": "loss", "value": 1, "step": 5}').metric
    many = only_event('{"type": "metric", "values": {"a": 0.5, "b": -2}, "step": 6, "unit": "m"}').metric

    assert (list(one.names), list(one.values), one.step, one.extra) == (["loss"], [1.0], 5, b"")
    assert (list(many.names), list(many.values), many.step, many.extra) == (["a", "b"], [0.5, -2.0], 6, b'{"unit":"m"}')


@pytest.mark.parametrize(("written", "value"), [("NaN", math.nan), ("Infinity", math.inf), ("-Infinity", -math.inf)])
def test_nan_and_infinity_are_data(written, value):
    step = only_event(f'{{"type": "step", "step_index": 1, "reward": {written}, "info": {{"x": {written}}}}}').step
    metric = only_event(f'{{"type": "metric", "values": {{"loss": {written}}}}}').metric

    assert step.reward == pytest.approx(value, nan_ok=True)
    assert json.loads(step.extra)["info"]["x"] == pytest.approx(value, nan_ok=True)
    assert metric.values[0] == pytest.approx(value, nan_ok=True)


@pytest.mark.parametrize(
    ("stamp", "ts_ns"),
    [
        ("1700000000.5", 1_700_000_000_500_000_000),
        ("1700000000", 1_700_000_000_000_000_000),
        ('"2023-11-14T22:13:20Z"', 1_700_000_000_000_000_000),
        ('"2023-11-14T22:13:20"', 1_700_000_000_000_000_000),
        ('"2023-11-14T23:13:20+01:00"', 1_700_000_000_000_000_000),
        ("null", NOW),
    ],
)
def test_the_time_of_a_lifecycle_line_is_in_seconds_or_iso(stamp, ts_ns):
    event = only_event(f'{{"event": "heartbeat", "timestamp": {stamp}, "payload": {{"n": 1}}, "host": "h"}}')

    assert event.ts_ns == ts_ns
    assert event.lifecycle == pb.Lifecycle(event="heartbeat", payload=b'{"n": 1}', extra=b'{"host":"h"}')


def test_any_event_name_is_lifecycle_only_with_this_runs_id():
    mine = parse(f'{{"event": "phase_two", "run_id": "{RUN_ID}"}}\n'.encode())
    another = parse(b'{"event": "phase_two", "run_id": "01HZY0000000000000000000ZZ"}\n')

    assert mine.events[0].lifecycle.event == "phase_two"
    assert len(another.texts) == 1


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"Epoch 3/10 loss 0.4",
        b"{'loss': 0.3}",
        b'{"loss": 0.3}',
        b'{"type": "hello", "step_index": 1}',
        b'{"type": ["step"], "step_index": 1}',
        b'{"type": null}',
        b'{"event": "user logged in"}',
        b'{"event": 5, "run_id": "01HZY0000000000000000000AB"}',
        b"[1, 2]",
        b"NaN",
        b'{"type": "step", "step_index": 1',
        b'{"type": "step", "step_index": NaN',
        b'{"type": "step", "step_index": 1} trailing',
        b'{"type": "step", "step_index": 1, "info": "\xff\xfe"}',
        b"\xff\xfe\x00binary",
        b'\xef\xbb\xbf{"type": "step"}',
    ],
)
def test_output_of_a_library_is_kept_as_text_byte_for_byte(line):
    request = parse(line + b"\n", offset=100)

    assert (len(request.events), len(request.rejects)) == (0, 0)
    assert request.texts[0] == pb.LogText(stream=pb.STDOUT, offset=100, text=line + b"\n")


@pytest.mark.parametrize(
    ("line", "field"),
    [
        ('{"type": "step"}', "step_index: is missing"),
        ('{"type": "step", "step_index": null}', "step_index: is missing"),
        ('{"type": "step", "step_index": "3"}', "step_index:"),
        ('{"type": "step", "step_index": true}', "step_index:"),
        ('{"type": "step", "step_index": 3.5}', "step_index:"),
        ('{"type": "step", "step_index": NaN}', "step_index:"),
        ('{"type": "step", "step_index": 1e999}', "step_index:"),
        ('{"type": "step", "step_index": 9223372036854775808}', "step_index:"),
        ('{"type": "step", "step_index": ' + "9" * 5000 + "}", "step_index:"),
        ('{"type": "step", "step_index": 1, "reward": "1"}', "reward:"),
        ('{"type": "step", "step_index": 1, "reward": true}', "reward:"),
        ('{"type": "step", "step_index": 1, "reward": [1]}', "reward:"),
        ('{"type": "step", "step_index": 1, "agent_id": [1]}', "agent_id:"),
        ('{"type": "step", "step_index": 1, "agent_id": true}', "agent_id:"),
        ('{"type": "step", "step_index": 1, "agent_id": "\\ud800"}', "agent_id:"),
        ('{"type": "step", "step_index": 1, "terminated": "yes"}', "terminated:"),
        ('{"type": "step", "step_index": 1, "ts_unix_ns": "now"}', "ts_unix_ns:"),
        ('{"type": "step", "step_index": 1, "env_index": {}}', "env_index:"),
        ('{"type": "episode", "episode_index": 1, "steps": 3}', "total_reward: is missing"),
        ('{"type": "episode", "episode_index": 1, "total_reward": 3}', "steps: is missing"),
        ('{"type": "episode", "total_reward": 1, "steps": 3}', "episode_index: is missing"),
        ('{"type": "metric", "name": "x"}', "value: is missing"),
        ('{"type": "metric", "name": "x", "value": null}', "value:"),
        ('{"type": "metric", "name": "x", "value": true}', "value:"),
        ('{"type": "metric", "name": "x", "value": "1"}', "value:"),
        ('{"type": "metric", "value": 1}', "name: is missing"),
        ('{"type": "metric", "name": 5, "value": 1}', "name:"),
        ('{"type": "metric", "values": {"a": 1, "b": null}}', "values.b:"),
        ('{"type": "metric", "values": {}}', "name: is missing"),
        ('{"type": "metric", "values": [1]}', "values:"),
        ('{"type": "metric", "values": {"a": 1}, "step": "x"}', "step:"),
        ('{"event": "heartbeat", "timestamp": "yesterday"}', "timestamp:"),
        ('{"event": "heartbeat", "timestamp": 1e300}', "timestamp:"),
        ('{"event": "heartbeat", "timestamp": true}', "timestamp:"),
        ('{"event": "heartbeat", "timestamp": NaN}', "timestamp:"),
        ('{"event": "heartbeat", "payload": [1]}', "payload:"),
    ],
)
def test_a_known_kind_with_an_invalid_field_is_a_reject_that_names_it(line, field):
    data = line.encode() + b"\n"

    request = parse(data, offset=50)

    assert (len(request.events), len(request.texts)) == (0, 0)
    assert request.rejects[0].reason.startswith(field), request.rejects[0].reason
    assert (request.rejects[0].offset, request.rejects[0].length) == (50, len(data))
    assert request.rejects[0].head == data[:-1][:4096]


def test_numbers_may_be_written_in_other_forms():
    step = only_event(
        '{"type": "step", "step_index": 3.0, "agent_id": 7, "reward": 2, "terminated": 1, "truncated": null}'
    )

    assert step.step == pb.Step(step_index=3, agent_id="7", reward=2.0, terminated=True)


def test_deep_nesting_is_a_reject_and_brackets_in_strings_do_not_count():
    deep = b'{"type": "step", "step_index": 1, "info": ' + b"[" * 100_000 + b"]" * 100_000 + b"}\n"
    broad = b'{"type": "step", "step_index": 1, "info": [' + b"[0]," * 500 + b'"' + b"[" * 500 + b'"]}\n'

    assert "nested" in parse(deep).rejects[0].reason
    assert len(parse(broad).events) == 1


def test_a_line_that_is_not_too_deep_can_be_parsed_by_any_reader():
    levels = MAX_DEPTH - 2
    line = b'{"type": "step", "step_index": 1, "info": ' + b"[" * levels + b"]" * levels + b"}\n"

    assert json.loads(parse(line).events[0].step.extra)


def test_a_long_observation_is_kept_only_on_request():
    line = b'{"type": "step", "step_index": 1, "observation": [' + b"0," * 4000 + b"0]}\n"

    omitted = json.loads(parse(line).events[0].step.extra)
    kept = json.loads(parse(line, keep_observations=True).events[0].step.extra)

    assert omitted == {"observation_omitted": 8003}
    assert len(kept["observation"]) == 4001


def test_consecutive_text_lines_are_one_text_and_events_separate_them():
    request = parse(b'a\nb\n{"type": "step", "step_index": 1}\nc\n', offset=10)

    assert [(text.offset, text.text) for text in request.texts] == [(10, b"a\nb\n"), (48, b"c\n")]


def test_long_text_is_split_at_the_ends_of_lines():
    data = (b"x" * 999 + b"\n") * 200

    texts = parse(data).texts

    assert b"".join(text.text for text in texts) == data
    assert all(len(text.text) <= TEXT_BYTES and text.text.endswith(b"\n") for text in texts)


def test_a_last_line_without_its_end_is_an_event_a_cut_line_or_text():
    whole = parse(b'{"type": "step", "step_index": 1}')
    cut = parse(b'a\n{"type": "step", "ste')
    text = parse(b"Traceback (most rec")

    assert len(whole.events) == 1
    assert (cut.texts[0].text, cut.rejects[0].offset, cut.rejects[0].length) == (b"a\n", 2, 21)
    assert cut.rejects[0].reason.startswith("cut")
    assert text.texts[0].text == b"Traceback (most rec"


scalars = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=5), st.just([1]), st.just({"a": None})
)
TYPED = """type event_type event run_id step_index reward env_index agent_id episode_index terminated truncated
ts_unix_ns total_reward steps num_steps name value values step timestamp payload observation extra"""
names = st.sampled_from(TYPED.split())
kinds = st.sampled_from(["step", "episode", "metric", "heartbeat", "run_failed", "other"])
objects = st.builds(
    lambda key, kind, rest: json.dumps(rest | {key: kind}).encode(),
    st.sampled_from(["type", "event_type", "event"]),
    kinds,
    st.dictionaries(names, scalars, max_size=8),
)
lines = st.one_of(st.binary(max_size=40), objects, st.builds(lambda line: line[:-3], objects))


@settings(
    deadline=None, suppress_health_check=[HealthCheck.too_slow]
)  # the first string drawn loads the Unicode tables
@given(st.lists(lines, max_size=12), st.booleans(), st.integers(0, 1 << 40))
def test_any_bytes_are_covered_exactly_once(parts, ended, offset):
    data = b"\n".join(parts) + (b"\n" if ended else b"")

    request = parse(data, offset)

    covered = {}
    for text in request.texts:
        assert data[text.offset - offset :].startswith(text.text)
        covered[text.offset] = len(text.text)
    for reject in request.rejects:
        covered[reject.offset] = reject.length
    gone = list(data)
    for start, length in covered.items():
        for place in range(start - offset, start - offset + length):
            assert gone[place] is not None, "covered twice"
            gone[place] = None
    left = b"".join(b"\0" if byte is None else bytes([byte]) for byte in gone)
    left_lines = [line for line in left.replace(b"\0", b"").split(b"\n") if line]
    assert len(left_lines) == len(request.events)
    assert request.SerializeToString() is not None
