"""Who decides for the agents of a table: operators in processes of their own, and people."""

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from mosaic_sdk import names

from eval_worker.children import Asked
from eval_worker.desk import Desk, Question
from eval_worker.game import LaneFailed

TEXT = "text"
View = Mapping[str, Any]  # what an agent sees: observation, info, action_mask, text, image, actions


@dataclass(frozen=True)
class Place:
    """An agent of the environment, as its host describes it for an episode."""

    lane: int
    lane_name: str
    agent_id: str
    env_id: str
    seed: int  # for the operator's own random numbers
    episode_index: int
    action_space: Mapping[str, Any] | None
    observation_space: Mapping[str, Any] | None
    actions: list[Mapping[str, Any]] | None

    def action_name(self, action: Any, moves: list[Mapping[str, Any]] | None) -> str | None:
        """The name of a value in the list of actions; `moves`: the list of this step, if it has its own."""
        listed = self.actions if moves is None else moves
        return next((one.get("name") for one in listed or () if one.get("value") == action), None)


@dataclass(frozen=True)
class Decision:
    """An action, with what its operator wrote about it."""

    action: Any
    text: str = ""
    latency_ms: float = 0.0


class OperatorSeat:
    """An operator process. It decides for one agent, or for several that share one policy."""

    def __init__(self, name: str, child: Asked) -> None:
        self.name = name
        self._child = child
        self._wants_results: set[str] = set()

    def begin(self, place: Place) -> list[str]:
        """Begin an episode; returns the views that the operator looks at, besides the observation."""
        about = {"agent_id": place.agent_id, "seed": place.seed, "env_id": place.env_id, "actions": place.actions}
        spaces = {"action_space": place.action_space, "observation_space": place.observation_space}
        where = {"lane": place.lane_name, "episode_index": place.episode_index}
        answer = self._child.ask(names.AGENT_READY, {"cmd": names.INIT_AGENT, **about, **spaces, **where})
        self._wants_results.discard(place.agent_id)
        if answer.get("feedback"):
            self._wants_results.add(place.agent_id)
        views = answer.get("views")
        return [str(view) for view in views] if isinstance(views, list) else []

    def decide(self, agent_id: str, view: View, step_index: int, reward: float, is_first: bool) -> Decision:
        shown = {key: view[key] for key in ("info", "action_mask", "actions", "text", "image") if view.get(key)}
        place = {"agent_id": agent_id, "step_index": step_index, "reward": reward, "is_first": is_first}
        began = time.monotonic()
        question = {"cmd": names.SELECT_ACTION, "observation": view.get("observation"), **shown, **place}
        answer = self._child.ask(names.ACTION_SELECTED, question)
        if "action" not in answer:
            raise LaneFailed(f"{self._child.who}: action_selected has no action")
        return Decision(answer["action"], str(answer.get("text") or ""), _ms_since(began))

    def note(self, agent_id: str, reward: float, terminated: bool, truncated: bool, info: Mapping[str, Any]) -> None:
        """Tell the operator what its action led to, if it wants to know."""
        if agent_id in self._wants_results:
            result = {"reward": reward, "terminated": terminated, "truncated": truncated, "info": info}
            self._child.ask(names.NOTED, {"cmd": names.STEP_RESULT, "agent_id": agent_id, **result})

    def close(self, for_good: bool = False) -> None:
        self._child.close(for_good)


class HumanSeat:
    """A person. Each action is asked for at the desk; those that the journal has are not asked for again."""

    def __init__(self, name: str, desk: Desk, time_limit_s: float | None) -> None:
        self.name = name
        self.desk = desk
        self._time_limit_s = time_limit_s

    def begin(self, place: Place) -> list[str]:
        return [TEXT]

    def question(self, place: Place, view: View, step_index: int, note: str = "") -> Question:
        text, moves = str(view.get("text") or ""), view.get("actions")
        return Question(
            lane=place.lane,
            agent_id=place.agent_id,
            operator=self.name,
            episode_index=place.episode_index,
            step_index=step_index,
            text=f"{note}\n{text}" if note else text,
            actions=place.actions if moves is None else moves,
            mask=view.get("action_mask") if moves is None else None,
            time_limit_s=self._time_limit_s,
        )


Seat = OperatorSeat | HumanSeat


def _ms_since(began: float) -> float:
    return round(1000 * (time.monotonic() - began), 3)
