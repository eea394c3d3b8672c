"""What the agents know of a game: a goal and a list of actions in words, and after each step a text."""

from typing import Any, NamedTuple

from balrog_worker.actions import Actions


class View(NamedTuple):
    """What the agent sees. `lasting` stays in its history; `passing` is shown once, with the newest view."""

    lasting: str
    passing: str = ""


class Game:
    """One task. Its methods are those of a Gymnasium environment, so that FastLane can show it.

    `progress`: how far the episode came, from 0 to 100.
    """

    render_mode: str | None = "rgb_array"
    actions: Actions
    default: str  # what is done if an answer names no action
    noop: str  # what scripted:noop does
    goal: str  # the first message; complete after reset
    max_steps: int
    progress: float = 0.0

    def reset(self, *, seed: int) -> tuple[View, dict[str, Any]]:
        raise NotImplementedError

    def step(self, action: str) -> tuple[View, float, bool, bool, dict[str, Any]]:
        raise NotImplementedError

    def render(self) -> Any:
        """The picture as an array of rows, columns and RGB."""
        return None

    def choices(self) -> list[str]:
        """What a random agent chooses from."""
        return self.actions.names

    def details(self) -> dict[str, Any]:
        """What else is recorded about an episode that is over."""
        return {}

    def close(self) -> None: ...


def compass(east: int, south: int) -> str:
    """A place relative to the player: "2 steps north and 1 step east"."""
    parts = []
    if south:
        parts.append(_steps(abs(south), "south" if south > 0 else "north"))
    if east:
        parts.append(_steps(abs(east), "east" if east > 0 else "west"))
    return " and ".join(parts) or "here"


def _steps(count: int, direction: str) -> str:
    return f"{count} step{'' if count == 1 else 's'} {direction}"
