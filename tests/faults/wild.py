"""Generated values for fuzzing: protobuf messages of any kind, and configs."""

import json
import math
from collections.abc import Iterator

from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass
from hypothesis import strategies as st

_EDGES = [0, 1, 2**31, 2**32 - 1, 2**63 - 1, 2**63, 2**64 - 1]
_WHOLE = {
    FieldDescriptor.TYPE_UINT64: (0, 2**64 - 1),
    FieldDescriptor.TYPE_UINT32: (0, 2**32 - 1),
    FieldDescriptor.TYPE_INT64: (-(2**63), 2**63 - 1),
    FieldDescriptor.TYPE_SFIXED64: (-(2**63), 2**63 - 1),
    FieldDescriptor.TYPE_INT32: (-(2**31), 2**31 - 1),
    FieldDescriptor.TYPE_ENUM: (-(2**31), 2**31 - 1),
}
TEXTS = st.one_of(
    st.text(max_size=20),
    st.sampled_from(["", "\0", "../x", "%", "é\u2028", "x" * 20_000, "𝕏" * 5_000, "heartbeat", "run_failed", "01"]),
)
PAYLOADS = st.one_of(
    st.binary(max_size=30),
    st.sampled_from(
        [
            *(b"", b"{}", b"[" * 5_000, b'{"error":"\\ud800"}', b'{"error":' + b"[" * 900 + b"]" * 900 + b"}"),
            *(b'{"progress":1e999}', b'{"step":' + b"9" * 5_000 + b"}", b'{"lines":{},"reason":"\\udfff"}'),
        ]
    ),
)


def messages(descriptor: Descriptor) -> "st.SearchStrategy[Message]":
    """Any message of this type: every field present or missing, with any value of its type."""
    fields = {field.name: _values(field) for field in descriptor.fields}
    kind = GetMessageClass(descriptor)
    return st.fixed_dictionaries({}, optional=fields).map(lambda values: _build(kind, values))


def edges(descriptor: Descriptor) -> "Iterator[Message]":
    """One field at a time at the limits of its type, without the others."""
    for field in descriptor.fields:
        for value in _limits_of(field):
            yield GetMessageClass(descriptor)(**{field.name: [value] if field.is_repeated else value})


def _limits_of(field: FieldDescriptor) -> "set[int] | list[float] | list[str] | list[bytes]":
    low, high = _WHOLE.get(field.type, (0, -1))
    others = {
        FieldDescriptor.TYPE_DOUBLE: [math.nan, math.inf, -math.inf, -1.0, 1e308],
        FieldDescriptor.TYPE_STRING: ["x" * 1_000_000, "\0"],
        FieldDescriptor.TYPE_BYTES: [b"\xff" * 1_000_000],
    }
    return others.get(field.type) or {number for number in {low, high, -1, *_EDGES} if low <= number <= high}


def _values(field: FieldDescriptor) -> "st.SearchStrategy[object]":
    return st.lists(_value(field), max_size=3) if field.is_repeated else _value(field)


def _value(field: FieldDescriptor) -> "st.SearchStrategy[object]":
    if field.type == FieldDescriptor.TYPE_MESSAGE:
        return messages(field.message_type)
    if field.type in _WHOLE:
        low, high = _WHOLE[field.type]
        small = st.integers(-1 if low else 0, 8)
        return st.one_of(small, st.sampled_from([n for n in _EDGES if low <= n <= high]), st.integers(low, high))
    simple = {
        FieldDescriptor.TYPE_STRING: TEXTS,
        FieldDescriptor.TYPE_BYTES: PAYLOADS,
        FieldDescriptor.TYPE_DOUBLE: st.floats(),
        FieldDescriptor.TYPE_BOOL: st.booleans(),
    }
    return simple[field.type]


def _build(kind: "type[Message]", values: "dict[str, object]") -> Message:
    oneofs = {field.name for oneof in kind.DESCRIPTOR.oneofs if len(oneof.fields) > 1 for field in oneof.fields}
    chosen = [name for name in values if name in oneofs]
    return kind(**{name: value for name, value in values.items() if name not in chosen[1:]})


# ---- configs

_SCALARS = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), TEXTS, st.sampled_from([10**400, -(10**400), float("nan")])
)
JSON = st.recursive(
    _SCALARS,
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(TEXTS, inner, max_size=3)),
    max_leaves=6,
)
_WORKER = ("module", "script", "variant", "arguments", "config", "environment", "use_grpc", "grpc_target", "worker_id")
_LIMITS = ("time_s", "heartbeat_s", "spin_s", "no_progress_s", "quiet_s", "grace_s")
_CONFIG = ("run_id", "extras", "tensorboard_dir", "policy_path", "total_timesteps", "seed", "env_id", "test_mode")


def _some(names: "tuple[str, ...]") -> "st.SearchStrategy[dict[str, object]]":
    return st.fixed_dictionaries({}, optional=dict.fromkeys(names, JSON))


@st.composite
def configs(draw: st.DrawFn) -> str:
    """A config with the structure of a trainer config and any values in its fields."""
    worker = {"module": "toy_worker.cli", "config": draw(_some(_CONFIG))} | draw(_some(_WORKER))
    metadata = draw(_some(("run_id", "run_name", "tags"))) | {"worker": worker}
    payload = {"limits": draw(_some(_LIMITS)), "resources": {"gpus": draw(_some(("requested", "mandatory")))}}
    return json.dumps({"metadata": metadata, "payload": payload})


INVALID_CONFIGS = [
    *("", " ", "null", "[]", "1", '"x"', "\ufeff{}", "{", '{"metadata"', "NaN", "-Infinity", '{"a":1}{"a":1}'),
    *("[" * 100_000, '{"a":' * 100_000 + "1" + "}" * 100_000, '{"a":"' + "x" * (5 << 20) + '"}'),
    '{"metadata":{"worker":{"module":"toy_worker.cli"}},"metadata":{"worker":{"module":5}}}',
    '{"metadata":{"worker":{"module":"\\ud800"}}}',
    '{"\\udfff":{"\\ud800":1}}',
    '{"payload":{"limits":{"time_s":' + "9" * 4_000 + '}},"metadata":{"worker":{"module":"toy_worker.cli"}}}',
    '{"metadata":{"worker":{"module":"toy_worker.cli","config":{"x":' + "9" * 5_000 + "}}}}",
    json.dumps({"metadata": {"worker": {"module": "x" * 1_000_000}}}),
    json.dumps({"metadata": {"worker": {"module": "é!" * 100_000}}}),
    json.dumps({"k" * 1_000_000: [0] * 100_000}),
    json.dumps({f"field_{number}": 0 for number in range(20_000)}),
]
