"""The operator: for each request of an action it asks the model, checks its answer and keeps the ledger.

    request ─▶ prompt ─▶ former ledger? ─▶ endpoint ─▶ answer ─▶ ledger ─▶ action
                                              ▲           │ not legal: the model is told why, illegal_retries times,
                                              └───────────┘ then the fallback

A failure of the endpoint ends the decision with an error of kind "infrastructure". It never becomes an action, because
it says nothing about how well the model plays.
"""

import os
import time
from random import Random
from typing import Any

from mosaic_sdk.config import ConfigError
from mosaic_sdk.llm.credentials import load_key
from mosaic_sdk.llm.endpoint import Body, Endpoint
from mosaic_sdk.llm.faults import EndpointError
from mosaic_sdk.llm.greeting import greet
from mosaic_sdk.llm.ledger import Former, Ledger
from mosaic_sdk.llm.slots import Slots
from mosaic_sdk.names import WorkerEnv
from mosaic_sdk.player import Agent, AgentId, CommandError, Decision, Player, Request

from llm_worker.actions import Actions, IllegalAnswer, Named
from llm_worker.answer import Answer, read_answer
from llm_worker.config import END, LlmConfig
from llm_worker.prompt import Message, Prompt, correction, digest, response_format, written
from llm_worker.space import actions_of
from llm_worker.telemetry import Record, report_of

INFRASTRUCTURE, FORFEIT = "infrastructure", "forfeit"
REPLAY_VARIABLE = "MOSAIC_REPLAY_LEDGER"
FOLDER = "operators"


class LlmPlayer(Player):
    """Chooses actions for any number of agents, one request at a time."""

    def __init__(self, config: LlmConfig) -> None:
        self._config = config
        self._name = os.environ.get(WorkerEnv.OPERATOR) or "llm"
        folder = _folder()
        key = load_key(config)
        self._former = Former(_former_path(config))
        self._ledger = Ledger(os.path.join(folder, f"{self._name}.ledger.jsonl") if folder else "")
        self._endpoint = Endpoint(config, key, Slots(folder, self._name, config.max_concurrency))
        self._has_key = key.is_set
        self._server: dict[str, Any] | None = None  # None: the endpoint was not reached yet
        self._seats: dict[AgentId, Seat] = {}

    def describe(self) -> dict[str, Any]:
        return {"algo": "llm", "policy": self._config.model}

    def begin_agent(self, agent: Agent) -> dict[str, Any]:
        """Begin an episode. Before the first one the endpoint, the key and the model are checked."""
        if agent.action_space is not None or agent.actions:
            actions_of(agent.action_space, agent.actions, None, self._config.fallback)  # refuses unsuitable spaces
        if self._server is None:
            self._server = greet(self._endpoint, self._config, self._has_key)
        self._seats[agent.agent_id] = Seat(agent, Prompt(self._config, agent))
        return {"feedback": False, "views": self._config.views}

    def select_action(self, request: Request) -> Decision:
        seat = self._seats.get(request.agent_id)
        if seat is None:
            raise CommandError(f"There is no agent {request.agent_id!r} yet. Send init_agent first.")
        actions = seat.actions(request)
        step_index = seat.next_step(request)
        messages = seat.prompt.messages(request, actions, step_index)
        place = self._place(seat, step_index, digest(self._body(messages, actions)))
        row = self._former.take(place) or self._decide(messages, actions, place)
        self._keep(row)
        return self._told(row, seat, messages, actions)

    def close(self) -> None:
        self._endpoint.close()
        self._ledger.close()

    def _decide(self, messages: list[Message], actions: Actions, place: dict[str, Any]) -> dict[str, Any]:
        record = Record(self._config, place)
        try:
            answer = self._ask(list(messages), actions, record)
        except EndpointError as error:
            return record.row(action=None, name=None, text="", error=f"{self._config.base_url}: {error}")
        if answer is not None:
            return record.row(action=answer.action, name=actions.name_of(answer.action), text=answer.text)
        if self._config.fallback == END:
            return record.row(action=None, name=None, text="", fallback=END)
        random = Random(f"{self._name}:{place['seed']}:{place['agent_id']}:{place['step_index']}")
        policy, action = actions.fallback(self._config.fallback, random)
        return record.row(action=action, name=actions.name_of(action), text="", fallback=policy)

    def _ask(self, messages: list[Message], actions: Actions, record: Record) -> Answer | None:
        """The model's answer; None if it chose no legal action as often as it was asked."""
        deadline = time.monotonic() + self._config.decision_timeout_s
        for _ in range(self._config.illegal_retries + 1):
            reply = self._endpoint.complete(self._body(messages, actions), record, deadline)
            record.answered(reply)
            try:
                return read_answer(reply, self._config, actions)
            except IllegalAnswer as problem:
                record.was_illegal(problem.kind)
                messages += correction(reply.content, str(problem))
        return None

    def _body(self, messages: list[Message], actions: Actions) -> Body:
        config = self._config
        body: Body = {"model": config.model, "messages": messages, config.max_tokens_name: config.max_tokens}
        optional = {"temperature": config.temperature, "seed": config.seed, "extra_body": config.extra_body or None}
        optional["response_format"] = response_format(config, actions)
        return {**body, **{name: value for name, value in optional.items() if value is not None}}

    def _place(self, seat: "Seat", step_index: int, prompt_hash: str) -> dict[str, Any]:
        agent = seat.agent
        return {
            "run": self._config.run_id,
            "operator": self._name,
            "lane": agent.command.get("lane"),
            "agent_id": agent.agent_id,
            "env_id": agent.env_id,
            "episode_index": agent.command.get("episode_index"),
            "seed": agent.seed,
            "step_index": step_index,
            "prompt_hash": prompt_hash,
            "server": self._server,
        }

    def _keep(self, row: dict[str, Any]) -> None:
        try:
            self._ledger.append(row)
        except OSError as error:
            raise CommandError(
                f"The ledger cannot be written ({error.strerror}), and no decision may be missing from it.",
                kind=INFRASTRUCTURE,
            ) from None

    def _told(self, row: dict[str, Any], seat: "Seat", messages: list[Message], actions: Actions) -> Decision:
        report = report_of(row)
        if row["error"]:
            raise CommandError(f"The endpoint failed: {row['error']}.", kind=INFRASTRUCTURE, report=report)
        if row["fallback"] == END:
            asked = self._config.illegal_retries + 1
            raise CommandError(f"The model chose no legal action in {asked} answers.", kind=FORFEIT, report=report)
        note = "Your last answer could not be used; the action was chosen for you." if row["fallback"] else ""
        answer = written(self._config, actions.name_of(row["action"]), row["text"])
        seat.prompt.remember(messages, answer, note)
        return Decision(row["action"], row["text"], report)


class Seat:
    """One agent in one episode."""

    def __init__(self, agent: Agent, prompt: Prompt) -> None:
        self.agent = agent
        self.prompt = prompt
        self._steps = 0

    def next_step(self, request: Request) -> int:
        """The step as the command numbers it, else as requests are counted."""
        given = request.command.get("step_index")
        step = given if isinstance(given, int) else self._steps
        self._steps = step + 1
        return step

    def actions(self, request: Request) -> Actions:
        """What is legal now: the request may name its own actions, as games with many moves do."""
        listed = request.command.get("actions") or self.agent.actions
        try:
            actions = actions_of(self.agent.action_space, listed, request.action_mask)
        except ConfigError as error:
            raise CommandError(str(error)) from None
        if isinstance(actions, Named) and not actions.legal:
            raise CommandError("action_mask: must allow at least one of the actions.")
        return actions


def _folder() -> str:
    """Where the run keeps its operators' files; "" outside of a run."""
    run_dir = os.environ.get(WorkerEnv.RUN_DIR, "")
    folder = os.path.join(run_dir, FOLDER) if run_dir else ""
    if folder:
        os.makedirs(folder, mode=0o700, exist_ok=True)
    return folder


def _former_path(config: LlmConfig) -> str:
    path = os.path.expanduser(config.replay_ledger)
    if path and not os.path.isfile(path):
        raise ConfigError(f"replay_ledger: there is no file {path}.")
    return path or os.environ.get(REPLAY_VARIABLE, "")
