"""The environment below all wrappers: its spaces, what it showed first, and whether its task was done.

An evaluation compares the first observations of its lanes, whatever the wrappers of each. No library is imported here.
"""

import enum
import functools
from typing import Any, Dict, List, Optional

_SUCCESS = ("success", "is_success")


class Bare:
    """The unwrapped part of an environment of Gymnasium's kind. Call `forget` before each reset."""

    def __init__(self, env: Any) -> None:
        base = env.unwrapped
        self.observation_space, self.action_space = base.observation_space, base.action_space
        self.actions = _named_actions(base)
        self.first: Any = None
        self.success: Optional[bool] = None
        self._listen(base)

    def forget(self) -> None:
        self.first = self.success = None

    def _listen(self, base: Any) -> None:
        reset, step = base.reset, base.step
        # MiniGrid and BabyAI do not say it, but reward nothing else than the goal, and only at the end.
        is_grid = any(kind.__module__.partition(".")[0] == "minigrid" for kind in type(base).__mro__)

        @functools.wraps(reset)  # with its signature, which Gymnasium checks
        def heard_reset(*args: Any, **options: Any) -> Any:
            outcome = reset(*args, **options)
            # Not a later one: a wrapper may start again, after no-ops for instance.
            self.first = outcome[0] if self.first is None else self.first
            return outcome

        @functools.wraps(step)
        def heard_step(action: Any) -> Any:
            outcome = step(action)
            self.success = success_of(outcome[-1])
            if self.success is None and is_grid:
                self.success = bool(outcome[2]) and float(outcome[1]) > 0
            return outcome

        base.reset, base.step = heard_reset, heard_step


def _named_actions(base: Any) -> Optional[List[Dict[str, Any]]]:
    """What the environment calls its actions: MiniGrid has an enumeration of them, Atari a list of meanings."""
    actions = getattr(base, "actions", None)
    if isinstance(actions, enum.EnumMeta):
        return [{"value": int(action.value), "name": action.name} for action in actions]  # type: ignore[var-annotated]
    meanings = base.get_action_meanings() if hasattr(base, "get_action_meanings") else None
    return [{"value": value, "name": name.lower()} for value, name in enumerate(meanings)] if meanings else None


def success_of(info: Any) -> Optional[bool]:
    """Whether an info says that the task was done; None if it says nothing."""
    found = [info[name] for name in _SUCCESS if name in info] if isinstance(info, dict) else []
    return bool(found[0]) if found else None
