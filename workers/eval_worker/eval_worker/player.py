"""A player lane: an RL worker in interactive mode that owns its environment, with its own wrappers."""

import time
from collections.abc import Mapping
from typing import Any

from mosaic_sdk import names

from eval_worker.children import Asked
from eval_worker.game import Act, LaneFailed, Opening, Turn


class PlayerGame:
    """One child plays alone. `reset` begins an episode, each `step` is its own decision."""

    def __init__(self, operator: str, child: Asked, max_steps: int | None) -> None:
        self._operator = operator
        self._child = child
        self._max_steps = max_steps
        self._steps = 0
        self._action_names: dict[Any, str] = {}

    def begin(self, seed: int, episode_index: int) -> Opening:
        began = time.monotonic()
        ready = self._child.ask(names.READY, {"cmd": names.RESET, "seed": seed})
        self._steps = 0
        self._action_names = _names_of(ready.get("actions"))
        return Opening(
            operators={self._operator: self._operator},
            first_observation=str(ready.get("first_observation") or ""),
            text=str(ready.get("text") or ""),
            elapsed_s=time.monotonic() - began,
        )

    def step(self) -> Turn:
        began = time.monotonic()
        answer = self._child.ask(names.STEP, {"cmd": names.STEP})
        ends = bool(answer.get("terminated")), bool(answer.get("truncated"))
        if any(ends):
            self._child.read(names.EPISODE_DONE)
        self._steps += 1
        elapsed_s = time.monotonic() - began
        action = answer.get("action")
        act = Act(
            agent_id=self._operator,
            operator=self._operator,
            action=action,
            action_name=answer.get("action_name") or self._action_names.get(_key(action)),
            reward=_number(answer.get("reward"), self._operator),
            terminated=ends[0],
            truncated=ends[1],
            text=str(answer.get("text") or ""),
            latency_ms=round(1000 * elapsed_s, 3),
        )
        turn = Turn((act,), any(ends), _success(answer), str(answer.get("view") or ""), elapsed_s)
        return turn.cut() if self._steps == self._max_steps and not turn.is_done else turn

    def close(self, for_good: bool = False) -> None:
        self._child.close(for_good)


def _names_of(actions: Any) -> dict[Any, str]:
    listed = actions if isinstance(actions, list) else []
    return {_key(one["value"]): str(one["name"]) for one in listed if isinstance(one, Mapping) and "name" in one}


def _key(action: Any) -> Any:
    return action if isinstance(action, (int, str)) else None


def _number(value: Any, operator: str) -> float:
    if isinstance(value, (int, float)):
        return float(value)
    raise LaneFailed(f"operator {operator}: a step has the reward {value!r}, which is not a number")


def _success(answer: Mapping[str, Any]) -> bool | None:
    success = answer.get("success")
    return success if isinstance(success, bool) else None
