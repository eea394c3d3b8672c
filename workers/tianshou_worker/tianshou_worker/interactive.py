"""--interactive: an environment and a policy, driven by commands over pipes (protocol: mosaic_sdk.interactive)."""

from typing import Any

from mosaic_sdk.library.playing import CHECKPOINT, EnvPlayer

from tianshou_worker.config import TianshouConfig
from tianshou_worker.envs import is_vector, make_env


def make_player(config: TianshouConfig) -> EnvPlayer:
    return TianshouPlayer(config) if config.policy_path else EnvPlayer(config, make_env(config))


class TianshouPlayer(EnvPlayer):
    """Plays with a checkpoint's policy."""

    policy_kind = CHECKPOINT

    def __init__(self, config: TianshouConfig) -> None:
        from tianshou_worker.play import Stage

        self._stage = Stage(config)
        super().__init__(self._stage.config, self._stage.env)

    def begin(self, agent_id: Any, seed: int | None) -> None:
        if seed is not None:
            import torch

            torch.manual_seed(seed)  # for actions that are sampled

    def act(self, observation: Any, agent_id: Any, mask: Any) -> Any:
        return self._stage.act(observation)

    def seen(self, observation: Any) -> Any:
        return observation if is_vector(self.bare.observation_space) else self.env.observation(observation)
