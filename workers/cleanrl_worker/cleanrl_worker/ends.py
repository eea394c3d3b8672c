"""How episodes ended, read from what the script's vector environment gave at its latest step.

A script tells its SummaryWriter an episode's return and length, and not how it ended; and many report only the first of
several that ended in one step. All of it is in what `envs.step` returned, so that is kept until the next step, and read
only when the script reports an episode: a step costs one call more.

    gymnasium    obs, rewards, terminated, truncated, {"final_info": [None, {"episode": {"r", "l"}}, …]}
    gym 0.23     obs, rewards, dones, [{}, {"episode": {"r", "l"}, "TimeLimit.truncated": …}, …]
    envpool      obs, rewards, dones, {"r": […], "l": […], "lives": […], "terminated": […], "TimeLimit.truncated": […]}
"""

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np


class End(NamedTuple):
    total_reward: float
    length: int
    terminated: bool | None = None  # None: nobody knows
    truncated: bool | None = None


class Ends:
    """The episodes that ended in the latest step of the environments it watches."""

    def __init__(self, counts_steps: bool = False) -> None:
        # DQN and its kin number the step that is being made, from 0; PPO and its kin say how many were made.
        self._counts_steps = counts_steps
        self._envs = 1
        self._outcome: Any = None
        self._latest: list[End] = []

    def watch(self, envs: Any) -> None:
        if not hasattr(envs, "step"):
            return
        self._envs = int(getattr(envs, "num_envs", 1))
        step = envs.step

        def step_and_keep(actions: Any) -> Any:
            self._outcome = outcome = step(actions)
            return outcome

        envs.step = step_and_keep

    def take(self) -> list[End]:
        """Those that were not taken yet."""
        if self._outcome is None:
            return []
        self._latest, self._outcome = list(read_ends(self._outcome)), None
        return self._latest

    def __contains__(self, told: tuple[float, int]) -> bool:
        """Whether an episode with this return and length ended in the step that was last taken from."""
        return any(end[:2] == told for end in self._latest)

    def env_steps(self, number: int) -> int:
        """Steps made in all environments together when the script's own counter is at `number`."""
        return (number + 1) * self._envs if self._counts_steps else number


def read_ends(outcome: Any) -> Iterator[End]:
    """Every episode that ended with this outcome of a step; none if it has another shape than those above."""
    if not isinstance(outcome, tuple) or len(outcome) not in (4, 5):
        return
    infos = outcome[-1]
    if len(outcome) == 5:
        yield from _of_gymnasium(outcome[2], outcome[3], infos)
    elif isinstance(infos, Mapping):
        yield from _of_envpool(outcome[2], infos)
    else:
        yield from _of_gym(infos)


def _of_gymnasium(terminated: Any, truncated: Any, infos: Mapping[str, Any]) -> Iterator[End]:
    for number, info in enumerate(infos.get("final_info", ())):
        if info and "episode" in info:
            yield End(*_counts(info["episode"]), bool(terminated[number]), bool(truncated[number]))


def _of_gym(infos: Any) -> Iterator[End]:
    for info in infos:
        if "episode" in info:
            # gym 0.23 knows one flag; our own vector env gives both. Procgen gives none: over is terminated there.
            truncated = bool(info.get("truncated", info.get("TimeLimit.truncated", False)))
            yield End(*_counts(info["episode"]), bool(info.get("terminated", not truncated)), truncated)


def _of_envpool(dones: Any, infos: Mapping[str, Any]) -> Iterator[End]:
    if not {"r", "l", "lives", "terminated"} <= set(infos):
        return
    cut = infos.get("TimeLimit.truncated", np.zeros(len(dones), bool))
    for number, done in enumerate(dones):
        if done and infos["lives"][number] == 0:  # else a life was lost, and the game goes on
            counts = _counts({name: infos[name][number] for name in "rl"})
            yield End(*counts, bool(infos["terminated"][number]), bool(cut[number]))


def _counts(episode: Mapping[str, Any]) -> tuple[float, int]:
    return float(np.asarray(episode["r"]).item()), int(np.asarray(episode["l"]).item())
