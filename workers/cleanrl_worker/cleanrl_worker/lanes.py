"""One copy of an environment, stepped on its own, wrapped as the algorithm's own script wraps it.

    lane.reset(seed)  → observation                       the seed determines the episode
    lane.step(action) → Step(observation, reward, terminated, truncated)

Rewards are the environment's own, even if the script clips or normalises them for its learner. Losing a life does not
end an episode, although it does for the learner. There are three kinds: the script's `make_env`, Procgen and envpool.
"""

import inspect
from collections.abc import Callable, Mapping
from types import ModuleType
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from mosaic_sdk.fastlane.wrapper import Shown
from mosaic_sdk.operators.bare import Bare

from cleanrl_worker import fit
from cleanrl_worker.registry import ENVPOOL, PLAYERS, PROCGEN, VECTOR, Algorithm
from cleanrl_worker.wrapping import layers

if TYPE_CHECKING:
    from cleanrl_worker.checkpoints import Checkpoint  # its module imports torch, which a lane does not need

RND_STICKINESS = 0.25  # ppo_rnd_envpool trains on sticky actions


class Step(NamedTuple):
    observation: Any
    reward: float
    terminated: bool
    truncated: bool

    @property
    def is_last(self) -> bool:
        return self.terminated or self.truncated


class GymLane:
    """An environment from the script's own make_env, with the script's own wrappers."""

    def __init__(self, env: Any, normalisation: Mapping[str, Any] | None = None) -> None:
        self.env = env
        self.observation_space = env.observation_space
        self.action_space = env.action_space
        self.bare = Bare(env)
        self._tally = Tally.put_into(env)
        _fix_normalisation(env, normalisation)

    def reset(self, seed: int, options: Mapping[str, Any] | None = None) -> Any:
        self.bare.forget()
        # Without this, a game with lives left would only continue with the next life.
        for layer in layers(self.env):
            if "was_real_done" in vars(layer):
                layer.was_real_done = True
        observation, _ = self.env.reset(seed=seed, **({"options": dict(options)} if options else {}))
        self._tally.take()
        return np.asarray(observation)

    def step(self, action: Any) -> Step:
        observation, _, terminated, truncated, info = self.env.step(action)
        if (terminated or truncated) and "episode" not in info and self._tally.is_counted:
            observation, _ = self.env.reset()  # a life was lost and the game continues
            terminated = truncated = False
        return Step(np.asarray(observation), self._tally.take(), bool(terminated), bool(truncated))

    def render(self) -> Any:
        return self.env.render()

    def close(self) -> None:
        self.env.close()


class Tally:
    """Sits below the wrapper that counts returns, and sums the environment's own rewards."""

    def __init__(self, env: Any, is_counted: bool) -> None:
        self.env = env
        self.is_counted = is_counted  # whether info["episode"] marks the real end of an episode
        self._reward = 0.0

    @classmethod
    def put_into(cls, env: Any) -> "Tally":
        # Not into FastLane's wrapper, whose step() calls the environment that it was created with.
        chain = [layer for layer in layers(env) if not isinstance(layer, Shown)]
        counters = [layer for layer in chain if type(layer).__name__ == "RecordEpisodeStatistics"]
        above = counters[-1] if counters else chain[0]
        above.env = tally = cls(above.env, bool(counters))
        return tally

    def step(self, action: Any) -> Any:
        outcome = self.env.step(action)
        self._reward += float(outcome[1])
        return outcome

    def take(self) -> float:
        reward, self._reward = self._reward, 0.0
        return reward

    def __getattr__(self, name: str) -> Any:
        return getattr(self.env, name)


class ProcgenLane:
    """One level of a Procgen game. The seed is the number of the level."""

    def __init__(self, env_id: str) -> None:
        self.env_id = env_id
        self._env = self._make(0)
        self.observation_space = self._env.observation_space["rgb"]
        self.action_space = self._env.action_space

    def reset(self, seed: int, options: Mapping[str, Any] | None = None) -> Any:
        self._env.close()
        self._env = self._make(seed)
        self._picture = self._env.reset()["rgb"][0]
        return self._picture

    def step(self, action: Any) -> Step:
        observations, rewards, dones, _ = self._env.step(np.asarray([action]))
        self._picture = observations["rgb"][0]
        return Step(self._picture, float(rewards[0]), bool(dones[0]), False)

    def render(self) -> Any:
        return self._picture

    def close(self) -> None:
        self._env.close()

    def _make(self, level: int) -> Any:
        from procgen import ProcgenEnv

        return ProcgenEnv(
            num_envs=1, env_name=self.env_id, num_levels=1, start_level=level, rand_seed=level, distribution_mode="easy"
        )


class EnvpoolLane:
    """An Atari game in envpool, with the options that its script trains with."""

    def __init__(self, env_id: str, **options: Any) -> None:
        self._env_id, self._options = env_id, options
        self._env = self._make(0)
        self.observation_space = self._env.observation_space
        self.action_space = self._env.action_space

    def reset(self, seed: int, options: Mapping[str, Any] | None = None) -> Any:
        self._env = self._make(seed)
        self._picture = self._env.reset()[0]
        return self._picture

    def step(self, action: Any) -> Step:
        observations, _, dones, info = self._env.step(np.asarray([action]))
        self._picture = observations[0]
        is_over = bool(info["terminated"][0])
        truncated = bool(info.get("TimeLimit.truncated", [False])[0]) and bool(dones[0])
        return Step(self._picture, float(info["reward"][0]), is_over, truncated and not is_over)

    def render(self) -> Any:
        return np.repeat(self._picture[-1][..., None], 3, axis=-1)

    def close(self) -> None:
        self._env.close()

    def _make(self, seed: int) -> Any:
        import envpool

        return envpool.make(
            self._env_id, env_type="gym", num_envs=1, seed=seed, episodic_life=True, reward_clip=True, **self._options
        )


Lane = Any  # GymLane, ProcgenLane, EnvpoolLane, or PlayersLane of wrappers/players.py


def make_lanes(
    algorithm: Algorithm,
    script: ModuleType,
    env_id: str,
    count: int,
    checkpoint: "Checkpoint | None",
    capture_video: bool = False,
) -> list[Lane]:
    """`count` copies of the environment, created as the script does it."""
    if algorithm.takes in (PROCGEN, ENVPOOL, PLAYERS):
        return [_make_special(algorithm, env_id) for _ in range(count)]
    params = checkpoint.params if checkpoint else {}
    normalisation = checkpoint.normalisation if checkpoint else None
    return [GymLane(_thunk(script, env_id, n, capture_video, params)(), normalisation) for n in range(count)]


def make_plain_lane(algorithm: Algorithm, env_id: str) -> Lane:
    """The environment without the script's wrappers, for clients that choose the actions themselves."""
    fit.check_env(algorithm, env_id)
    if algorithm.takes in (PROCGEN, ENVPOOL, PLAYERS):
        return _make_special(algorithm, env_id)
    import gymnasium

    env = gymnasium.make(env_id)
    if algorithm.is_ours and algorithm.takes == VECTOR:
        from cleanrl_worker.wrappers.observations import for_agent

        return GymLane(for_agent(env))
    return GymLane(fit.flat(env) if algorithm.takes == VECTOR else env)


def _make_special(algorithm: Algorithm, env_id: str) -> Lane:
    if algorithm.takes == PROCGEN:
        return ProcgenLane(env_id)
    if algorithm.takes == PLAYERS:
        from cleanrl_worker.wrappers.players import PlayersLane

        return PlayersLane(env_id)
    if algorithm.is_ours and env_id == fit.TOY_PIXELS:  # not one of envpool's
        from cleanrl_worker.wrappers.pixels import make_pixels

        return GymLane(make_pixels(env_id, 0, 0, False, "eval"))
    options = {"repeat_action_probability": RND_STICKINESS} if "rnd" in algorithm.name else {}
    return EnvpoolLane(env_id, **options)


def _thunk(script: ModuleType, env_id: str, number: int, capture_video: bool, params: Mapping[str, Any]) -> Any:
    """The scripts' make_env functions take different parameters, but name them consistently."""
    values = {
        "env_id": env_id,
        "seed": number,
        "idx": number,
        "capture_video": capture_video,
        "run_name": "eval",
        "gamma": params.get("gamma", 0.99),
    }
    make_env: Callable[..., Any] = script.make_env
    return make_env(**{name: values[name] for name in inspect.signature(make_env).parameters})


def _fix_normalisation(env: Any, normalisation: Mapping[str, Any] | None) -> None:
    """Normalise observations as at the end of the training, and keep those statistics fixed."""
    layer = next((layer for layer in layers(env) if type(layer).__name__ == "NormalizeObservation"), None)
    if layer is None or normalisation is None:
        return
    saved = normalisation.get("obs_rms")
    if not saved:
        from mosaic_sdk.checkpoints import CheckpointError

        raise CheckpointError(
            "The checkpoint has no normalisation of the observations (obs_rms), but its policy was trained with one."
        )
    rms = layer.obs_rms
    rms.mean, rms.var = (np.asarray(saved[0][name]) for name in ("mean", "var"))
    rms.count = float(saved[0]["count"])
    rms.update = lambda observations: None
