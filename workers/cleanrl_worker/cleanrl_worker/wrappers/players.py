"""Atari games for several players (PettingZoo), as one batch with a row for each player of each game.

    reset()        → observations (rows, 4 + players, 84, 84): four greyscale pictures, then planes that mark the player
    step(actions)  → observations, rewards, dones, {"r", "l", "lives", "terminated", "TimeLimit.truncated"}

A step is four frames, its picture the brighter of the last two; learners get the sign of the reward. A game that is
over starts again at once. The ROMs are ale-py's.
"""

import importlib
import pkgutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from gymnasium import spaces

SIDE, STACK, SKIP = 84, 4, 4


def game_names() -> list[str]:
    """PettingZoo's Atari games: pong_v3 …"""
    package = importlib.import_module("pettingzoo.atari")
    return sorted(found.name for found in pkgutil.iter_modules(package.__path__) if "_v" in found.name)


class Game:
    """One game. Actions, observations and rewards are lists with one entry per player."""

    def __init__(self, env_id: str) -> None:
        import ale_py

        roms = str(Path(ale_py.__file__).parent / "roms")
        make = importlib.import_module(f"pettingzoo.atari.{env_id}").parallel_env
        self._env = make(obs_type="grayscale_image", auto_rom_install_path=roms)
        self.players: list[str] = list(self._env.possible_agents)
        self.action_space = self._env.action_space(self.players[0])
        count = STACK + len(self.players)
        self.observation_space = spaces.Box(0, 255, (count, SIDE, SIDE), np.uint8)
        self._pictures = np.zeros((STACK, SIDE, SIDE), np.uint8)

    def reset(self, seed: int | None = None) -> Any:
        found, _ = self._env.reset(seed=seed)
        self._pictures[:] = _small(found[self.players[0]])
        return self._observations()

    def step(self, actions: Any) -> tuple[Any, Any, bool, bool]:
        """Observations, rewards, and whether the game was won or lost, or cut by its time limit."""
        total = np.zeros(len(self.players))
        chosen = dict(zip(self.players, (int(action) for action in actions), strict=True))
        seen: list[Any] = []
        for _ in range(SKIP):
            found, rewards, terminated, truncated, _ = self._env.step(chosen)
            total += [rewards[player] for player in self.players]
            seen = [*seen[-1:], found[self.players[0]]]
            is_won, is_cut = any(terminated.values()), any(truncated.values())
            if is_won or is_cut:
                break
        self._pictures = np.concatenate((self._pictures[1:], _small(np.max(seen, axis=0))[None]))
        return self._observations(), total, is_won, is_cut and not is_won

    def close(self) -> None:
        self._env.close()

    def _observations(self) -> Any:
        marks = np.eye(len(self.players), dtype=np.uint8) * 255
        planes = np.broadcast_to(marks[:, :, None, None], (*marks.shape, SIDE, SIDE))
        pictures = np.broadcast_to(self._pictures, (len(self.players), *self._pictures.shape))
        return np.concatenate((pictures, planes), axis=1)


def _small(picture: Any) -> Any:
    import cv2

    return cv2.resize(np.asarray(picture).squeeze(), (SIDE, SIDE), interpolation=cv2.INTER_AREA)


class Players:
    """Several games; `num_envs` is the number of rows, which must be a multiple of the players of a game."""

    def __init__(self, env_id: str, num_envs: int, seed: int) -> None:
        from mosaic_sdk.config import ConfigError

        first = Game(env_id)
        per_game = len(first.players)
        if num_envs % per_game:
            raise ConfigError(f"extras.algo_params.num_envs: {env_id} has {per_game} players; use a multiple of that.")
        self._games = [first, *(Game(env_id) for _ in range(num_envs // per_game - 1))]
        self.num_envs, self._seed = num_envs, seed
        self.single_observation_space, self.single_action_space = first.observation_space, first.action_space
        self._returns, self._lengths = np.zeros(num_envs), np.zeros(num_envs, int)

    def reset(self) -> Any:
        self._returns[:], self._lengths[:] = 0, 0
        return np.concatenate([game.reset(self._seed + number) for number, game in enumerate(self._games)])

    def step(self, actions: Any) -> Any:
        chosen = np.split(np.asarray(actions), len(self._games))
        parts = [self._played(game, part) for game, part in zip(self._games, chosen, strict=True)]
        observations, rewards, terminated, truncated = (np.concatenate(column) for column in zip(*parts, strict=True))
        self._returns += rewards
        self._lengths += 1
        dones = np.logical_or(terminated, truncated)
        counts = {"r": self._returns.copy(), "l": self._lengths.copy(), "lives": np.zeros(self.num_envs, int)}
        self._returns[dones], self._lengths[dones] = 0, 0
        ends = {"terminated": terminated, "TimeLimit.truncated": truncated}
        return observations, np.sign(rewards), dones, {**counts, **ends}

    def close(self) -> None:
        for game in self._games:
            game.close()

    @staticmethod
    def _played(game: Game, actions: Any) -> tuple[Any, ...]:
        observations, rewards, is_won, is_cut = game.step(actions)
        if is_won or is_cut:
            observations = game.reset()
        count = len(game.players)
        return observations, rewards, np.full(count, is_won), np.full(count, is_cut)


class PlayersLane:
    """A game for evaluations: the policy is the first player, the others take random actions."""

    def __init__(self, env_id: str) -> None:
        self._game = Game(env_id)
        self.observation_space, self.action_space = self._game.observation_space, self._game.action_space
        self._others = np.random.default_rng()
        self._picture: Any = None

    def reset(self, seed: int, options: Mapping[str, Any] | None = None) -> Any:
        self._others = np.random.default_rng(seed)
        self._picture = self._game.reset(seed)[0]
        return self._picture

    def step(self, action: Any) -> Any:
        from cleanrl_worker.lanes import Step

        others = self._others.integers(self.action_space.n, size=len(self._game.players) - 1)
        observations, rewards, is_won, is_cut = self._game.step([action, *others])
        self._picture = observations[0]
        return Step(self._picture, float(rewards[0]), is_won, is_cut)

    def render(self) -> Any:
        return np.repeat(self._picture[STACK - 1][..., None], 3, axis=-1)

    def close(self) -> None:
        self._game.close()
