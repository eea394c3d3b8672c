"""How episodes ended, read from what the script's vector environment returned from its latest step.

A script logs an episode's return and length, but not how it ended, and many scripts log only the first of several
episodes that end in one step. `envs.step` returns all of it, so its result is kept until the next step and read only
when the script logs an episode. The cost is one more call per step.

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
    terminated: bool | None = None  # None: unknown
    truncated: bool | None = None


class Ends:
    """The episodes that ended in the latest step of the watched environments."""

    def __init__(self, counts_steps: bool = False) -> None:
        # DQN and similar scripts count the current step from 0; PPO and similar ones count completed steps.
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
        """The episodes that have not been taken yet."""
        if self._outcome is None:
            return []
        self._latest, self._outcome = list(read_ends(self._outcome)), None
        return self._latest

    def __contains__(self, counts: tuple[float, int]) -> bool:
        """Whether an episode with this return and length is among those taken last."""
        return any(end[:2] == counts for end in self._latest)

    def env_steps(self, number: int) -> int:
        """Steps completed in all environments together when the script's own counter is at `number`."""
        return (number + 1) * self._envs if self._counts_steps else number


def read_ends(outcome: Any) -> Iterator[End]:
    """Every episode that ended in this step; none if the result has none of the shapes above."""
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
            # gym 0.23 has one flag and our vector env both. Procgen has neither: its episodes count as terminated.
            truncated = bool(info.get("truncated", info.get("TimeLimit.truncated", False)))
            yield End(*_counts(info["episode"]), bool(info.get("terminated", not truncated)), truncated)


def _of_envpool(dones: Any, infos: Mapping[str, Any]) -> Iterator[End]:
    if not {"r", "l", "lives", "terminated"} <= set(infos):
        return
    cut = infos.get("TimeLimit.truncated", np.zeros(len(dones), bool))
    for number, done in enumerate(dones):
        if done and infos["lives"][number] == 0:  # otherwise a life was lost and the game continues
            counts = _counts({name: infos[name][number] for name in "rl"})
            yield End(*counts, bool(infos["terminated"][number]), bool(cut[number]))


def _counts(episode: Mapping[str, Any]) -> tuple[float, int]:
    return float(np.asarray(episode["r"]).item()), int(np.asarray(episode["l"]).item())
