"""What a listing shows of a run, kept up to date batch by batch."""

import json
from collections import deque
from dataclasses import replace
from typing import Any

from mosaic.ingest.names import NameSets
from mosaic.ingest.rollup import MOST_CURVES
from mosaic.ingest.rows import Row, Rows, number, values_of
from mosaic.model.run import RunSummary

RECENT = 60
RATE_WINDOW_S = 10.0
RATE_SPACING_S = 0.25
LONGEST_MESSAGE = 500
AGENT = 6  # where an episode's row has its agent
EVALUATION = "eval"  # the agent's name in a training run's evaluation episodes


class Tally:
    """A run's summary: the same rows in the same order give the same numbers, the rate aside."""

    def __init__(self, summary: "RunSummary | None" = None) -> None:
        self.summary = summary or RunSummary()
        self._samples: deque[tuple[float, int]] = deque()

    def fold(self, rows: Rows, names: NameSets) -> None:
        it = self.summary
        it.steps += len(rows.step)
        it.episodes += len(rows.episode)
        it.metrics += len(rows.metric)
        it.last_step = max(it.last_step, max((row[2] for row in rows.step), default=-1))
        self._fold_episodes(rows.episode)
        self._fold_metrics(rows.metric, names)
        self._fold_lifecycle(rows.lifecycle)
        self._advance(rows)

    def copy(self) -> RunSummary:
        it = self.summary
        return replace(it, recent_returns=list(it.recent_returns), last_values=dict(it.last_values))

    def _fold_episodes(self, rows: list[Row]) -> None:
        # What a training run plays to test itself is another curve than the one it learns by.
        played = [number(row[3]) for row in rows[-RECENT:] if row[AGENT] != EVALUATION]
        if played:
            it = self.summary
            it.recent_returns = [*it.recent_returns, *played][-RECENT:]
            it.last_return = it.recent_returns[-1]

    def _fold_metrics(self, rows: list[Row], names: NameSets) -> None:
        it = self.summary
        for row in rows:
            it.last_step = max(it.last_step, row[2])
            for name, value in zip(names.names(row[3]), values_of(row[4]), strict=True):
                if name in it.last_values or len(it.last_values) < MOST_CURVES:
                    it.last_values[name] = value

    def _fold_lifecycle(self, rows: list[Row]) -> None:
        it = self.summary
        for row in rows:
            if row[2] == "heartbeat":
                it.last_step = max(it.last_step, progress_of(row[3]) or -1)
                it.total_steps = _count(object_of(row[3]).get("total")) or it.total_steps
            elif row[2] == "run_failed":
                it.failed_message = _message_of(row[3])

    def _advance(self, rows: Rows) -> None:
        newest = [kind[-1] for kind in (rows.step, rows.episode, rows.metric, rows.lifecycle) if kind]
        if newest:
            seq, ts_ns = max(newest)[:2]
            self.summary.events = seq
            self.summary.last_event_at = ts_ns / 1e9
            self._sample(ts_ns / 1e9)

    def _sample(self, at: float) -> None:
        # A library may number its steps anew in every episode; then the count of steps is what grows.
        done = max(self.summary.last_step, self.summary.steps)
        samples = self._samples
        if samples and not 0 <= at - samples[-1][0] < 10 * RATE_WINDOW_S:
            samples.clear()  # the clock jumped, or the run was silent: begin anew
        if not samples or at - samples[-1][0] >= RATE_SPACING_S:
            samples.append((at, done))
        while len(samples) > 2 and at - samples[1][0] > RATE_WINDOW_S:
            samples.popleft()
        first_at, first_done = samples[0]
        if at - first_at >= RATE_SPACING_S:
            self.summary.steps_per_s = (done - first_done) / (at - first_at)


def progress_of(payload: bytes) -> "int | None":
    """The progress counter of a heartbeat, when it has one."""
    fields = object_of(payload)
    counts = (_count(fields.get(key)) for key in ("progress", "step", "global_step"))
    return next((count for count in counts if count is not None), None)


def _count(value: object) -> "int | None":
    if isinstance(value, (int, float)) and not isinstance(value, bool) and abs(value) < 2**63:
        return int(value)
    return None


def object_of(payload: bytes) -> dict[str, Any]:
    """The JSON object in a payload; empty when it is none."""
    try:
        fields = json.loads(payload) if payload else {}
    except (ValueError, RecursionError):
        return {}
    return fields if isinstance(fields, dict) else {}


def sayable(value: object) -> str:
    """Its text; JSON can spell half a surrogate pair, which neither the file nor the registry takes."""
    return str(value).encode(errors="replace").decode()


def _message_of(payload: bytes) -> str:
    error = sayable(object_of(payload).get("error") or "the worker said run_failed")
    return error if len(error) <= LONGEST_MESSAGE else error[: LONGEST_MESSAGE - 1] + "…"
