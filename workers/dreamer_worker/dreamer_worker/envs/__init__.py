"""The envs, each behind the same few methods.

    obs_space, act_space      names → Space; the actions of all of them are one dict
    reset(), step(action)     → an observation: the sensors, `reward`, `is_first`, `is_last`, `is_terminal`, and what is
                                only to be logged under `log/…`
    render()                  → height × width × 3 bytes, or None

A task is `suite_name`: crafter_reward, atari_pong, atari100k_boxing, dmc_walker_walk, minigrid_MiniGrid-Empty-5x5-v0,
gym_CartPole-v1, dummy_grid. A name without a known suite is Gymnasium's, also as package:name.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any, Protocol

import numpy as np

from dreamer_worker.agent.spaces import Spaces

Obs = dict[str, Any]
Action = dict[str, Any]
# A bound beyond this one counts as no bound.
BOUNDLESS = 1e9

SUITES = {
    "gym": "gymnasium",
    "crafter": "crafter",
    "atari": "atari",
    "atari100k": "atari",
    "dmc": "dmc",
    "minigrid": "minigrid",
    "dummy": "dummy",
}


class Env(Protocol):
    obs_space: Spaces
    act_space: Spaces

    def reset(self) -> Obs: ...
    def step(self, action: Action) -> Obs: ...
    def render(self) -> np.ndarray | None: ...
    def close(self) -> None: ...


def split_task(task: str) -> tuple[str, str]:
    """Suite and name of a task."""
    suite, _, name = task.partition("_")
    is_suite = suite in SUITES and name and (suite == "gym" or ":" not in name)
    return (suite, name) if is_suite else ("gym", task)


def make_env(task: str, seed: int | None = None, **options: Any) -> Env:
    """The env of a task. `options` are those of its adapter, such as `size` of its images."""
    suite, name = split_task(task)
    # Imported here: a suite needs only its own library.
    make: Callable[..., Env] = import_module(f"dreamer_worker.envs.{SUITES[suite]}").make
    return make(name, seed=seed, suite=suite, **options)


def observe(sensors: Obs, reward: float = 0.0, first: bool = False, last: bool = False, terminal: bool = False) -> Obs:
    """Sensors with the four keys that every observation has."""
    return {
        **sensors,
        "reward": np.float32(reward),
        "is_first": np.bool_(first),
        "is_last": np.bool_(last),
        "is_terminal": np.bool_(terminal),
    }


def stretch(action: Any, low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """The agent's -1 .. 1 as the env's low .. high, clipped.

    Without bounds it stays -1 .. 1; with one of the two, it is the range of the same width next to -1 .. 1 within it.
    """
    bounded = (low > -BOUNDLESS) & (high < BOUNDLESS)
    start = np.clip(-1.0, low, high - 2.0)
    low, high = np.where(bounded, low, start), np.where(bounded, high, start + 2.0)
    clipped = np.clip(np.reshape(action, low.shape), -1, 1)
    return np.asarray(low + (clipped + 1) / 2 * (high - low))


def groups_of(name: str, classes: np.ndarray) -> list[tuple[str, np.ndarray, int]]:
    """Many choices at once, those with as many classes together: a name, their places in the flat array, the classes.

    One group keeps the name; of several, `name/of3` are those between three. One name each would be thousands for an
    env that moves every unit on a map.
    """
    sizes, group = np.unique(classes, return_inverse=True)
    names = [name] if len(sizes) == 1 else [f"{name}/of{size}" for size in sizes]
    return [(names[i], np.flatnonzero(group.ravel() == i), int(size)) for i, size in enumerate(sizes)]


def resize(image: np.ndarray, size: tuple[int, int]) -> np.ndarray:
    """An image in another size, smoothly."""
    if image.shape[:2] == tuple(size):
        return image
    if image.shape[-1] not in (1, 3):  # Pillow would take the second or fourth channel for transparency
        return np.concatenate([resize(image[..., i : i + 1], size) for i in range(image.shape[-1])], -1)
    from PIL import Image

    picture = Image.fromarray(image[..., 0] if image.shape[-1] == 1 else image)
    scaled = np.asarray(picture.resize((size[1], size[0]), Image.Resampling.BILINEAR))
    return scaled[..., None] if scaled.ndim == 2 else scaled
