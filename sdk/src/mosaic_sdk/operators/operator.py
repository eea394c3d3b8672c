"""What an operator is: it chooses the actions of one agent.

    class Leftmost:
        def reset(self, seed): ...                              # an episode begins
        def select_action(self, obs, info=None): return 0
        def on_step(self, result): ...                          # what the action led to
        def close(self): ...

`info` is the environment's info; MOSAIC adds `action_mask`, `text`, `image` (base64 of a PNG), `step_index` and
`reward` (of the last action), each only where there is one. `obs` holds lists and numbers, and numpy arrays for large
parts if numpy is installed.

An operator may return a Decision instead of an action, to explain itself or to report numbers.
"""

from typing import Any, Mapping, NamedTuple, Optional, Protocol

from mosaic_sdk.player import Agent, Decision

__all__ = ["Agent", "Decision", "Operator", "OperatorError", "StepResult"]


class OperatorError(Exception):
    """An operator could not decide: it died, did not answer in time, or refused. The text says which and why."""


class StepResult(NamedTuple):
    """What an agent's last action led to."""

    reward: float
    terminated: bool
    truncated: bool
    info: Mapping[str, Any] = {}


class Operator(Protocol):
    """Decides for one agent. Set `feedback = False` in the class if `on_step` has nothing to do: then it is not called,
    which saves a round trip at every step."""

    def reset(self, seed: int) -> None: ...
    def select_action(self, obs: Any, info: Optional[Mapping[str, Any]] = None) -> Any: ...
    def on_step(self, result: StepResult) -> None: ...
    def close(self) -> None: ...
