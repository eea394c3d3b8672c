"""Many copies of an Atari game, stepped as one batch: envpool's, with counted returns.

    reset()        → observations (envs, 4, 84, 84)
    step(actions)  → observations, rewards, dones, {"r", "l", "lives", "terminated", "TimeLimit.truncated"}
    skips          → envs that ignore the next action and return the first picture of a new episode
    starts         → envs whose latest picture is the first one of an episode

envpool resets an env in the step after its last one; that step belongs to no episode. For an environment that envpool
does not have (CatchPixels-v0) a stand-in steps single environments one after the other, and skips none.
"""

from typing import Any

import numpy as np

from cleanrl_worker.toys import CATCH


class Envpool:
    """envpool's games: C++ threads step them."""

    def __init__(self, env_id: str, num_envs: int, seed: int) -> None:
        import envpool

        self._pool: Any = envpool.make(
            env_id, env_type="gymnasium", num_envs=num_envs, seed=seed, episodic_life=True, reward_clip=True
        )
        self.num_envs = num_envs
        self.single_observation_space = self._pool.observation_space
        self.single_action_space = self._pool.action_space
        self.skips, self.starts = np.zeros(num_envs, bool), np.ones(num_envs, bool)
        self._returns, self._lengths = np.zeros(num_envs), np.zeros(num_envs, int)

    def reset(self) -> Any:
        self.skips[:], self.starts[:] = False, True
        self._returns[:], self._lengths[:] = 0, 0
        return self._pool.reset()[0]

    def step(self, actions: Any) -> Any:
        observations, rewards, terminated, truncated, info = self._pool.step(np.asarray(actions))
        self._returns += info["reward"]
        self._lengths += 1
        dones = np.logical_or(terminated, truncated)
        is_over = np.logical_or(info["terminated"].astype(bool), truncated)
        counts = {"r": self._returns.copy(), "l": self._lengths.copy()}
        self._returns[is_over], self._lengths[is_over] = 0, 0
        self.starts, self.skips = self.skips, dones
        # A time limit ends a game with lives left, too.
        lives = np.where(is_over, 0, info["lives"])
        ends = {"lives": lives, "terminated": info["terminated"], "TimeLimit.truncated": truncated}
        return observations, rewards, dones, {**counts, **ends}

    def close(self) -> None:
        self._pool.close()


class StandIn:
    """Single environments with the interface above."""

    def __init__(self, env_id: str, num_envs: int, seed: int) -> None:
        import gymnasium

        from cleanrl_worker.wrappers.pixels import make_pixels

        print(f"cleanrl_worker: envpool has no {env_id}; a stand-in steps {num_envs} environments one by one.")
        self._envs = gymnasium.vector.SyncVectorEnv(
            [lambda n=n: make_pixels(env_id, seed + n, n, False, "") for n in range(num_envs)]  # type: ignore[misc]
        )
        self.num_envs, self._seed = num_envs, seed
        self.single_observation_space: Any = self._envs.single_observation_space
        self.single_action_space: Any = self._envs.single_action_space
        self.skips, self.starts = np.zeros(num_envs, bool), np.ones(num_envs, bool)

    def reset(self) -> Any:
        self.starts[:] = True
        return self._envs.reset(seed=self._seed)[0]

    def step(self, actions: Any) -> Any:
        observations, rewards, terminated, truncated, infos = self._envs.step(np.asarray(actions))
        counts = {"r": np.zeros(self.num_envs), "l": np.zeros(self.num_envs, int)}
        for number, info in enumerate(infos.get("final_info", ())):
            if info and "episode" in info:
                counts["r"][number], counts["l"][number] = (info["episode"][name].item() for name in "rl")
        lives = np.where(counts["l"] > 0, 0, 1)
        ends = {"lives": lives, "terminated": terminated, "TimeLimit.truncated": truncated}
        self.starts = np.logical_or(terminated, truncated)
        return observations, rewards, self.starts, {**counts, **ends}

    def close(self) -> None:
        self._envs.close()


Batch = Envpool | StandIn


def make_batch(env_id: str, num_envs: int, seed: int) -> Batch:
    return StandIn(env_id, num_envs, seed) if env_id == CATCH else Envpool(env_id, num_envs, seed)


def ended(dones: Any, infos: Any) -> list[tuple[float, int]]:
    """Return and length of each episode that ended in this step."""
    return [
        (float(infos["r"][number]), int(infos["l"][number]))
        for number in np.flatnonzero(np.logical_and(dones, infos["lives"] == 0))
    ]
