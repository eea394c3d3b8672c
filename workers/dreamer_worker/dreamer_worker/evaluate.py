"""--script eval: a trained agent plays its best, and the episodes are told. Nothing is learned."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
from mosaic_sdk.names import WorkerEnv

from dreamer_worker.actor import stack
from dreamer_worker.agent_process import PART
from dreamer_worker.checkpoint import CheckpointError, Epochs, read_arrays, write_json
from dreamer_worker.config import DreamerConfig
from dreamer_worker.fastlane import Screen
from dreamer_worker.parallel import agent_for, make_env_of
from dreamer_worker.settings import find
from dreamer_worker.telemetry import Telemetry


class Policy:
    """The agent of a checkpoint, acting in one env."""

    def __init__(self, env: Any, config: DreamerConfig) -> None:
        weights, self.epoch = locate(config)  # before the agent is made, which takes a while
        self.agent = agent_for(env, config)
        if weights is not None:
            load(self.agent, weights, config)
        self._carry = self.agent.init_policy(1)

    def choose(self, obs: dict[str, Any]) -> dict[str, Any]:
        self._carry, actions, _ = self.agent.policy(self._carry, stack([obs]), "eval")
        return {key: value[0] for key, value in actions.items()}

    def took(self, action: dict[str, Any]) -> None:
        """Somebody did otherwise than was chosen: the agent goes on from what was done."""
        if "prevact" in self._carry:
            spaces = self.agent.act_space
            done = {key: np.asarray(action[key], space.dtype).reshape(1, *space.shape) for key, space in spaces.items()}
            self._carry = {**self._carry, "prevact": done}


def locate(config: DreamerConfig) -> tuple[Path | None, int]:
    """The weights to play and their epoch: the newest of a checkpoints folder, one epoch of it (0), or an npz (0).

    None for a random agent, which needs none.
    """
    given = find(config.checkpoint or config.checkpoint_dir)
    if given.is_file() or (given / PART).is_file():
        return given if given.is_file() else given / PART, 0
    epoch = Epochs(given).newest()
    if epoch is not None:
        return Epochs(given).path(epoch) / PART, epoch
    if config.random_agent:
        return None, 0
    raise CheckpointError(f"There is no whole checkpoint in {given}. Name a run's folder: checkpoint=/path/of/the/run")


def load(agent: Any, path: Path, config: DreamerConfig) -> None:
    """Give the agent what was learned, or say in one sentence that it is another's."""
    try:
        agent.load(read_arrays(path))
    except ValueError as error:
        first = str(error).partition(";")[0]
        raise CheckpointError(
            f"{path} was not learned by the agent that env={config.env} and size={config.size} make. Name those it was "
            f"made with. {first} …"
        ) from None


def run_eval(config: DreamerConfig, tell: Telemetry) -> dict[str, Any]:
    """Play the wanted number of episodes; the summary."""
    env = make_env_of(config, 0)
    policy = Policy(env, config)
    screen = Screen(0, env.render)
    scores, lengths, steps = [], [], 0
    for number in range(config.episodes):
        score, length, terminated = play_episode(env, policy, screen, tell, number, config.emit_steps)
        scores.append(score)
        lengths.append(length)
        steps += length
        tell.episode(number, score, length, terminated=terminated, truncated=not terminated)
        tell.metrics({"eval_episode/score": score, "eval_episode/length": length}, steps)
    screen.close()
    env.close()
    summary = {
        "total_steps": steps,
        "episodes": len(scores),
        "mean_return": float(np.mean(scores)),
        "std_return": float(np.std(scores)),
        "mean_length": float(np.mean(lengths)),
        "checkpoint_epoch": policy.epoch,
    }
    folder = os.environ.get(WorkerEnv.RUN_DIR) or config.logdir
    os.makedirs(folder, exist_ok=True)
    write_json(Path(folder) / "eval_summary.json", {**summary, "returns": scores})
    return summary


def play_episode(
    env: Any, policy: Policy, screen: Screen, tell: Telemetry, number: int, emit_steps: bool
) -> tuple[float, int, bool]:
    obs = env.reset()
    screen.note(obs)
    score, length = 0.0, 0
    while not obs["is_last"]:
        obs = env.step(policy.choose(obs))
        screen.note(obs)
        score += float(obs["reward"])
        if emit_steps:
            tell.step(length, float(obs["reward"]), episode_index=number, terminated=bool(obs["is_terminal"]))
        length += 1
    return score, length, bool(obs["is_terminal"])
