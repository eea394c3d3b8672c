"""Lines of several megabytes: their cost in memory and in passes, and that they are parsed correctly."""

import json
import random
import tracemalloc

import pytest
from msgspec import Raw
from tail_store import RUN_ID

from mosaic.tail import fields, nonfinite
from mosaic.tail.nesting import is_deeper
from mosaic.tail.parse import Parser
from mosaic.tail.request import Requests
from mosaic.tail.spool_reader import Spool
from mosaic.wire import mosaic_pb2 as pb

SIZE = 2_000_000


def line(**members):
    return json.dumps({"type": "step", "step_index": 1, **members}).encode() + b"\n"


LONG = {
    "pixels": line(observation=[[[7, 8, 9]] * 100] * (SIZE // 1200)),
    "NaN": line(observation=[0.25, float("nan"), float("-inf")] * (SIZE // 30)),
    "text": line(observation='[{"\\' * (SIZE // 6)),
    "names": line(info={f"name {number}": [number] for number in range(SIZE // 20)}),
    "metric": line(type="metric", values={f"name {number}": number for number in range(SIZE // 20)}),
}


def tail(path, keep):
    """The requests that the tailer builds from a spool, as they are sent."""
    requests = Requests(RUN_ID, Parser(RUN_ID, keep_observations=keep))
    spool, sent = Spool(path), []
    while piece := spool.read():
        sent += [request.SerializeToString() for _, request in requests.small(pb.STDOUT, piece)]
    spool.close()
    return sent


@pytest.mark.parametrize("keep", [False, True], ids=["omitted", "kept"])
@pytest.mark.parametrize("kind", LONG)
def test_the_memory_of_a_long_line_is_a_small_multiple_of_its_length(tmp_path, kind, keep):
    path = tmp_path / "spool"
    path.write_bytes(LONG[kind])
    tail(path, keep)  # warm up what is created once

    tracemalloc.start()
    tail(path, keep)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert peak < 10 * len(LONG[kind])


@pytest.mark.parametrize("kind", LONG)
def test_a_long_line_is_scanned_once_and_never_parsed_into_objects(tmp_path, monkeypatch, kind):
    path = tmp_path / "spool"
    path.write_bytes(LONG[kind])
    read, trees = [], []
    decode, loads = fields._decode, json.loads
    monkeypatch.setattr(fields, "_decode", lambda data: read.append(len(data)) or decode(data))
    monkeypatch.setattr(json, "loads", lambda data: trees.append(len(data)) or loads(data))

    (request,) = tail(path, keep=False)

    assert [size for size in read if size > SIZE / 2] == [len(LONG[kind]) - 1]
    assert max(trees, default=0) < 100
    assert len(pb.PublishTelemetryRequest.FromString(request).events) == 1


def test_a_long_name_is_not_cached():
    long = b'"' + b"x" * SIZE + b'"'

    assert fields.text_of("agent_id", long) == "x" * SIZE

    assert fields._cached_text.cache_info().maxsize * fields.CACHED_BYTES < 1 << 20


@pytest.mark.parametrize("levels", [3, 7])
@pytest.mark.parametrize("text", ["", "[[[[[[[[", "]]]]]]", '\\"[[[[[[[[', "\\\\", '\\\\\\"[[[[[[', "\\n[", "]{\\t"])
def test_the_depth_of_a_value_does_not_depend_on_the_strings_in_it(levels, text):
    value = f'[{{"{text}": ["{text}", "{text}"], "b": "{text}"}}, "{text}"]'
    for _ in range(levels - 3):
        value = f'["{text}", {value}]'
    raw = Raw(value.encode())

    assert json.loads(value)
    assert not is_deeper(raw, levels)
    assert is_deeper(raw, levels - 1)


PIECES = [
    "NaN",
    "Infinity",
    "-Infinity",
    "1.5",
    "null",
    '"NaN"',
    '"\\"Infinity"',
    '"a,]}"',
    "[NaN, {}]",
    '{"b": -Infinity}',
]
NAMES = ['"a"', '"NaN"', '"\\"x"', '"b"', '"Infinity, "', '"\\u0061"', '"é"', '"\\ud800"']


@pytest.mark.parametrize("seed", range(20))
def test_json_written_by_python_is_parsed_as_python_parses_it(seed):
    chance = random.Random(seed)
    for _ in range(100):
        members = [
            f"{chance.choice(NAMES)}{chance.choice(['', ' '])}: {chance.choice(PIECES)}"
            for _ in range(chance.randint(1, 5))
        ]
        data = ("{" + ", ".join(members) + chance.choice(["}", " }", "} "])).encode()
        known = json.loads(data)
        if any("\ud800" in name for name in known):
            assert fields.fields_of(data) is None
            continue
        found = fields.fields_of(data)
        assert repr({name: json.loads(bytes(raw)) for name, raw in found.items()}) == repr(known), data


@pytest.mark.parametrize(
    "data", ["1NaN", "NaN1", "-NaN", "NaNN", "--Infinity", "1-Infinity", "[NaN", "Infinit", "+NaN"]
)
def test_text_that_only_looks_like_a_number_is_not_parsed_as_one(data):
    assert fields.fields_of(f'{{"a": 1, "b": {data}}}'.encode()) is None


def test_a_value_with_nan_in_it_stays_as_the_worker_wrote_it():
    found = nonfinite.fields_of(b'{"a": [1.50, NaN], "b": 1e3}')

    assert {name: bytes(raw) for name, raw in found.items()} == {"a": b"[1.50, NaN]", "b": b"1e3"}
