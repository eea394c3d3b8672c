"""--interactive: another program decides when a step is taken. The protocol is `mosaic_sdk.interactive`.

`select_action` remembers the episode so far; `reset`, `init_agent` or "is_first": true begin a new one. Each `agent_id`
has an episode of its own.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import numpy as np
from mosaic_sdk.interactive import Agent, CommandError, Player, Request, Step, serve
from mosaic_sdk.operators import spaces
from mosaic_sdk.operators.arrays import restore
from mosaic_sdk.operators.digest import observation_digest
from mosaic_sdk.player import AgentId

from dreamer_worker import envs
from dreamer_worker.agent.spaces import Space
from dreamer_worker.config import DreamerConfig
from dreamer_worker.dream import dreamed
from dreamer_worker.envs import observe
from dreamer_worker.evaluate import ALGO, Policy
from dreamer_worker.factories import make_env
from dreamer_worker.fastlane import Screen, hidden_request


class DreamerPlayer(Player):
    """One env and the policy of the checkpoint."""

    def __init__(self, config: DreamerConfig) -> None:
        self._config = config
        self._env: Any = make_env(config, 0)
        # The same for all envs of this process, so that its viewers stay.
        self._screen = Screen(0, lambda: self._env.render())
        self._policy = Policy(self._env, config)
        self._env = dreamed(self._env, self._policy.agent, config)
        self._policies: dict[AgentId, Policy] = {}  # of agents whose env is elsewhere
        self._hosted: set[AgentId] = set()  # those of them whose env is the same as ours
        self._obs: dict[str, Any] = {}

    def describe(self) -> dict[str, Any]:
        config = self._config
        policy = "random" if config.random_agent else "checkpoint"
        about = {"env_id": config.env, "env": config.env, "algo": ALGO, "policy": policy}
        return {**about, "checkpoint_epoch": self._policy.epoch, **({"dream": True} if config.dream else {})}

    def reset(self, seed: int | None, options: dict[str, Any] | None) -> Mapping[str, Any]:
        if seed is not None:
            self._env.close()
            # With this seed itself, as in other workers: an evaluation compares them on equal ones.
            env = envs.make_env(self._config.env, seed=seed, **self._config.env_options)
            self._env = dreamed(env, self._policy.agent, self._config, seed)
        self._obs = self._env.reset()
        self._screen.note(self._obs)
        self._policies.clear()
        self._hosted.clear()
        return _about(self._env)

    def step(self, action: Any) -> Step:
        given = None if action is None else as_action(action, self._env.act_space)
        taken = self._policy.choose(self._obs)
        if given is not None:
            taken = given
            self._policy.took(taken)
        self._obs = obs = self._env.step(taken)
        self._screen.note(obs)
        ended, died = bool(obs["is_last"]), bool(obs["is_terminal"])
        fields = _success(self._env) if ended else {}
        return Step(plain_action(taken), float(obs["reward"]), died, ended and not died, fields)

    def begin_agent(self, agent: Agent) -> Mapping[str, Any]:
        self._policies[agent.agent_id] = Policy(self._env, self._config, self._policy.agent)
        self._hosted.discard(agent.agent_id)
        if agent.observation_space and hasattr(self._env, "bare"):
            wanted = spaces.describe(self._env.bare.action_space), spaces.describe(self._env.observation_space)
            spaces.require(agent, action_space=wanted[0], observation_space=wanted[1])
            self._hosted.add(agent.agent_id)
        return {}

    def select_action(self, request: Request) -> Any:
        if request.agent_id not in self._policies:
            self.begin_agent(Agent(request.agent_id))
        is_hosted = request.agent_id in self._hosted
        read = self._sense if is_hosted else as_observation
        obs = observe(read(request.observation, self._env.obs_space), request.reward, first=request.is_first)
        action = self._policies[request.agent_id].choose(obs)
        return self._env.play(action) if is_hosted else plain_action(action)

    def close(self) -> None:
        for part in (self._screen, self._env):
            part.close()

    def _sense(self, given: Any, known: Mapping[str, Space]) -> dict[str, Any]:
        """A hosted env's observation, as the agent takes it, or CommandError."""
        try:
            return dict(self._env.sense(restore(given, spaces.describe(self._env.observation_space))))
        except ValueError as error:
            raise CommandError(f"observation: {error}") from None


def _about(env: Any) -> dict[str, Any]:
    """Fields of `ready`. Only Gymnasium's envs have spaces that other programs know."""
    if not hasattr(env, "bare"):
        return {}
    return {
        "action_space": spaces.describe(env.bare.action_space),
        "observation_space": spaces.describe(env.observation_space),
        "first_observation": observation_digest(env.bare.first),
    }


def _success(env: Any) -> dict[str, Any]:
    success = env.bare.success if hasattr(env, "bare") else None
    return {} if success is None else {"success": success}


def run_interactive(config: DreamerConfig) -> int:
    """Answer commands until `stop` or the end of stdin; returns the exit code."""
    config = config.resolved()
    # The screen shows the env: MOSAIC's import hook must not show it as well.
    os.environ.update(hidden_request())
    return serve(lambda: DreamerPlayer(config), run_id=config.run_id)


def as_action(given: Any, spaces: Mapping[str, Space]) -> dict[str, np.ndarray]:
    """An action from a command, as the env takes it, or CommandError."""
    named = given if isinstance(given, dict) else {next(iter(spaces)): given}
    if named.keys() != spaces.keys():
        raise CommandError(f"action: it must name {', '.join(spaces)}.")
    return {key: _as_array("action", key, value, spaces[key]) for key, value in named.items()}


def as_observation(given: Any, spaces: Mapping[str, Space]) -> dict[str, np.ndarray]:
    """An observation from a command, as the agent takes it, or CommandError."""
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
        raise CommandError(f"{what}: it must be between {low:g} and {high:g}, not {value!r}.")
    if space.discrete and (array != np.floor(array)).any():
        raise CommandError(f"{what}: it must be a whole number, not {value!r}.")
    return array.astype(space.dtype)


def plain_action(action: Mapping[str, Any]) -> Any:
    """The action of an env that takes a single one, else all of them by name."""
    return action["action"] if list(action) == ["action"] else dict(action)
