"""mode=interactive: an environment and a policy over pipes, one JSON object per line.

    stdin                                                   stdout
    {"cmd": "reset", "seed": 3, "options": {…}}             {"type": "ready", …}
    {"cmd": "step"}  or  {"cmd": "step", "action": …}       {"type": "step", …}, and after the last step
                                                            {"type": "episode_done", …}
    {"cmd": "init_agent", "agent_id": …}                    {"type": "agent_ready", …}
    {"cmd": "select_action", "observation": …}              {"type": "action_selected", "action": …}
    {"cmd": "ping"}                                         {"type": "pong"}
    {"cmd": "stop"}                                         {"type": "stopped"}, and the end

Nothing is said unasked. What cannot be done is answered with {"type": "error", "message": …}, and the next command is
awaited. Without a policy_path the actions are random, and `ready` says so. stdout holds nothing else: what libraries
print goes to stderr. Steps are counted from 0. Frames travel by FastLane.
"""

import json
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, TextIO

from mosaic_sdk.cli import USAGE
from mosaic_sdk.config import ConfigError

from cleanrl_worker import registry, runtime
from cleanrl_worker.config import CleanRLWorkerConfig
from cleanrl_worker.lanes import make_lanes, make_plain_lane

Message = dict[str, Any]
CHECKPOINT, RANDOM = "checkpoint", "random"
EPISODE_OVER = "The episode is over, or none was begun. Send reset first."


class CommandError(Exception):
    """A command that cannot be done now; the text says what to do instead."""


@dataclass(frozen=True)
class Stage:
    """What a session plays with. Making one imports libraries, which takes seconds."""

    lane: Any
    policy: Any


class Session:
    """One environment, one policy, one episode at a time. Each command is a method `do_<cmd>`.

    The stage is made for the first command that needs it: a ping is answered at once.
    """

    def __init__(self, config: CleanRLWorkerConfig) -> None:
        self._config = config
        self._episode_index = -1
        self._observation: Any = None  # None: no episode is being played
        self._step_index = 0
        self._return = 0.0

    @cached_property
    def stage(self) -> Stage:
        return make_stage(self._config)

    def answer(self, line: str) -> list[Message]:
        """The messages that answer one line of stdin."""
        try:
            command = _parse(line)
            do: Callable[[Message], list[Message]] | None = getattr(self, f"do_{command['cmd']}", None)
            if do is None:
                names = ", ".join(sorted(name[3:] for name in dir(self) if name.startswith("do_")))
                raise CommandError(f"There is no command {command['cmd']!r}. There are: {names}.")
            return do(command)
        except CommandError as error:
            return [{"type": "error", "message": str(error)}]

    def do_reset(self, command: Message) -> list[Message]:
        self._episode_index += 1
        seed = _whole(command, "seed", self._default_seed())
        options = command.get("options")
        if options is not None and not isinstance(options, dict):
            raise CommandError(f"options: it must be an object, not {options!r}.")
        self._observation = self.stage.lane.reset(seed, options)
        self.stage.policy.begin(seed)
        self._step_index, self._return = 0, 0.0
        return [{"type": "ready", **self._about(), **self._place(), "seed": seed, **self._seen()}]

    def do_step(self, command: Message) -> list[Message]:
        if self._observation is None:
            raise CommandError(EPISODE_OVER)
        given = command.get("action")
        action = (
            self.stage.policy.choose(self._observation)
            if given is None
            else _as_action(given, self.stage.lane.action_space)
        )
        step = self.stage.lane.step(action)
        self._return += step.reward
        told = {
            "type": "step",
            **self._place(),
            "action": _plain(action),
            "reward": step.reward,
            "terminated": step.terminated,
            "truncated": step.truncated,
            "episode_reward": self._return,
        }
        self._step_index += 1
        self._observation = None if step.is_last else step.observation
        return [told] + ([self._done(step)] if step.is_last else [])

    def do_init_agent(self, command: Message) -> list[Message]:
        agent: Message = {name: command[name] for name in ("agent_id", "player_id", "game_name") if name in command}
        return [{"type": "agent_ready", **self._about(), **agent, "mode": "action_selector"}]

    def do_select_action(self, command: Message) -> list[Message]:
        observation = _as_observation(command.get("observation"), self.stage.lane.observation_space)
        action = _plain(self.stage.policy.choose(observation))
        mask = command.get("action_mask")
        if mask is not None and isinstance(action, int) and not _allows(mask, action):
            raise CommandError(f"The policy chose action {action}, which action_mask does not allow.")
        agent: Message = {name: command[name] for name in ("agent_id", "player_id") if name in command}
        return [{"type": "action_selected", "run_id": self._config.run_id, **agent, "action": action}]

    def do_ping(self, command: Message) -> list[Message]:
        return [{"type": "pong"}]

    def do_stop(self, command: Message) -> list[Message]:
        return [{"type": "stopped", "run_id": self._config.run_id}]

    def close(self) -> None:
        if "stage" in vars(self):
            self.stage.lane.close()

    def _about(self) -> Message:
        config = self._config
        about = {"run_id": config.run_id, "env_id": config.env_id, "algo": config.algo}
        return {**about, "policy": CHECKPOINT if config.policy_path else RANDOM}

    def _default_seed(self) -> int:
        return (self._config.seed if self._config.seed is not None else 1) + self._episode_index

    def _place(self) -> Message:
        return {"episode_index": self._episode_index, "step_index": self._step_index}

    def _seen(self) -> Message:
        space = self.stage.lane.action_space
        actions: Message = {"type": type(space).__name__, "shape": list(space.shape)}
        if hasattr(space, "n"):
            actions["n"] = int(space.n)
        else:
            actions.update(low=_plain(space.low), high=_plain(space.high))
        return {"observation_shape": list(self.stage.lane.observation_space.shape), "action_space": actions}

    def _done(self, step: Any) -> Message:
        return {
            "type": "episode_done",
            "run_id": self._config.run_id,
            "episode_index": self._episode_index,
            "total_reward": self._return,
            "num_steps": self._step_index,
            "terminated": step.terminated,
            "truncated": step.truncated,
        }


class Trained:
    """A checkpoint's policy for one episode after the other."""

    def __init__(self, policy: Any) -> None:
        self._policy = policy

    def begin(self, seed: int) -> None:
        import torch

        torch.manual_seed(seed)
        self._policy.forget(0)

    def choose(self, observation: Any) -> Any:
        return self._policy.act([observation], [0])[0]


class Random:
    """Any action, all equally likely."""

    def __init__(self, space: Any) -> None:
        self._space = space

    def begin(self, seed: int) -> None:
        self._space.seed(seed)

    def choose(self, observation: Any) -> Any:
        return self._space.sample()


def serve(config: CleanRLWorkerConfig) -> None:
    """Answer commands until `stop` or the end of stdin. A stage that cannot be made is told, with exit code 2."""
    channel = _own_stdout()
    os.environ.update(runtime.environment(config, Path.cwd()))
    session = Session(config)
    try:
        for line in sys.stdin:
            if line.strip() and not _reply(session, line, channel):
                return
    finally:
        session.close()


def _reply(session: Session, line: str, channel: TextIO) -> bool:
    """Whether to go on."""
    try:
        answers = session.answer(line)
    except ConfigError as error:
        _say(channel, {"type": "error", "message": str(error)})
        print(error, file=sys.stderr)
        raise SystemExit(USAGE) from None
    for message in answers:
        _say(channel, message)
    return bool(answers[-1]["type"] != "stopped")


def make_stage(config: CleanRLWorkerConfig) -> Stage:
    """ConfigError or CheckpointError when the environment or the policy cannot be had."""
    if not config.policy_path:
        lane = make_plain_lane(registry.find(config.algo, config.upstream_path), config.env_id)
        return Stage(lane, Random(lane.action_space))
    from cleanrl_worker.checkpoints import load_checkpoint
    from cleanrl_worker.policy import load_policy, load_script

    checkpoint = load_checkpoint(config.policy_path)
    checkpoint.require(config.algo, config.env_id)
    algorithm, script = load_script(config)
    lane = make_lanes(algorithm, script, config.env_id, 1, checkpoint)[0]
    greedy = config.extras.get("eval_deterministic", False)
    if not isinstance(greedy, bool):
        raise ConfigError(f"extras.eval_deterministic: it must be true or false, not {greedy!r}.")
    return Stage(lane, Trained(load_policy(checkpoint, script, lane, greedy, "cuda" if config.cuda else "cpu")))


def _own_stdout() -> TextIO:
    """The operator's channel. From here on descriptor 1 is stderr, for whoever prints."""
    channel = os.fdopen(os.dup(1), "w", encoding="utf-8")
    sys.stdout.flush()
    os.dup2(2, 1)
    return channel


def _say(channel: TextIO, message: Message) -> None:
    channel.write(json.dumps(message, separators=(",", ":")) + "\n")
    channel.flush()


def _parse(line: str) -> Message:
    try:
        command = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise CommandError(f"This is not JSON: {error}.") from None
    if not isinstance(command, dict) or not isinstance(command.get("cmd"), str):
        raise CommandError('A command is an object with a "cmd", such as {"cmd": "reset", "seed": 1}.')
    return command


def _whole(command: Message, name: str, default: int) -> int:
    value = command.get(name)
    if value is None:
        return default
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < 2**31:
        raise CommandError(f"{name}: it must be a whole number from 0 to 2^31 - 1, not {value!r}.")
    return value


def _as_action(given: Any, space: Any) -> Any:
    import numpy as np

    try:
        action = int(given) if hasattr(space, "n") else np.asarray(given, dtype=space.dtype).reshape(space.shape)
    except (TypeError, ValueError):
        raise CommandError(f"action: {given!r} is none of {space}.") from None
    if hasattr(space, "n") and (isinstance(given, bool) or action != given or not space.contains(action)):
        raise CommandError(f"action: {given!r} is none of {space}.")
    return action


def _as_observation(given: Any, space: Any) -> Any:
    import numpy as np

    try:
        return np.asarray(given, dtype=space.dtype).reshape(space.shape)
    except (TypeError, ValueError):
        raise CommandError(f"observation: it must have the shape {list(space.shape)}.") from None


def _allows(mask: Any, action: int) -> bool:
    return isinstance(mask, list) and action < len(mask) and bool(mask[action])


def _plain(value: Any) -> Any:
    return value.tolist() if hasattr(value, "tolist") else value
