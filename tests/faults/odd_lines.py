"""Valid and invalid lines of a worker, generated from a seed, and a check that every byte of them is kept once."""

import json
import random

from mosaic.tail.parse import Request
from mosaic.wire import mosaic_pb2 as pb

RUN_ID = "01ARZ3NDEKTSV4RRFFQ69G5FAV"

_KINDS = [
    *(b'"step"', b'"episode"', b'"metric"', b'"STEP"', b'"Metric"', b'"dance"', b"null", b"5", b'["step"]'),
    *(b'"st\\u0065p"', b'"episode_end"', b'"Episode_Done"', b'"metrics"', b'"scalar"', b'"run_started"'),
]
_EVENTS = [
    *(b'"run_started"', b'"run_completed"', b'"heartbeat"', b'"checkpoint_saved"', b'"run_failed"', b'"telemetry_gap"'),
    *(b'"mine"', b'"\\ud800"', b"null", b"7", b"{}"),
]
_NAMES = [
    *(b"step_index", b"episode_index", b"reward", b"total_reward", b"steps", b"num_steps", b"env_index", b"agent_id"),
    *(b"terminated", b"truncated", b"name", b"value", b"values", b"step", b"ts_unix_ns", b"timestamp", b"payload"),
    *(b"observation", b"info", b"action", b"run_id", b"", b"\\u0000", b"\\ud800", "é".encode(), b"episode_seed"),
    # Other programs' names: foreign.py.
    *(b"return", b"episode_return", b"length", b"episode", b"global_step", b"timestep", b"loss", b"metrics", b"data"),
    *(b"metric", b"tag", b"time"),
]
_VALUES = [
    *(b"0", b"1", b"-1", b"3.0", b"2.5", b"-0", b"1e3", b"1e400", b"-1e400", b"NaN", b"Infinity", b"-Infinity", b"01"),
    *(b"9223372036854775807", b"9223372036854775808", b"-9223372036854775808", b".5", b"1."),
    *(b"true", b"false", b"null", b'""', b'"a"', b'"0"', b'"\\ud800"', b'"\\ud83d\\ude00"', b'"\\u0000"', b'"\xff"'),
    *(b'"2026-11-15T12:00:00"', b'"2026-11-15T12:00:00+25:00"', b'"yesterday"', b"1763200000.5", b"253402300800", b'"'),
    *(b"[]", b"{}", b"[1,[2,[3]]]", b'{"a":NaN}', b'{"a":1,"a":2}', b'{"loss":0.5}', b'{"loss":"x"}', b'{"\\udfff":1}'),
]
_HUGE = [
    *(b"9" * 5_000, b"1" * 400, b"[" * 150 + b"]" * 150, b"[" * 300 + b"]" * 300, b"[" * 300, b'"%b"' % (b"x" * 5_000)),
    b"[%b0]" % (b"0," * 2_100),
]
# The fields that a line of each kind needs; odd fields are added.
_REQUIRED = {
    b'"step"': [(b"step_index", b"3")],
    b'"episode"': [(b"episode_index", b"1"), (b"total_reward", b"-2.5"), (b"steps", b"7")],
    b'"metric"': [(b"name", b'"loss"'), (b"value", b"0.5")],
}
_TALK = [
    *(b"", b"\r", b"epoch 3: loss 0.5", b"50 %|#####     |\r100 %", b"Traceback (most recent call last):", b"{"),
    *("größe".encode(), b'INFO:root:{"type": "episode_end", "return": 1}', b'12:00:00 {"type": "step", "step": "x"}'),
    *(
        b'2026-01-31 {"',
        b'  "type": "episode",',
        b"{'loss': 1}",
        b'{"loss": 1, "step": 2}',
        b'WARN {"type": "metrics"} }',
    ),
]


class OddLines:
    """Generates lines without end; the same seed gives the same lines."""

    def __init__(self, seed: int) -> None:
        self._chance = random.Random(seed)

    def some(self, count: int) -> bytes:
        """`count` lines, each with its newline."""
        # Without sixteen NULs in a row, which would be a hole in the spool.
        return b"".join(self.line() for _ in range(count)).replace(bytes(16), bytes(15) + b"0")

    def line(self) -> bytes:
        chance = self._chance
        luck = chance.random()
        if luck < 0.70:
            line = self._object()
        elif luck < 0.85:
            line = chance.choice(_TALK) + b" %d" % chance.getrandbits(40)
        else:
            line = chance.randbytes(chance.randrange(60))
        if chance.random() < 0.35:
            line = self._damaged(line)
        return line.replace(b"\n", b"") + b"\n"

    def _object(self) -> bytes:
        chance = self._chance
        kind = self._kind()
        members = [kind, *(_REQUIRED.get(kind[1], []) if chance.random() < 0.7 else [])]
        members += [(name, self._value()) for name in chance.sample(_NAMES, chance.choice((0, 1, 1, 2, 2, 5)))]
        members.append((b"extra", b"%d" % chance.getrandbits(40)))
        if chance.random() < 0.3:
            chance.shuffle(members)
        return b"{" + b",".join(b'"%b":%b' % member for member in members) + b"}"

    def _kind(self) -> "tuple[bytes, bytes]":
        if self._chance.random() < 0.25:
            return b"event", self._chance.choice(_EVENTS)
        return self._chance.choice((b"event_type", b"type")), self._chance.choice(_KINDS)

    def _value(self) -> bytes:
        return self._chance.choice(_HUGE if self._chance.random() < 0.01 else _VALUES)

    def _damaged(self, line: bytes) -> bytes:
        chance = self._chance
        at, to = sorted(chance.randrange(len(line) + 1) for _ in range(2))
        return chance.choice(
            (
                line[:at],
                line[:at] + line[to:],
                line[:to] + line[at:],
                line[:at] + chance.randbytes(2) + line[at:],
                b" \t" + line,
                line + line,
            )
        )


def problem_with(data: bytes, request: Request) -> str:
    """What is wrong with the parsed `data`; empty when every byte is in exactly one event, text or reject."""
    places = [(text.offset, len(text.text)) for text in request.texts]
    places += [(reject.offset, reject.length) for reject in request.rejects]
    left, at = [], 0
    for offset, length in sorted(places):
        if offset < at or length == 0 or offset + length > len(data):
            return f"{offset}+{length} overlaps another range, is empty, or is outside"
        left.append(data[at:offset])
        at = offset + length
    left.append(data[at:])
    if any(data[text.offset : text.offset + len(text.text)] != text.text for text in request.texts):
        return "a text is not what was printed"
    lines = sum(piece.count(b"\n") + (not piece.endswith(b"\n")) for piece in left if piece)
    if lines != len(request.events):
        return f"{lines} lines are neither text nor reject, and there are {len(request.events)} events"
    return next((problem for event in request.events if (problem := _problem(event))), "")


def _problem(event: pb.Event) -> str:
    kind = event.WhichOneof("kind")
    if kind is None:
        return "an event has no kind"
    what = getattr(event, kind)
    for name in ("extra", "payload"):
        raw = getattr(what, name, b"")
        # Numbers as strings: JSON allows more digits than Python's int() accepts.
        if raw and not isinstance(json.loads(raw, parse_int=str), dict):
            return f"{kind}.{name} is not a JSON object"
    if kind == "metric" and len(what.names) != len(what.values):
        return "names and values differ in number"
    return ""
