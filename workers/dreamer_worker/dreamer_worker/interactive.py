"""--interactive: somebody else says when a step is taken. One JSON object per line, commands in, answers out.

    {"cmd": "reset", "seed": 3}     {"type": "ready", …}
    {"cmd": "step"}                 {"type": "step", …}; with an episode's last step also {"type": "episode_done", …}
    {"cmd": "step", "action": 2}    the same, done otherwise than the agent would have
    {"cmd": "init_agent"}           {"type": "agent_ready", …}; the agent alone, for an env that somebody else plays
    {"cmd": "select_action", "observation": …}
                                    {"type": "action_selected", "action": …}
    {"cmd": "ping"}                 {"type": "pong"}
    {"cmd": "stop"}                 {"type": "stopped"}, and the end

`select_action` remembers the episode so far; `reset`, `init_agent` or "is_first": true begin a new one. What cannot be
done is answered with {"type": "error", "message": …}, and the next command is awaited.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from mosaic_sdk.config import ConfigError

from dreamer_worker.agent.spaces import Space
from dreamer_worker.checkpoint import CheckpointError
from dreamer_worker.config import DreamerConfig
from dreamer_worker.envs import observe
from dreamer_worker.evaluate import Policy
from dreamer_worker.fastlane import Screen

Message = dict[str, Any]


class CommandError(Exception):
    """A command that cannot be done; the text says what to send instead."""


class Session:
    """One env and one policy, moved by commands."""

    def __init__(self, config: DreamerConfig) -> None:
        self._config = config
        self._env: Any = None
        self._policy: Any = None
        self._screen: Any = None
        self._obs: dict[str, Any] | None = None
        self._score, self._length, self._episode = 0.0, 0, -1
        self._is_first = True  # what select_action is shown next begins an episode
        self._commands: dict[str, Callable[[Message], list[Message]]] = {
            "reset": self._reset,
            "step": self._step,
            "init_agent": self._init_agent,
            "select_action": self._select_action,
            "ping": lambda command: [{"type": "pong"}],
            "stop": lambda command: [{"type": "stopped", "run_id": self._config.run_id}],
        }

    def answer(self, command: Message) -> list[Message]:
        work = self._commands.get(str(command.get("cmd", "")))
        if work is None:
            raise CommandError(f"There is no command {command.get('cmd')!r}. There are: {', '.join(self._commands)}.")
        return work(command)

    def close(self) -> None:
        for part in (self._screen, self._env):
            if part is not None:
                part.close()
        self._env = self._screen = None

    def _reset(self, command: Message) -> list[Message]:
        seed = command.get("seed")
        if seed is not None and not isinstance(seed, int):
            raise CommandError(f"seed: it must be a whole number, not {seed!r}.")
        if self._env is None or seed is not None:
            self._make_env(seed)
        self._make_policy()
        self._obs = self._env.reset()
        self._screen.note(self._obs)
        self._score, self._length, self._episode = 0.0, 0, self._episode + 1
        self._is_first = True
        return [{"type": "ready", **self._about(), "seed": seed, "episode_index": self._episode}]

    def _step(self, command: Message) -> list[Message]:
        if self._obs is None:
            raise CommandError("There is no episode. Send reset first.")
        given = command.get("action")
        done = None if given is None else as_action(given, self._env.act_space)
        action = self._policy.choose(self._obs)
        if done is not None:
            action = done
            self._policy.took(action)
        self._obs = self._env.step(action)
        self._screen.note(self._obs)
        self._score += float(self._obs["reward"])
        self._length += 1
        return self._stepped(action, self._obs)

    def _stepped(self, action: Mapping[str, Any], obs: Mapping[str, Any]) -> list[Message]:
        """What is told of a step, and of the episode if it was its last."""
        ended, died = bool(obs["is_last"]), bool(obs["is_terminal"])
        place = {"episode_index": self._episode, "step_index": self._length - 1}
        ends = {"terminated": died, "truncated": ended and not died}
        step = {"type": "step", **place, "action": plain(action), "reward": float(obs["reward"]), **ends}
        if not ended:
            return [step]
        self._obs = None
        done = {"type": "episode_done", "episode_index": self._episode}
        return [step, {**done, "total_reward": self._score, "steps": self._length}]

    def _init_agent(self, command: Message) -> list[Message]:
        if self._env is None:
            self._make_env(None)  # for its spaces
        self._make_policy()
        self._is_first = True
        return [{"type": "agent_ready", **self._about(), **_who(command)}]

    def _select_action(self, command: Message) -> list[Message]:
        if self._policy is None:
            raise CommandError("There is no agent. Send init_agent first.")
        sensed = as_observation(command.get("observation"), self._env.obs_space)
        first, self._is_first = self._is_first or bool(command.get("is_first")), False
        action = self._policy.choose(observe(sensed, float(command.get("reward") or 0.0), first=first))
        return [{"type": "action_selected", "run_id": self._config.run_id, **_who(command), "action": plain(action)}]

    def _make_env(self, seed: int | None) -> None:
        from dataclasses import replace

        from dreamer_worker.factories import make_env

        self.close()
        self._env = make_env(self._config if seed is None else replace(self._config, seed=seed), 0)
        self._screen = Screen(0, self._env.render)

    def _make_policy(self) -> None:
        if self._policy is None:
            self._policy = Policy(self._env, self._config)

    def _about(self) -> Message:
        return {"run_id": self._config.run_id, "env": self._config.env, "checkpoint_epoch": self._policy.epoch}


def serve(config: DreamerConfig) -> None:
    """Answer commands until `stop` or the end of stdin."""
    # What a library prints must not stand between the answers.
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    session = Session(config.resolved())
    for line in sys.stdin:
        told = _answer(session, line)
        for message in told:
            answers.write(json.dumps(message) + "\n")
        if told and told[-1]["type"] == "stopped":
            break
    session.close()


def as_action(given: Any, spaces: Mapping[str, Space]) -> dict[str, np.ndarray]:
    """An action that somebody sent, as the env takes it, or CommandError."""
    named = given if isinstance(given, dict) else {next(iter(spaces)): given}
    if named.keys() != spaces.keys():
        raise CommandError(f"action: it must name {', '.join(spaces)}.")
    return {key: _as_array("action", key, value, spaces[key]) for key, value in named.items()}


def as_observation(given: Any, spaces: Mapping[str, Space]) -> dict[str, np.ndarray]:
    """An observation that somebody sent, as the agent takes it, or CommandError."""
    named = given if isinstance(given, dict) else {next(iter(spaces)): given}
    if missing := [key for key in spaces if key not in named]:
        raise CommandError(f"observation: {missing[0]} is missing. Send an object with: {', '.join(spaces)}.")
    return {key: _as_array("observation", key, named[key], space) for key, space in spaces.items()}


def _as_array(what: str, key: str, value: Any, space: Space) -> np.ndarray:
    what = what if key == what else f"{what}.{key}"
    try:
        array = np.asarray(value, np.float64).reshape(space.shape)
    except (TypeError, ValueError):
        kind = f"numbers of shape {list(space.shape)}" if space.shape else "a number"
        raise CommandError(f"{what}: it must be {kind}.") from None
    low, high = (0, space.classes - 1) if space.discrete and not space.is_image else (space.low, space.high)
    if low is not None and high is not None and not ((array >= low) & (array <= high)).all():
        raise CommandError(f"{what}: it must lie between {low:g} and {high:g}, and {value!r} does not.")
    if space.discrete and (array != np.floor(array)).any():
        raise CommandError(f"{what}: it must be whole, and {value!r} is not.")
    return array.astype(space.dtype)


def plain(action: Mapping[str, Any]) -> Any:
    """As JSON has it; of an env that takes one action, that one."""
    values = {key: np.asarray(value).tolist() for key, value in action.items()}
    return values["action"] if list(values) == ["action"] else values


def _answer(session: Session, line: str) -> list[Message]:
    try:
        command = json.loads(line)
        return session.answer(command if isinstance(command, dict) else {})
    except (CommandError, ConfigError, CheckpointError) as error:
        return [{"type": "error", "message": str(error)}]
    except json.JSONDecodeError as error:
        return [{"type": "error", "message": f"That is no JSON: {error}."}]
    except Exception as error:  # noqa: BLE001  # the edge: an env may raise anything, and the next command is awaited
        return [{"type": "error", "message": f"{type(error).__name__}: {error}"}]


def _who(command: Message) -> Message:
    return {name: command[name] for name in ("agent_id", "player_id") if name in command}
