"""A checkpoint's policy, ready to act."""

import inspect
from typing import Any, NamedTuple

from mosaic_sdk.checkpoints import Checkpoint
from mosaic_sdk.config import ConfigError

from xuance_worker import checkpoint, library
from xuance_worker.algorithms import ALGORITHMS
from xuance_worker.config import XuanceConfig


class Stage(NamedTuple):
    """A checkpoint, the config of this run filled with its settings, and one environment with its agent."""

    found: Checkpoint
    config: XuanceConfig
    setup: library.Setup

    def close(self) -> None:
        self.setup.agent.finish()
        self.setup.envs.close()


def load_policy(config: XuanceConfig) -> Stage:
    """What `policy_path` names. The statistics of the agent no longer change."""
    found = checkpoint.find(config)
    trained = XuanceConfig.from_dict({**found.settings, "run_id": config.run_id})
    setup = library.build(trained.replace(device=config.device), parallels=1, env_seed=trained.seed)
    from xuance_worker.state import restore_policy

    restore_policy(setup.agent, checkpoint.load(found))
    freeze(setup.agent)
    return Stage(found, config.filled_from(found.settings), setup)


def freeze(agent: Any) -> None:
    """Keep the agent as it was trained: XuanCe's test loop would update its statistics and keep NoisyDQN's noise."""
    if hasattr(agent, "obs_rms"):
        agent.obs_rms.update = lambda observations: None
    if getattr(agent, "noise_scale", None) is not None:
        agent.noise_scale = 0.0


class Actor:
    """Chooses actions, one observation at a time; `agent_id` names the agent among several.

    The other agents' observations are left at zero: only algorithms are accepted whose agents decide on their own.
    """

    def __init__(self, agent: Any, algo: str) -> None:
        if not ALGORITHMS[algo].is_independent:
            raise ConfigError(f"algo: the agents of {algo} decide together and cannot be played one by one.")
        self._agent = agent
        self._takes = inspect.signature(agent.get_actions).parameters
        self._hidden: dict[Any, Any] = {}

    @property
    def agent_ids(self) -> list[str]:
        return list(getattr(self._agent, "agent_keys", []))

    def spaces_of(self, agent_id: Any) -> tuple[Any, Any]:
        """Its action space and its observation space."""
        actions, observations = self._agent.action_space, self._agent.observation_space
        return (actions[agent_id], observations[agent_id]) if self.agent_ids else (actions, observations)

    def begin(self, agent_id: Any) -> None:
        """The next observation is the first of an episode."""
        self._hidden.pop(agent_id, None)

    def act(self, observation: Any, agent_id: Any, mask: Any = None) -> Any:
        """The action as XuanCe's agent chooses it in a test."""
        import torch

        with torch.no_grad():
            chosen = self._choose(observation, agent_id, mask)
        return chosen[0][agent_id] if self.agent_ids else chosen[0]

    def _choose(self, observation: Any, agent_id: Any, mask: Any) -> Any:
        agent = self._agent
        options = {name: True for name in ("deterministic", "test_mode") if name in self._takes}
        hidden_name = next((name for name in ("rnn_hidden_actor", "rnn_hidden") if name in self._takes), "")
        if hidden_name:
            options[hidden_name] = self._hidden_of(agent_id)
        if self.agent_ids:
            out = agent.get_actions(self._filled(observation, agent_id), **self._masks(agent_id, mask), **options)
        else:
            out = agent.get_actions(agent._process_observation(observation[None].copy()), **options)
        if not isinstance(out, dict):
            return out  # NoisyDQN
        after = next(
            (out[name] for name in ("rnn_hidden_actor", "hidden_state", "rnn_hidden_next") if name in out), None
        )
        self._hidden[agent_id] = after
        return out["actions"]

    def _hidden_of(self, agent_id: Any) -> Any:
        if self._hidden.get(agent_id) is not None:
            return self._hidden[agent_id]
        if not self.agent_ids:
            return self._agent.policy.init_hidden(1)
        fresh = self._agent.init_rnn_hidden(1)
        return fresh[0] if isinstance(fresh, tuple) else fresh

    def _filled(self, observation: Any, agent_id: Any) -> list[dict[str, Any]]:
        import numpy as np

        others = {name: np.zeros(space.shape, space.dtype) for name, space in self._agent.observation_space.items()}
        return [{**others, agent_id: observation}]

    def _masks(self, agent_id: Any, mask: Any) -> dict[str, Any]:
        if not self._agent.use_actions_mask:
            return {}
        import numpy as np

        everything = {name: np.ones(space.n, np.bool_) for name, space in self._agent.action_space.items()}
        own = everything[agent_id] if mask is None else np.asarray(mask, np.bool_)
        return {"avail_actions_dict": [{**everything, agent_id: own}]}
