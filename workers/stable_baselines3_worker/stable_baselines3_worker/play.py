"""A policy and one environment with the wrappers of its training: episodes on given seeds."""

from typing import Any

import gymnasium
import numpy as np

from stable_baselines3_worker import algorithms, checkpoint, envs, model
from stable_baselines3_worker.config import StableBaselines3Config


class Actor:
    """A model that acts, with the memory of a recurrent policy."""

    def __init__(self, policy: Any, config: StableBaselines3Config) -> None:
        algorithm = algorithms.find(config.algo)
        self._policy, self._deterministic = policy, config.eval_deterministic
        self._is_recurrent, self.is_maskable = algorithm.is_recurrent, algorithm.is_maskable
        self._memory: Any = None

    def begin(self, seed: int | None) -> None:
        """Begin an episode. The seed is for actions that are sampled."""
        self._memory = None
        if seed is not None and not self._deterministic:
            self._policy.set_random_seed(seed)

    def act(self, observations: Any, masks: Any = None) -> Any:
        """The actions for a batch of one observation."""
        more: dict[str, Any] = {}
        if self._is_recurrent:
            more = {"state": self._memory, "episode_start": np.array([self._memory is None])}
        elif self.is_maskable and masks is not None:
            more = {"action_masks": np.asarray(masks, dtype=bool)}
        actions, self._memory = self._policy.predict(observations, deterministic=self._deterministic, **more)
        return actions


class RandomActor:
    """Random actions, uniformly distributed."""

    is_maskable = False

    def __init__(self, space: Any) -> None:
        self._space = space

    def begin(self, seed: int | None) -> None:
        if seed is not None:
            self._space.seed(seed)

    def act(self, observations: Any, masks: Any = None) -> Any:
        return [self._space.sample(mask=None if masks is None else np.asarray(masks[0], dtype=np.int8))]


class SingleEnv:
    """One environment with the part of VecEnv's interface that a player uses, for a player that needs no torch."""

    def __init__(self, env: Any) -> None:
        self.envs, self.unwrapped = [env], self
        self._options: Any = None
        self._seed: int | None = None
        self._return, self._length = 0.0, 0

    def seed(self, seed: int | None) -> None:
        self._seed = seed

    def set_options(self, options: Any) -> None:
        self._options = options

    def reset(self) -> list[Any]:
        self._return, self._length = 0.0, 0
        return [self.envs[0].reset(seed=self._seed, options=self._options)[0]]

    def step(self, actions: list[Any]) -> tuple[list[Any], list[float], list[bool], list[dict[str, Any]]]:
        observation, reward, terminated, truncated, info = self.envs[0].step(actions[0])
        self._return, self._length = self._return + float(reward), self._length + 1
        if terminated or truncated:
            info = {**info, "episode": {"r": self._return, "l": self._length}}
        info["TimeLimit.truncated"] = truncated and not terminated
        return [observation], [float(reward)], [terminated or truncated], [info]

    def close(self) -> None:
        self.envs[0].close()


def action_masks(vec_env: Any) -> Any:
    """The masks of an environment that has them, for MaskablePPO; else None."""
    from sb3_contrib.common.maskable.utils import get_action_masks, is_masking_supported

    return get_action_masks(vec_env) if is_masking_supported(vec_env) else None


def play(actor: Actor, vec_env: Any, seed: int) -> tuple[float, int, bool, bool]:
    """One episode: its return and length as the Monitor counts them, and whether it was terminated or truncated."""
    vec_env.seed(seed)
    observations = vec_env.reset()
    actor.begin(seed)
    while True:
        masks = action_masks(vec_env) if actor.is_maskable else None
        observations, _, _, infos = vec_env.step(actor.act(observations, masks))
        end = infos[0].get("episode")
        if end is not None:
            truncated = bool(infos[0].get("TimeLimit.truncated"))
            return float(end["r"]), int(end["l"]), not truncated, truncated


def seen(vec_env: Any, observation: Any) -> Any:
    """An observation of the environment without wrappers as the policy gets it: a batch of one."""
    layers, env = [], vec_env.unwrapped.envs[0]
    while isinstance(env, gymnasium.Wrapper):
        layers.append(env)
        env = env.env
    for layer in reversed(layers):
        if isinstance(layer, gymnasium.ObservationWrapper):
            observation = layer.observation(observation)
    is_dict = isinstance(observation, dict)
    batch = (
        {name: np.asarray(one)[None] for name, one in observation.items()} if is_dict else np.asarray(observation)[None]
    )
    return batch if isinstance(vec_env, SingleEnv) else normalized(vec_env, batch)


def normalized(vec_env: Any, batch: Any) -> Any:
    from stable_baselines3.common.vec_env import unwrap_vec_normalize

    found = unwrap_vec_normalize(vec_env)
    return batch if found is None else found.normalize_obs(batch)


def load_stage(config: StableBaselines3Config, video: bool = False) -> tuple[StableBaselines3Config, Any, Any, Any]:
    """What `policy_path` names: the settings of its training, one environment, the model, and the checkpoint."""
    found = checkpoint.find(config)
    whole = config.filled_from(found.settings)
    normalizer = checkpoint.part(found, checkpoint.NORMALIZER)
    vec_env = envs.freeze(envs.make_envs(whole, normalizer, count=1, video=video))
    return whole, vec_env, model.load(whole, checkpoint.part(found, checkpoint.MODEL)), found
