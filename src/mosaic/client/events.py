"""The items of a stream: steps, episodes, metrics, lifecycle events, and log text.

`to_dict` gives a line of `mosaic export`: the known fields, and beside them every other field that the worker sent.
"""

import json
from dataclasses import dataclass
from typing import Any, ClassVar

from mosaic.wire import mosaic_pb2 as pb


@dataclass(slots=True)
class Step:
    type: ClassVar[str] = "step"
    seq: int
    ts_ns: int
    step_index: int
    reward: float | None
    env_index: int
    agent_id: str
    episode_index: int
    terminated: bool
    truncated: bool
    extra_json: bytes

    @property
    def extra(self) -> dict[str, Any]:
        return _object(self.extra_json)

    def to_dict(self) -> dict[str, Any]:
        return {
            **self.extra,
            "type": self.type,
            "seq": self.seq,
            "ts_ns": self.ts_ns,
            "step_index": self.step_index,
            "reward": self.reward,
            "env_index": self.env_index,
            "agent_id": self.agent_id,
            "episode_index": self.episode_index,
            "terminated": self.terminated,
            "truncated": self.truncated,
        }


@dataclass(slots=True)
class Episode:
    type: ClassVar[str] = "episode"
    seq: int
    ts_ns: int
    episode_index: int
    total_reward: float
    steps: int
    env_index: int
    agent_id: str
    terminated: bool
    truncated: bool
    extra_json: bytes
    global_step: int | None = None  # env steps of the training when the episode ended, if the worker reported it

    @property
    def extra(self) -> dict[str, Any]:
        return _object(self.extra_json)

    def to_dict(self) -> dict[str, Any]:
        optional = {} if self.global_step is None else {"global_step": self.global_step}
        return {
            **self.extra,
            "type": self.type,
            "seq": self.seq,
            "ts_ns": self.ts_ns,
            "episode_index": self.episode_index,
            "total_reward": self.total_reward,
            "steps": self.steps,
            "env_index": self.env_index,
            "agent_id": self.agent_id,
            "terminated": self.terminated,
            "truncated": self.truncated,
            **optional,
        }


@dataclass(slots=True)
class Metric:
    type: ClassVar[str] = "metric"
    seq: int
    ts_ns: int
    step: int
    values: dict[str, float]
    extra_json: bytes

    @property
    def extra(self) -> dict[str, Any]:
        return _object(self.extra_json)

    def to_dict(self) -> dict[str, Any]:
        plain = {**self.extra, "type": self.type, "seq": self.seq, "ts_ns": self.ts_ns, "step": self.step}
        if len(self.values) == 1:
            plain["name"], plain["value"] = next(iter(self.values.items()))
        return {**plain, "values": self.values}


@dataclass(slots=True)
class Lifecycle:
    type: ClassVar[str] = "lifecycle"
    seq: int
    ts_ns: int
    event: str
    payload_json: bytes
    extra_json: bytes

    @property
    def payload(self) -> dict[str, Any]:
        return _object(self.payload_json)

    @property
    def extra(self) -> dict[str, Any]:
        return _object(self.extra_json)

    def to_dict(self) -> dict[str, Any]:
        own = {"type": self.type, "seq": self.seq, "ts_ns": self.ts_ns, "event": self.event, "payload": self.payload}
        return {**self.extra, **own}


Event = Step | Episode | Metric | Lifecycle


def event_from_wire(wire: pb.Event) -> Event:
    kind = wire.WhichOneof("kind")
    if kind == "step":
        return _step(wire.seq, wire.ts_ns, wire.step)
    if kind == "metric":
        m = wire.metric
        return Metric(wire.seq, wire.ts_ns, m.step, dict(zip(m.names, m.values, strict=False)), m.extra)
    if kind == "episode":
        return _episode(wire.seq, wire.ts_ns, wire.episode)
    life = wire.lifecycle
    return Lifecycle(wire.seq, wire.ts_ns, life.event, life.payload, life.extra)


def _step(seq: int, ts_ns: int, s: pb.Step) -> Step:
    reward = s.reward if s.HasField("reward") else None
    return Step(
        seq, ts_ns, s.step_index, reward, s.env_index, s.agent_id, s.episode_index, s.terminated, s.truncated, s.extra
    )


def _episode(seq: int, ts_ns: int, e: pb.Episode) -> Episode:
    return Episode(
        seq,
        ts_ns,
        e.episode_index,
        e.total_reward,
        e.steps,
        e.env_index,
        e.agent_id,
        e.terminated,
        e.truncated,
        e.extra,
        e.global_step if e.HasField("global_step") else None,
    )


def _object(text: bytes) -> dict[str, Any]:
    try:
        return dict(json.loads(text)) if text else {}
    except ValueError:
        # An integer of more than 4300 digits is valid JSON; one such field must not hide all other events.
        return dict(json.loads(text, parse_int=float))


@dataclass(frozen=True)
class LogPiece:
    """Bytes of a worker's stdout or stderr, or the reason why some are missing."""

    stream: str  # stdout or stderr
    offset: int  # in the spool
    length: int
    text: bytes
    problem: str = ""  # why a line was rejected or bytes are missing; `text` is then the beginning of the line

    @property
    def end(self) -> int:
        return self.offset + self.length


def log_from_wire(batch: pb.LogBatch) -> list[LogPiece]:
    """The pieces of a batch, in the order of the spool."""
    pieces = [LogPiece(_stream(t.stream), t.offset, len(t.text), t.text) for t in batch.texts]
    pieces += [LogPiece(_stream(r.stream), r.offset, r.length, r.head, f"rejected: {r.reason}") for r in batch.rejects]
    pieces += [LogPiece(_stream(g.stream), g.offset, g.length, b"", f"gap: {g.reason}") for g in batch.gaps]
    return sorted(pieces, key=lambda piece: (piece.stream, piece.offset))


def _stream(wire: int) -> str:
    return "stderr" if wire == pb.STDERR else "stdout"


@dataclass(frozen=True)
class Curve:
    """A metric over its steps, reduced to a number of points: lists of equal length."""

    name: str
    step: list[int]
    mean: list[float]
    min: list[float]
    max: list[float]
    count: list[int]
    axis: str = "steps"  # what `step` counts: "env steps", "episodes", or "steps" as the worker numbers them
    seconds: list[float] | None = None  # since `started_at`; None for files from before times were stored
    started_at: float = 0.0  # unix time of the run's first event; 0: there is none
    last_seq: int = 0  # events after this one are not in the curve yet; 0: unknown

    @classmethod
    def from_wire(cls, wire: pb.Curve) -> "Curve":
        columns = (list(wire.step), list(wire.mean), list(wire.min), list(wire.max), list(wire.count))
        seconds = list(wire.seconds) if len(wire.seconds) == len(wire.step) else None
        return cls(wire.name, *columns, wire.axis or "steps", seconds, wire.started_at, wire.last_seq)
