"""A lane of an evaluation as a card: everything it shows, as text."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from mosaic.client.lanes import ASKING, DONE, FAILED, PLAYING
from mosaic.present.lane_desk import PLAYING as EVALUATION_PLAYS
from mosaic.present.text import number, printable

if TYPE_CHECKING:
    from mosaic.client.evaluation_state import EvaluationState
    from mosaic.client.lanes import ActionRequest, AgentState, LaneState

# What a lane does: a glyph and a word, so that it is never told by colour alone.
STATE_WORDS = {
    ASKING: ("◆", "your turn"),
    PLAYING: ("▶", "playing"),
    DONE: ("✓", "episode over"),
    FAILED: ("✕", "failed"),
}
STARTING_WORDS = ("◌", "starting")
READY_WORDS = ("◌", "ready")  # in an episode, but nothing plays at the moment
OVER_WORDS = ("✓", "all played")
KINDS = {"rl": "policy", "llm": "LLM", "worker": "worker", "human": "person", "random": "random", "passive": "passive"}


@dataclass(frozen=True)
class AgentLine:
    """One agent of a multi-agent lane."""

    name: str
    operator: str
    action: str
    reward: str
    episode_return: str


@dataclass(frozen=True)
class LaneCard:
    index: int
    name: str
    kind: str  # who plays: `policy of grid, best`, `LLM qwen3-8b`, `person`
    state: str  # of client.lanes
    glyph: str
    word: str
    place: str  # `seed 3 · episode 2 of 10 · step 12`
    action: str
    reward: str
    episode_return: str
    mean: str  # `0.712 (4)`: over four episodes
    fraction: float  # of the episodes that are over
    words: str  # what an LLM wrote
    problem: str  # why an episode failed
    agents: tuple[AgentLine, ...] = ()


def card_of(
    lane: "LaneState", evaluation: "EvaluationState", operators: Mapping[str, Any] | None = None, is_over: bool = False
) -> LaneCard:
    """`operators`: the script's, by name. `is_over`: the run is."""
    glyph, word = _state_words(lane, evaluation, is_over)
    return LaneCard(
        index=lane.index,
        name=printable(lane.name),
        kind=_who(lane, operators or {}),
        state=lane.state,
        glyph=glyph,
        word=word,
        place=_place(lane),
        action=_action(lane),
        reward=number(lane.reward),
        episode_return=number(lane.episode_return) if lane.episode_index >= 0 else "-",
        mean=_mean(lane),
        fraction=lane.episodes_done / lane.episodes_total if lane.episodes_total else 0.0,
        words=_words(lane),
        problem=_problem(lane),
        agents=tuple(_agent(one) for one in lane.agents.values()),
    )


def describe_operator(spec: Mapping[str, Any]) -> str:
    """`policy of grid, best`, `LLM qwen3-8b`, `person, 30 s per action`. `spec`: an operator of a script."""
    kind = str(spec.get("kind", ""))
    settings = spec.get("settings") if isinstance(spec.get("settings"), Mapping) else {}
    assert isinstance(settings, Mapping)
    if kind == "rl":
        checkpoint = f", {str(spec['checkpoint']).rsplit('/', 1)[-1]}" if spec.get("checkpoint") else ""
        return printable(f"policy of {spec.get('run', '?')}{checkpoint}")
    if kind == "llm":
        return printable(f"LLM {settings.get('model', '')}".rstrip())
    if kind == "worker":
        return printable(f"worker {spec.get('worker', '')}".rstrip())
    if kind == "human" and spec.get("time_limit_s"):
        return f"person, {spec['time_limit_s']:g} s per action"
    return KINDS.get(kind, printable(kind))


def progress_line(evaluation: "EvaluationState") -> str:
    """`12 of 60 episodes`."""
    done, total = episodes(evaluation)
    return f"{done:,} of {total:,} episodes" if total else "no episode has begun yet"


def episodes(evaluation: "EvaluationState") -> tuple[int, int]:
    """How many episodes are over, and how many there will be."""
    lanes = evaluation.lanes
    return sum(lane.episodes_done for lane in lanes), sum(lane.episodes_total or 0 for lane in lanes)


def question_line(request: "ActionRequest", lane: "LaneState") -> str:
    """`me, lane 1: choose an action`, with the agent where there are several."""
    who = printable(request.operator or request.agent_id) or "you"
    agent = f" as {printable(request.agent_id)}" if lane.operators else ""
    return f"{who}{agent}, lane {lane.index}: choose an action"


def time_left(request: "ActionRequest", now: float) -> str:
    """`12 s left`; empty without a limit."""
    left = request.time_left_s(now)
    return "" if left is None else f"{left:.0f} s left"


def _state_words(lane: "LaneState", evaluation: "EvaluationState", is_over: bool) -> tuple[str, str]:
    has_played_all = bool(lane.episodes_total) and lane.episodes_done >= (lane.episodes_total or 0)
    if lane.state == FAILED:
        return STATE_WORDS[FAILED]
    if is_over or (lane.state == DONE and has_played_all):
        return OVER_WORDS if has_played_all else ("✓", "ended")
    if lane.state == PLAYING and evaluation.state != EVALUATION_PLAYS:
        return READY_WORDS
    return STATE_WORDS.get(lane.state, STARTING_WORDS)


def _who(lane: "LaneState", operators: Mapping[str, Any]) -> str:
    names = [lane.operator] if lane.operator else list(dict.fromkeys(lane.operators.values()))
    known = [(name, operators[name]) for name in names if isinstance(operators.get(name), Mapping)]
    if len(known) == 1:
        return describe_operator(known[0][1])
    return ", ".join(f"{printable(name)} ({describe_operator(spec)})" for name, spec in known)


def _place(lane: "LaneState") -> str:
    if lane.episode_index < 0:
        return "no episode yet"
    # A seed of one's own adds an episode to those of the script.
    total = f" of {lane.episodes_total:,}" if lane.episodes_total and lane.episode_index < lane.episodes_total else ""
    seed = "-" if lane.seed is None else str(lane.seed)
    return f"seed {seed} · episode {lane.episode_index + 1:,}{total} · step {lane.step_index + 1:,}"


def _action(last: "LaneState | AgentState") -> str:
    return printable(last.action_name or ("-" if last.action is None else str(last.action)))


def _mean(lane: "LaneState") -> str:
    if lane.mean_return is None:
        return "-"
    played = lane.episodes_done - lane.failures
    return f"{number(lane.mean_return)} ({played:,})" if played > 0 else number(lane.mean_return)


def _words(lane: "LaneState") -> str:
    if not lane.agents:
        return multiline(lane.text)
    said = [(one.agent_id, one.text) for one in lane.agents.values() if one.text]
    return "\n\n".join(f"{printable(agent)}: {multiline(text)}" for agent, text in said)


def _problem(lane: "LaneState") -> str:
    if lane.reason:
        return multiline(lane.reason)
    if not lane.failures:
        return ""
    return f"{lane.failures} failed. {multiline(lane.failure)}"


def _agent(one: "AgentState") -> AgentLine:
    return AgentLine(
        printable(one.agent_id), printable(one.operator), _action(one), number(one.reward), number(one.episode_return)
    )


def multiline(text: str) -> str:
    """The text with its lines, without control characters."""
    return "\n".join(printable(line) for line in text.split("\n")).strip()
