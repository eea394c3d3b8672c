"""What a worker supplies for interactive mode: a Player, which plays episodes and chooses actions.

    class AcmePlayer(Player):
        def __init__(self, config):
            import acme                                    # created only when a command needs it

            self.env, self.policy = acme.make(config.env_id), acme.load(config.policy_path)

        def describe(self):
            return {"env_id": …, "algo": …, "policy": "checkpoint"}

        def reset(self, seed, options):
            self.observation, _ = self.env.reset(seed=seed, options=options)
            return {"observation_shape": [4]}              # further fields of `ready`

        def step(self, action):
            action = self.policy(self.observation) if action is None else action
            self.observation, reward, terminated, truncated, _ = self.env.step(action)
            return Step(action, reward, terminated, truncated)

        def select_action(self, request):
            return self.policy(request.observation)

Raise CommandError for a command that cannot be executed now, ConfigError (or CheckpointError) if none ever can be.
"""

from typing import Any, Dict, List, Mapping, NamedTuple, Optional, Union

AgentId = Union[str, int, None]


class CommandError(Exception):
    """A command that cannot be executed now. The text says what to send instead.

    `fields`: further fields of the answer, such as kind="infrastructure" for a failure that is not the policy's.
    """

    def __init__(self, message: str, **fields: Any) -> None:
        super().__init__(message)
        self.fields = fields


class Step(NamedTuple):
    """The result of one environment step."""

    action: Any  # the one that was taken
    reward: float
    terminated: bool
    truncated: bool
    fields: Mapping[str, Any] = {}  # further fields of the message


class Request(NamedTuple):
    """An observation for which an action is requested."""

    observation: Any
    info: Mapping[str, Any] = {}
    action_mask: Optional[List[Any]] = None  # a 1 for each action that is allowed; None: all are
    agent_id: AgentId = None
    is_first: bool = False  # the agent's first one since init_agent or reset, or the command says so
    reward: float = 0.0  # of the agent's last action
    command: Mapping[str, Any] = {}  # all of the command


class Agent(NamedTuple):
    """An agent of an environment elsewhere, for which actions will be requested: what init_agent says of it."""

    agent_id: AgentId = None
    seed: Optional[int] = None
    env_id: str = ""
    action_space: Optional[Mapping[str, Any]] = None  # described as in mosaic_sdk.operators.spaces; None: not given
    observation_space: Optional[Mapping[str, Any]] = None
    actions: Optional[List[Mapping[str, Any]]] = None  # value, name and key of each discrete action
    command: Mapping[str, Any] = {}  # all of the command


class Decision(NamedTuple):
    """An action with more about it. A player or an operator may return it in place of an action."""

    action: Any
    text: str = ""  # what an LLM wrote
    report: Mapping[str, Any] = {}  # numbers about this decision: tokens, retries …


class Player:
    """One environment and one policy. Override what the worker supports."""

    def describe(self) -> Dict[str, Any]:
        """Fields of `ready` and `agent_ready`: env_id, algo, policy."""
        return {}

    def reset(self, seed: Optional[int], options: Optional[Dict[str, Any]]) -> Mapping[str, Any]:
        """Begin an episode; returns further fields of `ready`."""
        raise CommandError("This worker has no environment to step. Send init_agent and select_action.")

    def step(self, action: Any) -> Step:
        """Take `action`, or the policy's if it is None. CommandError for an invalid action: the episode continues."""
        raise CommandError("This worker has no environment to step. Send init_agent and select_action.")

    def init_agent(self, agent_id: AgentId, seed: Optional[int]) -> None:
        """Prepare to select actions for an agent whose environment is elsewhere; its next request begins an episode."""

    def begin_agent(self, agent: Agent) -> Mapping[str, Any]:
        """init_agent with all that the command says; returns further fields of `agent_ready`.

        {"feedback": True} asks for `step_result`. CommandError if the player cannot act in the agent's spaces.
        """
        self.init_agent(agent.agent_id, agent.seed)
        return {}

    def select_action(self, request: Request) -> Any:
        """The action for an observation, or a Decision."""
        raise CommandError("This worker does not select actions for other environments.")

    def step_result(self, agent_id: AgentId, result: Mapping[str, Any]) -> None:
        """What the agent's last action led to: reward, terminated, truncated, info."""

    def close(self) -> None:
        """Release the environment."""


def plain(value: Any) -> Any:
    """A value as JSON can hold it: arrays and tensors become lists, their scalars numbers."""
    if isinstance(value, Mapping):
        return {str(key): plain(part) for key, part in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(part) for part in value]
    return value.tolist() if hasattr(value, "tolist") else value
