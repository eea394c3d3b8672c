"""Operators and players in processes of their own, seen from the program that asks them.

ProcessOperator    decides for an environment that is elsewhere     init_agent, select_action, step_result
ProcessPlayer      owns its environment as well                     reset, step
"""

from typing import Any, Dict, Mapping, NamedTuple, Optional

from mosaic_sdk import names
from mosaic_sdk.operators.arrays import encode
from mosaic_sdk.operators.child import Child, Message
from mosaic_sdk.operators.operator import Agent, Decision, OperatorError, StepResult

_SPOKEN = (
    "action_mask",
    "actions",
    "text",
    "image",
    "step_index",
    "reward",
)  # keys of a command that an operator finds in `info`
_FOLLOWS_S = 10.0  # for the line that must follow the last step at once


class Refused(OperatorError):
    """The process answered with an error, and lives on. `kind` and `report` are that answer's, if it has them."""

    def __init__(self, message: str, kind: str = "", report: Optional[Mapping[str, Any]] = None) -> None:
        super().__init__(message)
        self.kind = kind
        self.report = dict(report or {})


class ProcessOperator:
    """An Operator over a Child, for one agent. The child may serve other agents too (link groups)."""

    def __init__(self, child: Child, agent: Agent, timeout_s: Optional[float] = 60.0) -> None:
        self.child = child
        self.agent = agent
        self.timeout_s = timeout_s
        self.feedback = False
        self.views: Any = None
        self._is_first = True

    def reset(self, seed: int) -> None:
        """Begin an episode. OperatorError if the operator cannot act in the agent's spaces."""
        agent = self.agent
        self._is_first = True
        about = {"seed": seed, "env_id": agent.env_id, "actions": agent.actions}
        about.update({name: agent.command[name] for name in ("lane",) if name in agent.command})
        spaces = {"action_space": agent.action_space, "observation_space": agent.observation_space}
        answer = self._ask(names.AGENT_READY, cmd=names.INIT_AGENT, **about, **spaces)
        self.feedback = bool(answer.get("feedback"))
        self.views = answer.get("views")  # what it wants to be shown; None: it did not say

    def decide(self, obs: Any, info: Optional[Mapping[str, Any]] = None) -> Decision:
        """The action, with the text and the report that came with it."""
        info = info or {}
        spoken = {name: encode(info[name]) for name in _SPOKEN if info.get(name) is not None}
        rest = {name: value for name, value in info.items() if name not in _SPOKEN}
        question = {"observation": encode(obs), "info": encode(rest), "is_first": self._is_first, **spoken}
        answer = self._ask(names.ACTION_SELECTED, cmd=names.SELECT_ACTION, **question)
        if "action" not in answer:
            raise Refused(f"{self.child.name}: action_selected has no action")
        self._is_first = False
        text, report = answer.get("text"), answer.get("report")
        return Decision(answer["action"], str(text or ""), report if isinstance(report, dict) else {})

    def select_action(self, obs: Any, info: Optional[Mapping[str, Any]] = None) -> Any:
        return self.decide(obs, info).action

    def on_step(self, result: StepResult) -> None:
        if self.feedback:
            fields = {**result._asdict(), "info": encode(result.info)}
            self._ask(names.NOTED, cmd=names.STEP_RESULT, **fields)

    def close(self) -> None:
        self.child.close()

    def _ask(self, wanted: str, **command: Any) -> Message:
        command["agent_id"] = self.agent.agent_id
        return _checked(self.child.ask(command, self.timeout_s), wanted, self.child)


class PlayerStep(NamedTuple):
    """One step of a player lane."""

    action: Any
    reward: float
    terminated: bool
    truncated: bool
    fields: Dict[str, Any]  # all of the answer

    @property
    def is_last(self) -> bool:
        return self.terminated or self.truncated


class ProcessPlayer:
    """A worker in interactive mode that owns its environment."""

    def __init__(self, child: Child, timeout_s: Optional[float] = 60.0) -> None:
        self.child = child
        self.timeout_s = timeout_s

    def reset(self, seed: int, options: Optional[Mapping[str, Any]] = None) -> Message:
        """Begin an episode; the fields of `ready`."""
        command = {"cmd": names.RESET, "seed": seed, "options": None if options is None else dict(options)}
        return _checked(self.child.ask(command, self.timeout_s), names.READY, self.child)

    def step(self, action: Any = None) -> PlayerStep:
        """Take the policy's action, or the given one."""
        command = {"cmd": names.STEP} if action is None else {"cmd": names.STEP, "action": encode(action)}
        answer = self.child.ask(command, self.timeout_s)
        if answer[names.TYPE_KEY] == names.EPISODE_DONE:
            # A stranger's episode that was over already.
            return _as_step(answer)._replace(reward=0.0, terminated=not answer.get("truncated"))
        step = _as_step(_checked(answer, names.STEP, self.child))
        if step.is_last:
            _checked(self.child.read(_FOLLOWS_S), names.EPISODE_DONE, self.child)
        return step

    def close(self) -> None:
        self.child.close()


def _checked(answer: Message, wanted: str, child: Child) -> Message:
    if answer[names.TYPE_KEY] == names.ERROR:
        message = f"{child.name}: {answer.get('message') or 'an error without a message'}"
        report = answer.get("report")
        raise Refused(message, str(answer.get("kind") or ""), report if isinstance(report, dict) else None)
    if answer[names.TYPE_KEY] != wanted:
        # Question and answer no longer match, and it cannot be known which answer is the next.
        child.close()
        raise OperatorError(f"{child.name}: answered {answer[names.TYPE_KEY]!r} where {wanted!r} was expected")
    return answer


def _as_step(answer: Message) -> PlayerStep:
    reward = answer.get("reward", 0.0)
    number = float(reward) if isinstance(reward, (int, float)) else 0.0
    ends = bool(answer.get("terminated")), bool(answer.get("truncated"))
    return PlayerStep(answer.get("action"), number, *ends, answer)
