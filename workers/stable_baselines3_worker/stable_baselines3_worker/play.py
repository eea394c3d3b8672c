"""A policy and one environment with the wrappers of its training: episodes on given seeds."""

from typing import Any

import gymnasium
import numpy as np
from mosaic_sdk.library.evaluating import Played

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


def action_masks(vec_env: Any) -> Any:
    """The masks of an environment that has them, for MaskablePPO; else None."""
    from sb3_contrib.common.maskable.utils import get_action_masks, is_masking_supported

    return get_action_masks(vec_env) if is_masking_supported(vec_env) else None


def play(actor: Actor, vec_env: Any, seed: int) -> Played:
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
            return Played(float(end["r"]), int(end["l"]), not truncated, truncated)


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
    from stable_baselines3.common.vec_env import unwrap_vec_normalize

    found = unwrap_vec_normalize(vec_env)
    return batch if found is None else found.normalize_obs(batch)


class Stage:
    """What `policy_path` names: the settings of its training, one environment, the model, and the checkpoint."""

    def __init__(self, config: StableBaselines3Config, video: bool = False) -> None:
        self.found = checkpoint.find(config)
        self.config = config.filled_from(self.found.settings)
        normalizer = checkpoint.part(self.found, checkpoint.NORMALIZER)
        self.vec_env = envs.freeze(envs.make_envs(self.config, normalizer, count=1, video=video))
        self._policy = model.load(self.config, checkpoint.part(self.found, checkpoint.MODEL))
        self._actor = self.new_actor()

    def new_actor(self) -> Actor:
        return Actor(self._policy, self.config)

    def play(self, seed: int) -> Played:
        return play(self._actor, self.vec_env, seed)

    def close(self) -> None:
        self.vec_env.close()
