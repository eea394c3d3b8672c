"""The state of an evaluation, built from the events of its run: any number of clients can follow one evaluation."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from mosaic.client.events import Episode, Event, Lifecycle, Step
from mosaic.client.lanes import ASKING, DONE, FAILED, PLAYING, ActionRequest, AgentState, Choice, LaneState


@dataclass(frozen=True)
class Answer:
    """The conductor's answer to a command."""

    seq: int
    cmd: str
    ok: bool
    message: str


@dataclass
class EvaluationState:
    """The lanes, and what the conductor said about the evaluation as a whole.

    Events are a worker's output: an event that makes no sense is skipped, and the next one counts again.
    """

    env_id: str = ""
    mode: str = ""  # script or manual
    state: str = ""  # waiting, playing, paused or done; empty until the conductor says so
    seeds: list[int] = field(default_factory=list)
    lanes: list[LaneState] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    answers: dict[int, Answer] = field(default_factory=dict)  # by the command's seq
    started_at: float | None = None  # unix seconds
    updated_at: float | None = None

    def receive(self, batch: Iterable[Event]) -> None:
        """Take the next events. Only the newest step of each agent is read: a fast evaluation has thousands."""
        steps: dict[tuple[int, str], Step] = {}
        for event in batch:
            self.updated_at = event.ts_ns / 1e9
            if isinstance(event, Step):
                # Deleting first keeps the agents in the order of their newest steps.
                steps.pop((event.env_index, event.agent_id), None)
                steps[event.env_index, event.agent_id] = event
                continue
            self._take_steps(steps)
            if isinstance(event, Episode):
                self._take_episode(event)
            elif isinstance(event, Lifecycle) and event.event in TAKE:
                TAKE[event.event](self, event.payload, event.ts_ns / 1e9)
        self._take_steps(steps)

    def requests_for(self, name: str = "") -> list[ActionRequest]:
        """The unanswered requests to this operator or agent, or to anybody, the oldest first."""
        found = [request for lane in self.lanes for request in lane.requests if request.is_for(name)]
        return sorted(found, key=lambda request: request.asked_at)

    @property
    def eta_s(self) -> float | None:
        """Seconds until the last episode at the present rate; None if unknown."""
        total = sum(lane.episodes_total or 0 for lane in self.lanes)
        done = sum(lane.episodes_done for lane in self.lanes)
        if not done or not total or self.started_at is None or self.updated_at is None:
            return None
        return (self.updated_at - self.started_at) / done * max(0, total - done)

    # Telemetry

    def _take_steps(self, steps: dict[tuple[int, str], Step]) -> None:
        for step in steps.values():
            if (lane := self._lane(step.env_index)) is not None:
                self._set(_after_step(lane, step))
        steps.clear()

    def _take_episode(self, episode: Episode) -> None:
        if (lane := self._lane(episode.env_index)) is None:
            return
        # A multi-agent episode has one line per agent.
        is_new = lane.counted_episode != episode.episode_index
        extra = episode.extra
        has_failed = bool(extra.get("failed", extra.get("reason")))
        self._set(
            replace(
                lane,
                counted_episode=episode.episode_index,
                episodes_done=lane.episodes_done + is_new,
                failures=lane.failures + (is_new and has_failed),
                failure=_failure(extra) if has_failed else lane.failure,
                total_return=lane.total_return + (0.0 if has_failed else episode.total_reward),
                scores=lane.scores + (not has_failed),
            )
        )

    # Lifecycle events

    def _start(self, payload: Mapping[str, Any], at: float) -> None:
        self.env_id, self.mode = _text(payload, "env_id"), _text(payload, "mode")
        seeds = payload.get("seeds")
        self.seeds = [seed for seed in seeds if isinstance(seed, int)] if isinstance(seeds, list) else []
        lanes = payload.get("lanes")
        described = [lane for lane in lanes if isinstance(lane, dict)] if isinstance(lanes, list) else []
        self.lanes = [_new_lane(index, lane, len(self.seeds)) for index, lane in enumerate(described)]
        self.started_at = at

    def _lane_ready(self, payload: Mapping[str, Any], _: float) -> None:
        if lane := self._lane(payload.get("lane")):
            self._set(
                replace(
                    lane,
                    **NEW_EPISODE,
                    state=PLAYING,
                    seed=_integer(payload, "seed"),
                    episode_index=_integer(payload, "episode_index", lane.episode_index + 1),
                    view=_text(payload, "text"),
                )
            )

    def _lane_failed(self, payload: Mapping[str, Any], _: float) -> None:
        if lane := self._lane(payload.get("lane")):
            self._set(replace(lane, state=FAILED, requests=(), reason=_text(payload, "reason")))

    def _lane_done(self, payload: Mapping[str, Any], _: float) -> None:
        lane = self._lane(payload.get("lane"))
        if lane and lane.state != FAILED:
            self._set(replace(lane, state=DONE, requests=()))

    def _action_requested(self, payload: Mapping[str, Any], at: float) -> None:
        if lane := self._lane(payload.get("lane")):
            request = _request(lane, payload, at)
            others = tuple(old for old in lane.requests if old.agent_id != request.agent_id)
            self._set(replace(lane, state=ASKING, requests=(*others, request), view=request.text or lane.view))

    def _command_done(self, payload: Mapping[str, Any], _: float) -> None:
        seq = _integer(payload, "seq", 0)
        is_ok = payload.get("ok") is not False
        self.answers[seq] = Answer(seq, _text(payload, "cmd"), is_ok, _text(payload, "message"))
        if is_ok and payload.get("request") is not None:
            self._answered(payload["request"])

    def _answered(self, request: Any) -> None:
        for lane in self.lanes:
            left = tuple(waiting for waiting in lane.requests if waiting.request != request)
            if left != lane.requests:
                self._set(replace(lane, requests=left, state=ASKING if left else PLAYING))

    def _observations_differ(self, payload: Mapping[str, Any], _: float) -> None:
        lanes = payload.get("lanes")
        names = ", ".join(map(str, lanes)) if isinstance(lanes, dict | list) else ""
        self.warnings.append(f"The first observations of seed {payload.get('seed')} differ between the lanes {names}.")

    def _evaluation_state(self, payload: Mapping[str, Any], _: float) -> None:
        self.state = _text(payload, "state")

    def _lane(self, index: Any) -> LaneState | None:
        known = isinstance(index, int) and 0 <= index < len(self.lanes)
        return self.lanes[index] if known else None

    def _set(self, lane: LaneState) -> None:
        self.lanes[lane.index] = lane


TAKE: Mapping[str, Callable[[EvaluationState, Mapping[str, Any], float], None]] = {
    "evaluation_started": EvaluationState._start,
    "lane_ready": EvaluationState._lane_ready,
    "lane_failed": EvaluationState._lane_failed,
    "lane_done": EvaluationState._lane_done,
    "action_requested": EvaluationState._action_requested,
    "command_done": EvaluationState._command_done,
    "observations_differ": EvaluationState._observations_differ,
    "evaluation_state": EvaluationState._evaluation_state,
}
NEW_EPISODE: Mapping[str, Any] = {
    "step_index": -1,
    "action": None,
    "action_name": "",
    "reward": None,
    "episode_return": 0.0,
    "text": "",
    "reason": "",
    "requests": (),
    "agents": {},
}


def _new_lane(index: int, described: Mapping[str, Any], seeds: int) -> LaneState:
    agents = described.get("agents")
    return LaneState(
        index=index,
        name=_text(described, "name") or f"lane {index}",
        operator=_text(described, "operator"),
        operators={str(key): str(value) for key, value in agents.items()} if isinstance(agents, dict) else {},
        episodes_total=_integer(described, "episodes", seeds) or None,
    )


def _after_step(lane: LaneState, step: Step) -> LaneState:
    extra = step.extra
    last = AgentState(
        agent_id=step.agent_id,
        operator=str(extra.get("operator") or lane.operator),
        action=extra.get("action"),
        action_name=str(extra.get("action_name") or ""),
        reward=step.reward,
        episode_return=_number(extra, "episode_return"),
        text=str(extra.get("text") or ""),
    )
    # A single-agent lane may name its only agent differently in requests and in steps.
    left = tuple(asked for asked in lane.requests if lane.operators and asked.agent_id != step.agent_id)
    return replace(
        lane,
        state=ASKING if left else PLAYING,
        seed=_integer(extra, "episode_seed", lane.seed),
        episode_index=step.episode_index,
        step_index=step.step_index,
        action=last.action,
        action_name=last.action_name,
        reward=last.reward,
        episode_return=last.episode_return,
        text=last.text,
        view=str(extra.get("view") or lane.view),
        requests=left,
        agents={**lane.agents, step.agent_id: last} if lane.operators else {},
    )


def _failure(extra: Mapping[str, Any]) -> str:
    seed, reason = extra.get("episode_seed"), _text(extra, "reason")
    return f"seed {seed}: {reason}" if isinstance(seed, int) else reason


def _request(lane: LaneState, payload: Mapping[str, Any], at: float) -> ActionRequest:
    actions, limit, request = payload.get("actions"), payload.get("deadline_s"), payload.get("request")
    agent_id = _text(payload, "agent_id")
    return ActionRequest(
        request=request if isinstance(request, int | str) else repr(request),
        lane=lane.index,
        agent_id=agent_id,
        operator=_text(payload, "operator") or lane.operators.get(agent_id, lane.operator),
        episode_index=_integer(payload, "episode_index", lane.episode_index),
        step_index=_integer(payload, "step_index", lane.step_index + 1),
        text=_text(payload, "text"),
        choices=tuple(_choices(actions)) if isinstance(actions, list) else (),
        deadline_s=float(limit) if isinstance(limit, int | float) else None,
        asked_at=at,
    )


def _choices(actions: list[Any]) -> Iterable[Choice]:
    for action in actions:
        if isinstance(action, dict) and "value" in action:
            name = action["value"] if action.get("name") is None else action["name"]
            yield Choice(action["value"], str(name), tuple(_keys(action)))


def _keys(action: Mapping[str, Any]) -> Iterable[str]:
    """Its keys, the preferred one first; the arrow keys are called left, right, up and down."""
    named = action.get("keys")
    keys = [action.get("key"), *(named if isinstance(named, list) else ())]
    return dict.fromkeys(key for key in keys if isinstance(key, str) and key)


def _text(payload: Mapping[str, Any], key: str) -> str:
    value = payload.get(key)
    return value if isinstance(value, str) else ""


def _number(payload: Mapping[str, Any], key: str) -> float:
    value = payload.get(key)
    return float(value) if isinstance(value, int | float) else 0.0


def _integer(payload: Mapping[str, Any], key: str, default: Any = None) -> Any:
    value = payload.get(key)
    return value if isinstance(value, int) and not isinstance(value, bool) else default
