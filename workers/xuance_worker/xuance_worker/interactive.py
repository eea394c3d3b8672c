"""--interactive: an environment and a policy, driven by commands over pipes (protocol: mosaic_sdk.interactive).

Without a policy_path the actions are random, and `ready` states that. A policy of several agents has no environment
here: the evaluation owns it, and asks for the action of each agent.
"""

from collections.abc import Mapping
from typing import Any

from mosaic_sdk.config import ConfigError
from mosaic_sdk.library.playing import CHECKPOINT, EnvPlayer
from mosaic_sdk.player import CommandError, Step

from xuance_worker import library
from xuance_worker.config import XuanceConfig
from xuance_worker.families import MPE


def make_player(config: XuanceConfig) -> EnvPlayer:
    if config.policy_path:
        return XuancePlayer(config)
    if config.family == MPE:
        raise ConfigError(f"extras.policy_path is missing: {config.env_id} has several agents; name their policy.")
    library.prepare_process()
    library.require_env(config)
    import gymnasium

    return EnvPlayer(config, gymnasium.make(config.env_id, render_mode="rgb_array"))


class XuancePlayer(EnvPlayer):
    """A checkpoint's policy, for one agent or for each of several."""

    policy_kind = CHECKPOINT

    def __init__(self, config: XuanceConfig) -> None:
        from xuance_worker.policy import Actor, load_policy

        self._stage = load_policy(config)
        self._actor = Actor(self._stage.setup.agent, self._stage.config.algo)
        if self._actor.agent_ids:
            self.config = self._stage.config
        else:  # XuanCe's adapter holds the environment itself, which takes seeds and options
            super().__init__(self._stage.config, self._stage.setup.envs.envs[0].env.env)

    def reset(self, seed: int | None, options: dict[str, Any] | None) -> Mapping[str, Any]:
        self._refuse_several()
        return super().reset(seed, options)

    def step(self, action: Any) -> Step:
        self._refuse_several()
        return super().step(action)

    def spaces_of(self, agent_id: Any) -> tuple[Any, Any]:
        if self._actor.agent_ids and agent_id not in self._actor.agent_ids:
            raise CommandError(
                f"agent_id: the policy has no agent {agent_id!r}. It has: {', '.join(self._actor.agent_ids)}."
            )
        return self._actor.spaces_of(agent_id)

    def begin(self, agent_id: Any, seed: int | None) -> None:
        if seed is not None:
            import torch

            torch.manual_seed(seed)  # for the algorithms that sample
        self._actor.begin(agent_id)

    def act(self, observation: Any, agent_id: Any, mask: Any) -> Any:
        actions, observations = self.spaces_of(agent_id)
        seen = observation.astype(observations.dtype, copy=False)
        return within(self._actor.act(seen, agent_id, mask), actions)

    def close(self) -> None:
        self._stage.close()

    def _refuse_several(self) -> None:
        if self._actor.agent_ids:
            raise CommandError("A policy of several agents has no environment here. Send init_agent and select_action.")


def within(action: Any, space: Any) -> Any:
    """A continuous action inside its bounds, where XuanCe's policies need not stay."""
    import numpy as np

    return int(action) if hasattr(space, "n") else np.clip(action, space.low, space.high)
