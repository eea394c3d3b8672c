"""What a lane of an evaluation shows: its episode, its last step, and what it asks a person. No toolkit, no daemon.

A lane plays one episode after the other with one operator, or with one operator per agent.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

STARTING = "starting"  # no episode yet
PLAYING = "playing"  # an episode is in progress
ASKING = "asking"  # it waits for a person's action
DONE = "done"  # the episode is over: the lane waits, or has no seed left
FAILED = "failed"  # the episode was ended by a failure


@dataclass(frozen=True)
class Choice:
    """An action that a person can choose, with the keys for it. Without any the screen chooses one."""

    value: Any
    name: str
    keys: tuple[str, ...] = ()


@dataclass(frozen=True)
class ActionRequest:
    """A lane asks a person for an action. Answer it with `act`."""

    request: Any  # identifies it; `act` sends it back, so that a late answer is not taken for the next one
    lane: int
    agent_id: str
    operator: str
    episode_index: int
    step_index: int
    text: str  # the environment as text
    choices: tuple[Choice, ...]  # empty: any value of the action space
    deadline_s: float | None  # how long the person may take; None: without limit
    asked_at: float  # unix seconds

    def time_left_s(self, now: float) -> float | None:
        return None if self.deadline_s is None else max(0.0, self.asked_at + self.deadline_s - now)

    def value_of(self, word: str) -> Any:
        """The value of the choice with this name, else this key, else this value; KeyError if there is none."""
        for choice in self.choices:
            if word == choice.name:
                return choice.value
        for choice in self.choices:
            if word in choice.keys:
                return choice.value
        return {str(choice.value): choice.value for choice in self.choices}[word]

    def is_for(self, name: str) -> bool:
        """Whether it is a request to this operator or agent; an empty name is anybody's."""
        return not name or name in (self.operator, self.agent_id)


@dataclass(frozen=True)
class AgentState:
    """The last step of one agent of a lane."""

    agent_id: str
    operator: str = ""
    action: Any = None
    action_name: str = ""
    reward: float | None = None
    episode_return: float = 0.0
    text: str = ""  # what its operator wrote, such as an LLM's answer


@dataclass(frozen=True)
class LaneState:
    """A lane as of the last event. `action`, `reward`, `episode_return` and `text` are those of the agent that moved
    last; `agents` has all agents of a multi-agent environment."""

    index: int
    name: str
    operator: str = ""  # of a single-agent lane
    state: str = STARTING
    seed: int | None = None
    episode_index: int = -1
    step_index: int = -1
    action: Any = None
    action_name: str = ""
    reward: float | None = None
    episode_return: float = 0.0
    text: str = ""
    view: str = ""  # the environment as text
    reason: str = ""  # why the episode failed
    failure: str = ""  # seed and reason of the newest episode that failed; it stays while the next ones are played
    requests: tuple[ActionRequest, ...] = ()  # unanswered
    agents: Mapping[str, AgentState] = field(default_factory=dict)
    operators: Mapping[str, str] = field(default_factory=dict)  # by agent, group or "*"; empty if single-agent
    episodes_done: int = 0
    episodes_total: int | None = None
    failures: int = 0
    counted_episode: int = -1  # the newest one in `episodes_done`
    scores: int = 0  # how many returns `total_return` adds up: one per agent and episode that did not fail
    total_return: float = 0.0

    @property
    def request(self) -> ActionRequest | None:
        """What it asks a person; the first one if several agents are asked at once."""
        return self.requests[0] if self.requests else None

    @property
    def mean_return(self) -> float | None:
        return self.total_return / self.scores if self.scores else None

    def to_dict(self) -> dict[str, Any]:
        """The object that `--json` prints."""
        hidden = ("requests", "counted_episode", "scores")
        shown = {key: value for key, value in asdict(self).items() if key not in hidden}
        request = self.request
        return {**shown, "mean_return": self.mean_return, "request": asdict(request) if request else None}
