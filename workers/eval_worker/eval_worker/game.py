"""What a lane plays: one episode after the other, a step at a time.

    game.begin(seed, episode_index)  →  Opening
    game.step()                      →  Turn, until one is_done

Openings and turns hold plain values only: the journal keeps them, and a resumed evaluation prints them again.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any, Protocol


class LaneFailed(Exception):
    """The episode cannot go on. The text is the reason that users read."""


class Hopeless(LaneFailed):
    """Nor can any later episode: a process says that its config cannot be used."""


class Forfeit(LaneFailed):
    """An operator has played badly enough to lose the episode; nothing is broken, and the episode counts."""


class Interrupted(Exception):
    """A command ended what the lane was waiting for."""


@dataclass(frozen=True)
class Opening:
    """The start of an episode."""

    operators: Mapping[str, str]  # by agent, in the order in which they are reported
    first_observation: str = ""  # a digest; empty if the child does not tell it
    text: str = ""  # the environment as text
    is_multi_agent: bool = False
    elapsed_s: float = 0.0

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True)
class Act:
    """What one agent did in a step, and what it got."""

    agent_id: str
    operator: str
    action: Any = None  # None: it was not this agent's turn
    action_name: str | None = None
    reward: float = 0.0
    terminated: bool = False
    truncated: bool = False
    text: str = ""  # what its operator wrote
    latency_ms: float | None = None  # None: nobody was asked


@dataclass(frozen=True)
class Turn:
    """One step of an environment."""

    acts: tuple[Act, ...]
    is_done: bool
    success: bool | None = None
    view: str = ""  # the environment as text, after the step
    elapsed_s: float = 0.0
    is_cut: bool = False  # max_steps ended the episode

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_dict(cls, fields: Mapping[str, Any]) -> "Turn":
        return cls(**{**fields, "acts": tuple(Act(**act) for act in fields["acts"])})

    def cut(self) -> "Turn":
        """The same turn as the last one of an episode that reached max_steps."""
        acts = tuple(act if act.terminated else replace(act, truncated=True) for act in self.acts)
        return replace(self, acts=acts, is_done=True, is_cut=True)


class Game(Protocol):
    """One environment with those who decide in it. `begin` and `step` may raise LaneFailed."""

    def begin(self, seed: int, episode_index: int) -> Opening: ...

    def step(self) -> Turn: ...

    def close(self, for_good: bool = False) -> None:
        """End its processes; unless it is for good, the next episode starts them again. It may be called from another
        thread, to interrupt the other two methods."""
        ...
