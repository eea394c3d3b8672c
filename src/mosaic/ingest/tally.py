"""The summary that listings show of a run, updated batch by batch."""

import json
from collections import deque
from dataclasses import replace
from itertools import islice
from operator import itemgetter
from typing import Any

import msgspec
from mosaic_sdk.names import CHECKPOINT_SAVED, OBSERVING

from mosaic.ingest.points import Points
from mosaic.ingest.returns import EVALUATION, Returns
from mosaic.ingest.rows import GLOBAL_STEP, Row, Rows
from mosaic.model.run import LONGEST_NAME, MOST_CURVES, MOST_LAST_VALUES, MOST_OBSERVED, RunSummary

RATE_WINDOW_S = 10.0
RATE_SPACING_S = 0.25
LONGEST_MESSAGE = 500
MOST_LANES = 1_000  # whose steps are counted
# Of a step's row.
_step_index, _step_lane, _step_agent, _step_place = itemgetter(2), itemgetter(4), itemgetter(5), itemgetter(6, 2)
_metric_step = itemgetter(2)


class Steps(msgspec.Struct, array_like=True):
    """Counts the step lines of one agent: each is one env step, however the library numbers them."""

    agent: str | None = None  # the first one that does not belong to an evaluation
    lines: int = 0
    # Of an evaluation run: the episode and the step that each lane is at.
    lanes: dict[int, tuple[int, int]] = msgspec.field(default_factory=dict)

    def fold(self, agents: list[str]) -> None:
        """Add step lines, given the agent of each line."""
        if self.agent is None:
            self.agent = next((agent for agent in agents if agent != EVALUATION), None)
        if self.agent is not None:
            self.lines += agents.count(self.agent)

    def fold_lanes(self, rows: list[Row]) -> None:
        """Add the steps of an evaluation run: each of its lanes is an environment, whose agents share its steps."""
        for row in rows:
            lane, place = _step_lane(row), _step_place(row)
            if lane in self.lanes or len(self.lanes) < MOST_LANES:
                self.lines += self.lanes.get(lane) != place
                self.lanes[lane] = place


class Tally:
    """A run's summary: the same rows in the same order give the same numbers, except for the rate."""

    def __init__(
        self, summary: "RunSummary | None" = None, returns: "Returns | None" = None, steps: "Steps | None" = None
    ) -> None:
        self.summary = summary or RunSummary()
        self.returns = returns or Returns()
        self.steps = steps or Steps()
        self._samples: deque[tuple[float, int]] = deque()

    def fold(self, rows: Rows, metrics: dict[str, Points]) -> None:
        it = self.summary
        it.steps += len(rows.step)
        it.episodes += len(rows.episode)
        it.metrics += len(rows.metric)
        if rows.step:
            self._fold_steps(rows.step)
        self._fold_episodes(rows.episode)
        if rows.metric:
            self._fold_metrics(rows.metric, metrics)
        self._fold_lifecycle(rows.lifecycle)
        self._advance(rows)

    def copy(self) -> RunSummary:
        copy = limited(self.summary)
        self.returns.fill(copy)
        return copy

    def _fold_steps(self, rows: list[Row]) -> None:
        it = self.summary
        agents = [*map(_step_agent, rows)]
        if self.returns.is_evaluation:
            self.steps.fold_lanes(rows)
        else:
            self.steps.fold(agents)
        highest = max(map(_step_index, rows))
        if highest > it.last_step and EVALUATION in agents:
            # Steps of an evaluation do not count as training steps.
            highest = max((row[2] for row in rows if row[5] != EVALUATION), default=-1)
        it.last_step = max(it.last_step, highest)
        # Steps are numbered from 0; some libraries restart in every episode.
        it.env_steps = max(it.env_steps, highest + 1, self.steps.lines)

    def _fold_episodes(self, rows: list[Row]) -> None:
        if rows:
            highest = max([row[GLOBAL_STEP] or 0 for row in rows])
            self.summary.env_steps = max(self.summary.env_steps, highest)
            self.returns.fold(rows)

    def _fold_metrics(self, rows: list[Row], points: dict[str, Points]) -> None:
        it = self.summary
        highest = max(map(_metric_step, rows))
        it.last_step, it.env_steps = max(it.last_step, highest), max(it.env_steps, highest)
        for name, (_, values, _) in points.items():
            # One more than there are curves, so that a snapshot shows whether a name has none.
            if name in it.last_values or len(it.last_values) <= MOST_CURVES:
                it.last_values[name] = values[-1]

    def _fold_lifecycle(self, rows: list[Row]) -> None:
        it = self.summary
        for row in rows:
            if row[2] == "heartbeat":
                progress = progress_of(row[3]) or 0
                it.last_step = max(it.last_step, progress or -1)
                it.env_steps = max(it.env_steps, progress)
                self._fold_total(object_of(row[3]).get("total"))
            elif row[2] == "run_failed":
                it.failed_message = _message_of(row[3])
            elif row[2] == CHECKPOINT_SAVED:
                it.checkpoints += 1
            elif row[2] == OBSERVING:
                self._fold_observing(object_of(row[3]))

    def _fold_observing(self, payload: dict[str, Any]) -> None:
        texts = (storable_text(payload.get(key) or "")[:LONGEST_NAME] for key in ("what", "by"))
        heard = (next(texts), next(texts))
        if all(heard) and heard not in self.summary.observed and len(self.summary.observed) < MOST_OBSERVED:
            self.summary.observed.append(heard)

    def _fold_total(self, total: object) -> None:
        count = _count(total)
        if count is not None:
            self.summary.total_steps = count or self.summary.total_steps
        elif total is not None:
            shown = storable_text(total)[:40]
            self.summary.note = f"its heartbeats have the total {shown}, which is not a number of steps and is ignored"

    def _advance(self, rows: Rows) -> None:
        newest = [kind[-1] for kind in (rows.step, rows.episode, rows.metric, rows.lifecycle) if kind]
        if newest:
            seq, ts_ns = max(newest)[:2]
            self.summary.events = seq
            self.summary.last_event_at = ts_ns / 1e9
            self._sample(ts_ns / 1e9)

    def _sample(self, at: float) -> None:
        done = self.summary.env_steps
        samples = self._samples
        if samples and not 0 <= at - samples[-1][0] < 10 * RATE_WINDOW_S:
            samples.clear()  # the clock jumped, or the run was silent: start over
        if samples and not samples[-1][1]:
            # Start-up does not count as slow training, and a resumed run does not start at 0.
            samples.clear()
        if not samples or at - samples[-1][0] >= RATE_SPACING_S:
            samples.append((at, done))
        while len(samples) > 2 and at - samples[1][0] > RATE_WINDOW_S:
            samples.popleft()
        first_at, first_done = samples[0]
        if at - first_at >= RATE_SPACING_S:
            self.summary.steps_per_s = (done - first_done) / (at - first_at)


def limited(summary: RunSummary) -> RunSummary:
    """A copy of bounded size: a listing has one for each run, and all metrics of a run have a curve."""
    short = {name: value for name, value in summary.last_values.items() if len(name) <= LONGEST_NAME}
    kept = dict(islice(short.items(), MOST_LAST_VALUES))
    return replace(summary, last_values=kept, recent_returns=[*summary.recent_returns], observed=[*summary.observed])


def progress_of(payload: bytes) -> "int | None":
    """The progress counter of a heartbeat, if it has one."""
    fields = object_of(payload)
    counts = (_count(fields.get(key)) for key in ("progress", "step", "global_step"))
    return next((count for count in counts if count is not None), None)


def _count(value: object) -> "int | None":
    """The value as a number of steps; None for what cannot be one, such as -1."""
    if isinstance(value, (int, float)) and not isinstance(value, bool) and 0 <= value < 2**63:
        return int(value)
    return None


def object_of(payload: bytes) -> dict[str, Any]:
    """The JSON object in a payload; empty if it is not an object."""
    try:
        fields = json.loads(payload) if payload else {}
    except (ValueError, RecursionError):
        return {}
    return fields if isinstance(fields, dict) else {}


def storable_text(value: object) -> str:
    """The value as text that can be stored: JSON can contain half a surrogate pair, which SQLite refuses."""
    return str(value).encode(errors="replace").decode()


def _message_of(payload: bytes) -> str:
    error = storable_text(object_of(payload).get("error") or "the worker reported run_failed")
    return error if len(error) <= LONGEST_MESSAGE else error[: LONGEST_MESSAGE - 1] + "…"
