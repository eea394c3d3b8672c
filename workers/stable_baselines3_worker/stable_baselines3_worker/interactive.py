"""--interactive: an environment and a policy, driven by commands over pipes (protocol: mosaic_sdk.interactive).

Without a policy_path the actions are random. The environment has the wrappers of the policy's training.
"""

from collections.abc import Mapping
from typing import Any

from mosaic_sdk.library.playing import CHECKPOINT, EnvPlayer
from mosaic_sdk.player import Agent, AgentId, CommandError

from stable_baselines3_worker import envs
from stable_baselines3_worker.config import ATARI, StableBaselines3Config


def make_player(config: StableBaselines3Config) -> EnvPlayer:
    return StableBaselines3Player(config) if config.policy_path else EnvPlayer(config, envs.make_env(config))


class StableBaselines3Player(EnvPlayer):
    """Plays with a checkpoint's policy. Created for the first command that needs it, because it imports torch."""

    policy_kind = CHECKPOINT

    def __init__(self, config: StableBaselines3Config) -> None:
        from stable_baselines3_worker import play

        self._play, self._stage = play, play.Stage(config)
        self._vec_env, self._inner = self._stage.vec_env, self._stage.vec_env.unwrapped
        super().__init__(self._stage.config, self._inner.envs[0])
        self._is_atari = envs.wrapper_of(self.config) == ATARI
        self._actors: dict[AgentId, Any] = {}
        self._return = 0.0

    def begin(self, agent_id: AgentId, seed: int | None) -> None:
        self._actors.setdefault(agent_id, self._stage.new_actor()).begin(seed)

    def act(self, observation: Any, agent_id: AgentId, mask: Any) -> Any:
        return self._actors[agent_id].act(observation, None if mask is None else [mask])[0]

    def start(self, seed: int | None, options: dict[str, Any] | None) -> Any:
        self._inner.seed(seed)
        self._inner.set_options(options)
        self._return = 0.0
        return self._vec_env.reset()

    def take(self, action: Any) -> tuple[Any, float, bool, bool]:
        observations, rewards, _, infos = self._vec_env.step([action])
        end = infos[0].get("episode")
        truncated = end is not None and bool(infos[0].get("TimeLimit.truncated"))
        return observations, self._reward(rewards[0], end), end is not None and not truncated, truncated

    def mask(self) -> Any:
        masks = self._play.action_masks(self._vec_env) if self._actors[None].is_maskable else None
        return None if masks is None else masks[0]

    def seen(self, observation: Any) -> Any:
        return self._play.seen(self._vec_env, observation)

    def begin_agent(self, agent: Agent) -> Mapping[str, Any]:
        if self._is_atari or self.config.frame_stack > 1:
            raise CommandError(
                "observation_space: the policy sees several frames of its environment, so it needs one of its own. "
                "Let the worker own it (owns_env: true)."
            )
        return super().begin_agent(agent)

    def close(self) -> None:
        self._stage.close()

    def _reward(self, reward: float, end: Mapping[str, Any] | None) -> float:
        """The environment's own reward: AtariWrapper clips it."""
        if not self._is_atari:
            return float(reward)
        before, self._return = self._return, float(end["r"] if end else sum(self.env.get_wrapper_attr("rewards")))
        return self._return - before
