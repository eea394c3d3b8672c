"""An operator as a process: mosaic_sdk.interactive asks it over pipes.

class Leftmost: …                                   # an Operator

sys.exit(serve_operator(lambda agent: Leftmost(agent.action_space)))
"""

import os
from typing import Any, Callable, Dict, Mapping, Optional

from mosaic_sdk.interactive import serve
from mosaic_sdk.names import WorkerEnv
from mosaic_sdk.operators.operator import Agent, Operator, StepResult
from mosaic_sdk.player import AgentId, CommandError, Player, Request

MakeOperator = Callable[[Agent], Operator]


def serve_operator(
    make: MakeOperator, *, run_id: Optional[str] = None, about: Optional[Mapping[str, Any]] = None
) -> int:
    """Answer commands until `stop` or the end of stdin; returns the exit code.

    `make` is called for each agent that init_agent names, and again when its spaces change. `about`: further fields of
    `agent_ready`.
    """
    run_id = os.environ.get(WorkerEnv.RUN_ID, "") if run_id is None else run_id
    return serve(lambda: OperatorPlayer(make, about or {}), run_id=run_id)


class OperatorPlayer(Player):
    """One operator per agent, behind the interactive protocol."""

    def __init__(self, make: MakeOperator, about: Mapping[str, Any]) -> None:
        self._make = make
        self._about = dict(about)
        self._operators: Dict[AgentId, Operator] = {}
        self._agents: Dict[AgentId, Agent] = {}

    def describe(self) -> Dict[str, Any]:
        return self._about

    def begin_agent(self, agent: Agent) -> Mapping[str, Any]:
        before = self._agents.get(agent.agent_id)
        if before is None or _same_for_all_episodes(before) != _same_for_all_episodes(agent):
            self._replace(agent)
        operator = self._operators[agent.agent_id]
        operator.reset(agent.seed or 0)
        return {"feedback": bool(getattr(operator, "feedback", True))}

    def select_action(self, request: Request) -> Any:
        return self._operator(request.agent_id).select_action(request.observation, _info(request))

    def step_result(self, agent_id: AgentId, result: Mapping[str, Any]) -> None:
        self._operator(agent_id).on_step(StepResult(**result))

    def close(self) -> None:
        for operator in self._operators.values():
            operator.close()
        self._operators.clear()

    def _replace(self, agent: Agent) -> None:
        old = self._operators.pop(agent.agent_id, None)
        self._agents.pop(agent.agent_id, None)
        if old is not None:
            old.close()
        self._operators[agent.agent_id] = self._make(agent)
        self._agents[agent.agent_id] = agent

    def _operator(self, agent_id: AgentId) -> Operator:
        if agent_id not in self._operators:
            raise CommandError(f"There is no agent {agent_id!r} yet. Send init_agent first.")
        return self._operators[agent_id]


def _same_for_all_episodes(agent: Agent) -> Any:
    return agent.env_id, agent.action_space, agent.observation_space, agent.actions


def _info(request: Request) -> Dict[str, Any]:
    """The environment's info, and what else the command says of this step."""
    extra = {name: request.command.get(name) for name in ("text", "image", "step_index")}
    extra.update(action_mask=request.action_mask, reward=request.reward)
    return {**request.info, **{name: value for name, value in extra.items() if value is not None}}
