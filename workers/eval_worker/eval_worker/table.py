"""A hosted lane: an env host, and the operators and people who decide for its agents."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from mosaic_sdk import names
from mosaic_sdk.operators.seeds import LARGEST_SEED

from eval_worker.children import Asked, Refused
from eval_worker.game import Act, LaneFailed, Opening, Turn
from eval_worker.seats import TEXT, Decision, HumanSeat, OperatorSeat, Place, Seat
from eval_worker.together import together

ALONE = ""  # the agent of a single-agent lane, whatever the host calls it
DESCRIBE, DESCRIBED, END, ENDED = "describe", "described", "end", "ended"
_RECORDING_GRACE_S = 2.0  # in which a host writes the episode that was being played
_MOST_REFUSALS = 3  # of one person's actions in a row
_NEXT_REPETITION = 1_000_003  # between the operators' seeds, away from those of the neighbouring seeds


@dataclass(frozen=True)
class Seating:
    """Which lane it is, and who sits where."""

    lane: int
    lane_name: str
    seats: Mapping[str, Seat]  # by agent; ALONE in a single-agent lane
    shows_text: bool = False  # somebody follows the steps
    operator_seed: int = 0  # added to the episode's seed for the operators' own random numbers
    repetitions: Mapping[int, int] = field(default_factory=dict)  # of a seed that was played before, by episode
    recorded: frozenset[str] = frozenset()  # operators whose steps become demonstration data


Recall = Callable[[int, int, str], list[Any]]  # episode, step, agent → a list with the recorded action, or empty


class TableGame:
    """The game of a hosted lane. The host owns the environment; this class carries views and actions."""

    def __init__(self, seating: Seating, host: Asked, max_steps: int | None, recall: Recall) -> None:
        self._seating = seating
        self._host = host
        self._max_steps = max_steps
        self._recall = recall
        self._is_multi_agent = False
        self._places: dict[str, Place] = {}
        self._steps = 0
        self._turn: list[str] = []
        self._views: Mapping[str, Any] = {}
        self._text = ""  # the whole scene
        self._owed: dict[str, float] = {}  # rewards since an agent's last action
        self._met: set[str] = set()  # agents that have acted
        self._over: set[str] = set()

    def begin(self, seed: int, episode_index: int) -> Opening:
        began = time.monotonic()
        self._steps, self._owed, self._met, self._over = 0, {}, set(), set()
        self._place_agents(self._host.ask(DESCRIBED, {"cmd": DESCRIBE}), seed, episode_index)
        options = {"views": self._begin_seats(), "record": self._recorded(), "episode_index": episode_index}
        ready = self._host.ask(names.READY, {"cmd": names.RESET, "seed": seed, "options": options})
        self._look(ready)
        return Opening(
            operators={self._shown(agent): self._operator(agent) for agent in self._places},
            first_observation=str(ready.get("first_observation") or ""),
            text=self._text,
            is_multi_agent=self._is_multi_agent,
            elapsed_s=time.monotonic() - began,
        )

    def step(self) -> Turn:
        began = time.monotonic()
        decisions, answer = self._play()
        self._steps += 1
        moves = {agent: (self._views.get(agent) or {}).get("actions") for agent in decisions}
        self._look(answer)
        acts = self._acts(decisions, moves, answer)
        success = answer.get("success")
        turn = Turn(acts, bool(answer.get("done")), success if isinstance(success, bool) else None, self._text)
        if self._steps == self._max_steps and not turn.is_done:
            turn = turn.cut()
            self._host.ask(ENDED, {"cmd": END})
        self._note(turn)
        return Turn(**{**vars(turn), "elapsed_s": time.monotonic() - began})

    def close(self, for_good: bool = False) -> None:
        self._host.close(for_good, _RECORDING_GRACE_S if self._seating.recorded else 0.0)
        for seat in self._seating.seats.values():
            if isinstance(seat, OperatorSeat):
                seat.close(for_good)  # more than once for a shared one, which does no harm

    def _place_agents(self, described: Mapping[str, Any], seed: int, episode_index: int) -> None:
        spaces, actions = described.get("spaces") or {}, described.get("actions") or {}
        self._is_multi_agent = bool(described.get("multi_agent"))
        self._places = {}
        for agent in described["agents"]:
            space = spaces.get(agent) or {}
            self._places[agent] = Place(
                lane=self._seating.lane,
                lane_name=self._seating.lane_name,
                agent_id=agent,
                env_id=str(described.get("env_id") or ""),
                seed=self._operator_seed(seed, episode_index),
                episode_index=episode_index,
                action_space=space.get("action"),
                observation_space=space.get("observation"),
                actions=actions.get(agent),
            )

    def _operator_seed(self, seed: int, episode_index: int) -> int:
        """An operator that plays a seed again draws other random numbers, or it would only repeat itself."""
        repetition = self._seating.repetitions.get(episode_index, 0)
        return (seed + self._seating.operator_seed + _NEXT_REPETITION * repetition) % (LARGEST_SEED + 1)

    def _begin_seats(self) -> dict[str, list[str]]:
        """Begin the episode for every operator; returns the views of each agent."""
        found: dict[str, list[str]] = {}
        for part in together([self._beginning(seat) for seat in self._seats()]):
            found.update(part)
        more = [TEXT] if self._seating.shows_text else []
        return {agent: list(dict.fromkeys([*found[agent], *more])) for agent in self._places}

    def _beginning(self, seat: Seat) -> Callable[[], dict[str, list[str]]]:
        mine = [agent for agent in self._places if self._seat(agent) is seat]
        return lambda: {agent: seat.begin(self._places[agent]) for agent in mine}

    def _recorded(self) -> dict[str, str]:
        named = {agent: self._operator(agent) for agent in self._places}
        return {agent: operator for agent, operator in named.items() if operator in self._seating.recorded}

    def _play(self) -> tuple[dict[str, Decision], dict[str, Any]]:
        """Decisions of those whose turn it is, and what the environment answers."""
        note = ""
        for _ in range(_MOST_REFUSALS):
            decisions = self._decide(note)
            actions = {agent: decision.action for agent, decision in decisions.items()}
            try:
                return decisions, self._host.ask(names.STEP, {"cmd": names.STEP, "actions": actions})
            except Refused as error:
                # A person may choose again; an operator that chooses what does not exist has failed.
                if not any(isinstance(self._seat(agent), HumanSeat) for agent in self._turn):
                    operators = ", ".join(dict.fromkeys(self._operator(agent) for agent in self._turn))
                    raise LaneFailed(f"{error} (chosen by {operators})") from None
                note = str(error)
        raise LaneFailed(note)

    def _decide(self, note: str) -> dict[str, Decision]:
        people = [agent for agent in self._turn if isinstance(self._seat(agent), HumanSeat)]
        calls = [self._asking(seat) for seat in self._seats() if isinstance(seat, OperatorSeat)]
        if people:
            calls.append(lambda: self._ask_people(people, note))
        decided: dict[str, Decision] = {}
        for part in together(calls):
            decided.update(part)
        return {agent: decided[agent] for agent in self._turn}

    def _asking(self, seat: OperatorSeat) -> Callable[[], dict[str, Decision]]:
        mine = [agent for agent in self._turn if self._seat(agent) is seat]
        return lambda: {agent: self._ask(seat, agent) for agent in mine}

    def _ask(self, seat: OperatorSeat, agent: str) -> Decision:
        reward, is_first = self._owed.get(agent, 0.0), agent not in self._met
        return seat.decide(agent, self._view(agent), self._steps, reward, is_first)

    def _ask_people(self, people: list[str], note: str) -> dict[str, Decision]:
        began, found, questions = time.monotonic(), {}, []
        for agent in people:
            seat, place = self._seat(agent), self._places[agent]
            assert isinstance(seat, HumanSeat)
            recorded = [] if note else self._recall(place.episode_index, self._steps, agent)
            if recorded:
                found[agent] = recorded[0]
            else:
                questions.append(seat.question(place, self._view(agent), self._steps, note))
        if questions:
            found.update(self._desk(questions[0].agent_id).desk.ask_all(questions))
        elapsed_ms = round(1000 * (time.monotonic() - began), 3)
        return {agent: Decision(action, latency_ms=elapsed_ms) for agent, action in found.items()}

    def _desk(self, agent: str) -> HumanSeat:
        seat = self._seat(agent)
        assert isinstance(seat, HumanSeat)
        return seat

    def _acts(
        self, decisions: Mapping[str, Decision], moves: Mapping[str, Any], answer: Mapping[str, Any]
    ) -> tuple[Act, ...]:
        """One for each agent that acted, was rewarded, or has just finished."""
        acts = []
        for agent, place in self._places.items():
            reward = float((answer.get("rewards") or {}).get(agent, 0.0))
            ends = [bool((answer.get(key) or {}).get(agent)) for key in ("terminated", "truncated")]
            self._owe(agent, reward, agent in decisions)
            if agent not in decisions and not reward and not (any(ends) and agent not in self._over):
                continue
            if any(ends):
                self._over.add(agent)
            decision = decisions.get(agent)
            acts.append(
                Act(
                    agent_id=self._shown(agent),
                    operator=self._operator(agent),
                    action=decision.action if decision else None,
                    action_name=place.action_name(decision.action, moves[agent]) if decision else None,
                    reward=reward,
                    terminated=ends[0],
                    truncated=ends[1],
                    text=decision.text if decision else "",
                    latency_ms=decision.latency_ms if decision else None,
                )
            )
        return tuple(acts)

    def _owe(self, agent: str, reward: float, has_acted: bool) -> None:
        self._owed[agent] = reward if has_acted else self._owed.get(agent, 0.0) + reward
        if has_acted:
            self._met.add(agent)

    def _note(self, turn: Turn) -> None:
        shown = {self._shown(agent): agent for agent in self._places}
        for act in turn.acts:
            agent = shown[act.agent_id]
            seat = self._seat(agent)
            if isinstance(seat, OperatorSeat):
                info = (self._views.get(agent) or {}).get("info") or {}
                seat.note(agent, act.reward, act.terminated, act.truncated, info)

    def _look(self, answer: Mapping[str, Any]) -> None:
        self._turn = [str(agent) for agent in answer.get("turn") or ()]
        self._views = answer.get("views") or {}
        self._text = str(answer.get("text") or "")

    def _view(self, agent: str) -> Mapping[str, Any]:
        view = self._views.get(agent)
        if not isinstance(view, dict):
            raise LaneFailed(f"{self._host.who}: it is the turn of {agent}, and there is no view for it")
        return view

    def _operator(self, agent: str) -> str:
        return self._seat(agent).name

    def _seat(self, agent: str) -> Seat:
        seat = self._seating.seats.get(agent if self._is_multi_agent else ALONE)
        if seat is None:
            raise LaneFailed(f"agents: {agent} has no operator in the lane {self._seating.lane_name}.")
        return seat

    def _seats(self) -> list[Seat]:
        """Those that decide for an agent of this episode, in the order of the agents."""
        return list({id(seat): seat for seat in map(self._seat, self._places)}.values())

    def _shown(self, agent: str) -> str:
        """The agent's id in telemetry: in a single-agent lane, the operator's name."""
        return agent if self._is_multi_agent else self._operator(agent)
