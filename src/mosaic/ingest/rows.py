"""Converts events to rows and back. A row is a tuple in the order of the table's columns; seq comes first.

This is a hot path: a batch is one pass over its events, and a page is filled field by field into one EventBatch
(building each Event from keyword arguments is five times slower).
"""

from array import array
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from mosaic.ingest.names import NameSets
from mosaic.model.errors import BadBatch
from mosaic.model.run import UNNUMBERED
from mosaic.wire import mosaic_pb2 as pb

Row = tuple[Any, ...]
number: Callable[[Any], float] = float  # the value of a REAL column; the text 'nan' is NaN
KINDS = ("step", "episode", "metric", "lifecycle")
TABLES = {"step": "steps", "episode": "episodes", "metric": "metrics", "lifecycle": "lifecycle"}
RETURN, AGENT, EXTRA, GLOBAL_STEP = 3, 6, 9, 10  # positions in an episode's row


@dataclass(slots=True)
class Rows:
    """The rows of one batch, by kind, each in seq order."""

    step: list[Row] = field(default_factory=list)
    episode: list[Row] = field(default_factory=list)
    metric: list[Row] = field(default_factory=list)
    lifecycle: list[Row] = field(default_factory=list)

    def of(self, kind: str) -> list[Row]:
        rows: list[Row] = getattr(self, kind)
        return rows


def rows_of(events: Iterable[pb.Event], after: int, names: NameSets, run_id: str, episodes: int = 0) -> Rows:
    """Number the events after + 1, after + 2 … in place and return their rows.

    An episode without an index gets the number of episodes before it, of which `episodes` are stored.
    """
    rows = Rows()
    seq = after
    for event in events:
        seq += 1
        event.seq = seq
        kind = event.WhichOneof("kind")
        if kind == "step":
            rows.step.append(_step_row(seq, event.ts_ns, event.step))
        elif kind == "metric":
            rows.metric.append(_metric_row(seq, event.ts_ns, event.metric, names, run_id))
        elif kind == "episode":
            if event.episode.episode_index == UNNUMBERED:
                event.episode.episode_index = episodes + len(rows.episode)
            rows.episode.append(_episode_row(seq, event.ts_ns, event.episode))
        elif kind == "lifecycle":
            it = event.lifecycle
            rows.lifecycle.append((seq, event.ts_ns, it.event, it.payload, it.extra))
        else:
            raise BadBatch(run_id, "an event has no known kind")
    return rows


def fill(batch: pb.EventBatch, kind: str, row: Row, names: NameSets) -> None:
    """Append the event of this row to the batch."""
    event = batch.events.add()
    event.seq = row[0]
    event.ts_ns = row[1]
    _FILLERS[kind](event, row, names)


def blob_of(value: object) -> bytes:
    """A value that MOSAIC stored as a blob. In a worker's place of it, bytes(4_000_000_000) would be 4 GB of zeros."""
    if not isinstance(value, bytes):
        raise ValueError(f"a value is {type(value).__name__}, not a blob")
    return value


def values_of(packed: bytes) -> "array[float]":
    values = array("d")
    values.frombytes(packed)
    return values


def _storable(value: float) -> "float | str":
    return value if value == value else "nan"


def _step_row(seq: int, ts_ns: int, it: pb.Step) -> Row:
    reward = _storable(it.reward) if it.HasField("reward") else None
    return (
        seq,
        ts_ns,
        it.step_index,
        reward,
        it.env_index,
        it.agent_id,
        it.episode_index,
        it.terminated,
        it.truncated,
        it.extra,
    )


def _episode_row(seq: int, ts_ns: int, it: pb.Episode) -> Row:
    return (
        seq,
        ts_ns,
        it.episode_index,
        _storable(it.total_reward),
        it.steps,
        it.env_index,
        it.agent_id,
        it.terminated,
        it.truncated,
        it.extra,
        it.global_step if it.HasField("global_step") else None,
    )


def _metric_row(seq: int, ts_ns: int, it: pb.Metric, names: NameSets, run_id: str) -> Row:
    if len(it.names) != len(it.values):
        raise BadBatch(run_id, f"a metric has {len(it.names)} names and {len(it.values)} values")
    try:
        ref = names.ref(tuple(it.names))
    except ValueError as error:
        raise BadBatch(run_id, str(error)) from error
    return (seq, ts_ns, it.step, ref, array("d", it.values).tobytes(), it.extra)


def _fill_step(event: pb.Event, row: Row, names: NameSets) -> None:
    _, _, step_index, reward, env_index, agent_id, episode_index, terminated, truncated, extra = row
    it = event.step
    it.step_index = step_index
    it.episode_index = episode_index
    if reward is not None:
        it.reward = number(reward)
    if env_index:
        it.env_index = env_index
    if agent_id:
        it.agent_id = agent_id
    if terminated:
        it.terminated = True
    if truncated:
        it.truncated = True
    if extra:
        it.extra = extra


def _fill_episode(event: pb.Event, row: Row, names: NameSets) -> None:
    _, _, episode_index, total_reward, steps, env_index, agent_id, terminated, truncated, extra, global_step = row
    it = event.episode
    it.episode_index = episode_index
    it.total_reward = number(total_reward)
    it.steps = steps
    it.env_index = env_index
    it.agent_id = agent_id
    it.terminated = bool(terminated)
    it.truncated = bool(truncated)
    it.extra = extra
    if global_step is not None:
        it.global_step = global_step


def _fill_metric(event: pb.Event, row: Row, names: NameSets) -> None:
    _, _, step, ref, packed, extra = row
    it = event.metric
    it.step = step
    it.names.extend(names.names(ref))
    it.values.extend(values_of(packed))
    it.extra = extra


def _fill_lifecycle(event: pb.Event, row: Row, names: NameSets) -> None:
    it = event.lifecycle
    it.event, it.payload, it.extra = row[2:]


_FILLERS: dict[str, Callable[[pb.Event, Row, NameSets], None]] = {
    "step": _fill_step,
    "episode": _fill_episode,
    "metric": _fill_metric,
    "lifecycle": _fill_lifecycle,
}
