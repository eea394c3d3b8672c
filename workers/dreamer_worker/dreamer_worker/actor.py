"""The actor: chooses actions, counts steps, and passes every step on to replay and logger.

In the agent process it is a thread behind an address; in --script train its functions are called inline.

env ──act(index, obs)──▶ a queue ──a few at a time──▶ policy ──▶ the actions back to their envs
                                                         └──▶ insert (replay), steps (logger), in order, without waiting
"""

from __future__ import annotations

import logging
import secrets
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from dreamer_worker.agent.spaces import BOOKKEEPING
from dreamer_worker.checkpoint import Counters
from dreamer_worker.config import DreamerConfig
from dreamer_worker.rpc import Caller, Client, Disconnected, Reply, RpcError, Server
from dreamer_worker.timers import Rate, Timers

log = logging.getLogger(__name__)


class Actor:
    """One policy call at a time: choose actions for a few envs, then pass on their steps. Independent of processes."""

    def __init__(self, agent: Any, counters: Counters, forwarder: Forwarder, timers: Timers) -> None:
        self.agent, self.counters, self.forwarder, self.timers = agent, counters, forwarder, timers

    def choose(self, carry: Any, obs: dict[str, Any], is_eval: bool) -> tuple[Any, dict[str, Any], dict[str, Any]]:
        """The envs' new states, their actions, and what replay keeps beside them. Training samples its actions;
        evaluation takes the most likely ones."""
        chosen: tuple[Any, dict[str, Any], dict[str, Any]] = self.agent.policy(
            carry, obs, "eval" if is_eval else "train"
        )
        return chosen

    def pass_on(self, envs: list[int], rows: dict[str, Any], is_eval: bool) -> None:
        """Count the steps of these envs and send them to replay and logger. Only training steps count."""
        steps = self.counters["env_steps"]
        if not is_eval:
            steps = self.counters.raise_to("env_steps", steps + len(envs))
        with self.timers.section("forward"):
            self.forwarder.send(envs, rows, is_eval, steps)


class Forwarder:
    """Sends steps to replay and logger: in order, numbered, and with a limit on unanswered calls."""

    def __init__(self, replay: Caller, replay_eval: Caller, logger: Caller) -> None:
        self._name = secrets.token_hex(8)  # of this process: after a restart its streams are new ones
        self._numbers: dict[int, int] = {}
        self._sent = 0
        self.refusal = ""  # why replay rejected steps: further steps would be useless
        self._replay, self._replay_eval, self._logger = replay, replay_eval, logger

    @classmethod
    def connect(cls, config: DreamerConfig) -> Forwarder:
        """To the replay and logger processes."""
        return cls(
            Client(config.replay_addr, config.secret, max_inflight=8),
            Client(config.replay_addr, config.secret, max_inflight=8),
            Client(config.logger_addr, config.secret, max_inflight=32),
        )

    def send(self, envs: list[int], rows: dict[str, Any], is_eval: bool, steps: int) -> None:
        seqs = np.asarray([self._next(env) for env in envs])
        streams = [f"{self._name}:{env}" for env in envs]
        stored = {key: value for key, value in rows.items() if not key.startswith("log/")}
        client, method = (self._replay_eval, "insert_eval") if is_eval else (self._replay, "insert")
        try:
            client.call(method, stored, streams, seqs).add_done_callback(self._check_insert)
            self._sent += 1
            logged = self._logger.call("steps", self._name, self._sent, steps, _logged(envs, rows, is_eval))
            logged.add_done_callback(_check_logged)
        except Disconnected:
            pass  # the agent is closing

    def drain(self, timeout_s: float) -> bool:
        return all(client.drain(timeout_s) for client in (self._replay, self._replay_eval, self._logger))

    def stats(self) -> dict[str, float]:
        stats = {f"rpc/replay/{name}": value for name, value in self._replay.stats().items()}
        return stats | {f"rpc/logger/{name}": value for name, value in self._logger.stats().items()}

    def close(self) -> None:
        for client in (self._replay, self._replay_eval, self._logger):
            client.close()

    def _check_insert(self, future: Any) -> None:
        if isinstance(error := future.exception(), RpcError):
            self.refusal = str(error)

    def _next(self, env: int) -> int:
        self._numbers[env] = self._numbers.get(env, -1) + 1
        return self._numbers[env]


def _logged(envs: list[int], rows: dict[str, Any], is_eval: bool) -> dict[str, Any]:
    """The part of a step that the logger needs: no images, no latents."""
    logged = {key: value for key, value in rows.items() if key.startswith("log/") and np.ndim(value) == 1}
    flags = {key: rows[key] for key in BOOKKEEPING}
    return {**logged, **flags, "env": np.asarray(envs), "is_eval": bool(is_eval)}


def _check_logged(future: Any) -> None:
    if isinstance(error := future.exception(), RpcError):
        log.error("the logger refused a step: %s", error)


@dataclass
class Request:
    """An env that waits for its action."""

    reply: Reply
    env: int
    obs: dict[str, Any]


class ActorService:
    """The actor behind an address. Its promises:

    1. A policy call waits for more envs no longer than `actor_wait_ms`: a missing env does not stall the others.
    2. Each env has its own state, kept between its steps and dropped with the env's connection.
    3. Every step of a training env has a number in its stream, so that replay and logger count it once.
    4. While another thread holds `turn`, no step is taken.
    """

    def __init__(self, agent: Any, config: DreamerConfig, counters: Counters, server: Server) -> None:
        self.agent, self.config, self.counters = agent, config, counters
        self.turn = threading.Lock()
        self.timers = Timers()
        self.rate = Rate()
        self.done = threading.Event()
        self.on_done: Callable[[], None] = lambda: None
        self._server = server
        self._changed = threading.Condition()
        self._waiting: list[Request] = []
        self._states: dict[int, Any] = {}
        self._owners: dict[int, int] = {}  # env → its connection
        self._forwarder = Forwarder.connect(config)
        self._actor = Actor(agent, counters, self._forwarder, self.timers)
        self._is_closed = False
        self._batch = config.actor_batch if config.actor_batch > 0 else max(1, config.envs // 2)
        server.bind_deferred("act", self.take)
        server.on_leave = self.leave

    def take(self, reply: Reply, env: Any, obs: dict[str, Any]) -> None:
        self._check(int(env), obs)
        with self._changed:
            self._own(int(env), reply.peer)
            self._waiting.append(Request(reply, int(env), obs))
            self._changed.notify_all()

    def _check(self, env: int, obs: dict[str, Any]) -> None:
        """Reject an invalid observation on its own: in a batch it would fail the other envs too."""
        if not 0 <= env < self.config.envs + self.config.eval_envs:
            raise ValueError(f"there is no env {env} in this run")
        for key, space in self.agent.obs_space.items():
            if key not in obs:
                raise ValueError(f"{key} of env {env} is missing")
            if np.shape(obs[key]) != space.shape:
                raise ValueError(f"{key} of env {env} has shape {np.shape(obs[key])}, not {space.shape}")
        if missing := [key for key in BOOKKEEPING if np.shape(obs.get(key, [])) != ()]:
            raise ValueError(f"{missing[0]} of env {env} is missing or not a single number")

    def _own(self, env: int, peer: int) -> None:
        """An env belongs to its newest connection. Two processes playing one env would be mixed in one sequence."""
        owner = self._owners.get(env, 0)
        if peer < owner:
            raise ValueError(f"env {env} is played by another process now. Was its index given twice?")
        if peer > owner:
            self._owners[env] = peer
            self._states.pop(env, None)

    def leave(self, peer: int) -> None:
        """A connection ended: drop its env's request and state."""
        with self._changed:
            self._waiting = [request for request in self._waiting if request.reply.peer != peer]
            for env in [env for env, owner in self._owners.items() if owner == peer]:
                del self._owners[env]
                self._states.pop(env, None)

    @property
    def envs(self) -> list[int]:
        """The envs whose state is kept."""
        return sorted(self._states)

    def run(self) -> None:
        """Act until closed, or until the run has its steps."""
        self._server.start()
        while self.counters["env_steps"] < self.config.steps:
            requests = self._gather()
            if requests is None:
                return
            with self.turn:
                if self._is_closed:
                    return
                self._act(requests)
            if self._forwarder.refusal:
                raise RuntimeError(f"The replay rejected the steps: {self._forwarder.refusal}")
        self.done.set()
        self.on_done()

    def stop(self) -> None:
        """Take no further step; steps already taken still go to replay and logger."""
        with self._changed:
            self._is_closed = True
            self._changed.notify_all()

    def close(self) -> None:
        self.stop()
        self._forwarder.close()

    def drain(self, timeout_s: float) -> bool:
        """Wait until replay and logger have every step."""
        return self._forwarder.drain(timeout_s)

    def stats(self) -> dict[str, float]:
        return {
            "fps": self.rate.per_second(),
            "envs": len(self._states),
            **self.timers.stats(),
            **{f"rpc/envs/{name}": value for name, value in self._server.stats().items()},
            **self._forwarder.stats(),
        }

    def _gather(self) -> list[Request] | None:
        """The requests of one policy call: of the same kind as the one that has waited longest."""
        with self._changed:
            self._changed.wait_for(lambda: self._waiting or self._is_closed)
            until = time.monotonic() + self.config.actor_wait_ms / 1e3
            self._changed.wait_for(lambda: self._is_full() or self._is_closed, max(0.0, until - time.monotonic()))
            if self._is_closed:
                return None
            if not self._waiting:
                return []  # the only one has disconnected
            is_eval = self._is_eval(self._waiting[0])
            taken = [request for request in self._waiting if self._is_eval(request) == is_eval][: self._batch]
            self._waiting = [request for request in self._waiting if request not in taken]
            return taken

    def _is_full(self) -> bool:
        if not self._waiting:
            return True
        is_eval = self._is_eval(self._waiting[0])
        known = sum((env >= self.config.envs) == is_eval for env in self._owners)
        same = sum(self._is_eval(request) == is_eval for request in self._waiting)
        return same >= min(self._batch, known)

    def _is_eval(self, request: Request) -> bool:
        return request.env >= self.config.envs

    def _act(self, requests: list[Request]) -> None:
        if not requests:
            return
        is_eval = self._is_eval(requests[0])
        envs = [request.env for request in requests]
        obs = stack([request.obs for request in requests])
        with self.timers.section("policy"):
            carry = stack([self._state_of(env) for env in envs])
            carry, actions, outs = self._actor.choose(carry, obs, is_eval)
        self._keep(requests, split(carry, len(requests)))
        for request, action in zip(requests, split(actions, len(requests)), strict=True):
            request.reply(action)
        self.rate.add(len(requests))
        self._actor.pass_on(envs, {**obs, **actions, **outs}, is_eval)

    def _state_of(self, env: int) -> Any:
        state = self._states.get(env)
        return split(self.agent.init_policy(1), 1)[0] if state is None else state

    def _keep(self, requests: list[Request], states: list[Any]) -> None:
        with self._changed:
            for request, state in zip(requests, states, strict=True):
                if self._owners.get(request.env) == request.reply.peer:  # it may have disconnected meanwhile
                    self._states[request.env] = state


def stack(trees: list[Any]) -> Any:
    first = trees[0]
    if isinstance(first, dict):
        # Leave out a key that not all of them have, such as what an env logs at the end of an episode.
        return {key: stack([tree[key] for tree in trees]) for key in first if all(key in tree for tree in trees)}
    if isinstance(first, list | tuple):
        return type(first)(stack([tree[index] for tree in trees]) for index in range(len(first)))
    return np.stack([np.asarray(tree) for tree in trees])


def split(tree: Any, count: int) -> list[Any]:
    if isinstance(tree, dict):
        parts = {key: split(value, count) for key, value in tree.items()}
        return [{key: part[index] for key, part in parts.items()} for index in range(count)]
    if isinstance(tree, list | tuple):
        columns = [split(value, count) for value in tree]
        return [type(tree)(column[index] for column in columns) for index in range(count)]
    return list(np.asarray(tree))
