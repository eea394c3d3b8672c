"""--interactive: somebody else says when a step is taken. One JSON object per line, commands in, answers out.

    {"cmd": "reset", "seed": 3}     {"type": "ready", …}
    {"cmd": "step"}                 {"type": "step", …}; with an episode's last step also {"type": "episode_done", …}
    {"cmd": "ping"}                 {"type": "pong"}
    {"cmd": "stop"}                 {"type": "stopped"}, and the end

What cannot be done is answered with {"type": "error", "message": …}.
"""

from __future__ import annotations

import json
import os
import sys
from typing import Any

import numpy as np

from dreamer_worker.config import DreamerConfig
from dreamer_worker.evaluate import Policy
from dreamer_worker.fastlane import Screen

Message = dict[str, Any]


class Session:
    """One env and one policy, moved by commands."""

    def __init__(self, config: DreamerConfig) -> None:
        self._config = config
        self._env: Any = None
        self._policy: Any = None
        self._screen: Any = None
        self._obs: dict[str, Any] | None = None
        self._score, self._length, self._episode = 0.0, 0, -1

    def answer(self, command: Message) -> list[Message]:
        work = {"reset": self._reset, "step": self._step, "ping": self._ping, "stop": self._stop}.get(
            command.get("cmd", "")
        )
        if work is None:
            return [_error(f"There is no command {command.get('cmd')!r}. Send reset, step, ping or stop.")]
        return work(command)

    def _reset(self, command: Message) -> list[Message]:
        from dataclasses import replace

        from dreamer_worker.parallel import make_env_of

        seed = command.get("seed")
        if self._env is None or seed is not None:
            self.close()
            seeded = self._config if seed is None else replace(self._config, seed=int(seed))
            self._env = make_env_of(seeded, 0)
            self._screen = Screen(0, self._env.render)
        if self._policy is None:
            self._policy = Policy(self._env, self._config)
        self._obs = self._env.reset()
        self._screen.note(self._obs)
        self._score, self._length, self._episode = 0.0, 0, self._episode + 1
        return [
            {
                "type": "ready",
                "run_id": self._config.run_id,
                "env": self._config.env,
                "seed": seed,
                "episode_index": self._episode,
            }
        ]

    def _step(self, command: Message) -> list[Message]:
        if self._obs is None:
            return [_error("There is no episode. Send reset first.")]
        action = self._policy.choose(self._obs)
        if "action" in command:
            action = {"action": np.asarray(command["action"])}
            self._policy.took(action)
        self._obs = self._env.step(action)
        self._screen.note(self._obs)
        self._score += float(self._obs["reward"])
        self._length += 1
        ends = {
            "terminated": bool(self._obs["is_terminal"]),
            "truncated": bool(self._obs["is_last"] and not self._obs["is_terminal"]),
        }
        place = {"episode_index": self._episode, "step_index": self._length - 1}
        told = [{"type": "step", **place, "action": _plain(action), "reward": float(self._obs["reward"]), **ends}]
        if self._obs["is_last"]:
            self._obs = None
            told.append(
                {
                    "type": "episode_done",
                    "episode_index": self._episode,
                    "total_reward": self._score,
                    "steps": self._length,
                }
            )
        return told

    def _ping(self, command: Message) -> list[Message]:
        return [{"type": "pong"}]

    def _stop(self, command: Message) -> list[Message]:
        return [{"type": "stopped", "run_id": self._config.run_id}]

    def close(self) -> None:
        for part in (self._screen, self._env):
            if part is not None:
                part.close()
        self._env = self._screen = None


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


def _answer(session: Session, line: str) -> list[Message]:
    try:
        command = json.loads(line)
        return session.answer(command if isinstance(command, dict) else {})
    except Exception as error:  # the edge: an env or a command may raise anything, and the next command is awaited
        return [_error(f"{type(error).__name__}: {error}")]


def _error(text: str) -> Message:
    return {"type": "error", "message": text}


def _plain(action: dict[str, Any]) -> Any:
    plain = {key: np.asarray(value).tolist() for key, value in action.items()}
    return plain["action"] if list(plain) == ["action"] else plain
