"""Tianshou's objects for a config: networks, policy, algorithm. The part that a user of the library writes."""

from typing import Any

import torch
from gymnasium import spaces
from mosaic_sdk.config import ConfigError
from tianshou.algorithm import A2C, DDPG, DQN, PPO, SAC, TD3
from tianshou.algorithm.modelfree.ddpg import ContinuousDeterministicPolicy
from tianshou.algorithm.modelfree.dqn import DiscreteQLearningPolicy
from tianshou.algorithm.modelfree.reinforce import ProbabilisticActorPolicy
from tianshou.algorithm.modelfree.sac import SACPolicy
from tianshou.algorithm.optim import AdamOptimizerFactory
from tianshou.exploration import GaussianNoise
from tianshou.utils.net.common import Net
from tianshou.utils.net.continuous import ContinuousActorDeterministic, ContinuousActorProbabilistic, ContinuousCritic
from tianshou.utils.net.discrete import DiscreteActor, DiscreteCritic

from tianshou_worker.algorithms import CONTINUOUS, ELSEWHERE, ON_POLICY
from tianshou_worker.config import TianshouConfig

CLASSES: dict[str, Any] = {"a2c": A2C, "ddpg": DDPG, "dqn": DQN, "ppo": PPO, "sac": SAC, "td3": TD3}


def create(config: TianshouConfig, observations: Any, actions: Any) -> Any:
    """A new algorithm. ConfigError if it cannot act in the environment."""
    is_discrete = isinstance(actions, spaces.Discrete)
    if (config.algo in CONTINUOUS and is_discrete) or (config.algo == "dqn" and not is_discrete):
        wanted = "continuous" if is_discrete else "discrete"
        raise ConfigError(f"algo: {config.algo} needs {wanted} actions; {config.env_id} has {actions}.")
    torch.set_num_threads(config.num_threads)
    torch.manual_seed(config.seed)
    build = Builder(config, observations, actions)
    arguments = {name: value for name, value in config.params.items() if name not in ELSEWHERE}
    return CLASSES[config.algo](**build.parts(), **arguments)


class Builder:
    """The networks and the policy of an algorithm."""

    def __init__(self, config: TianshouConfig, observations: Any, actions: Any) -> None:
        self._config, self._params = config, config.params
        self._actions, self._spaces = actions, {"action_space": actions, "observation_space": observations}
        self._seen, self._taken = observations.shape, actions.shape or actions.n

    def parts(self) -> dict[str, Any]:
        if self._config.algo in ON_POLICY:
            return {"policy": self._stochastic(), "critic": self._value(), "optim": self._adam()}
        if self._config.algo == "dqn":
            model = self._net(action_shape=self._taken)
            policy = DiscreteQLearningPolicy(model=model, eps_training=self._params["eps_training"], **self._spaces)
            return {"policy": policy, "optim": self._adam()}
        policy = self._sac() if self._config.algo == "sac" else self._deterministic()
        critic = ContinuousCritic(preprocess_net=self._net(action_shape=self._taken, concat=True))
        return {"policy": policy, "critic": critic, "policy_optim": self._adam(), "critic_optim": self._adam()}

    def _net(self, **more: Any) -> Any:
        return Net(state_shape=self._seen, hidden_sizes=self._params["hidden_sizes"], **more)

    def _adam(self) -> Any:
        return AdamOptimizerFactory(lr=self._params["lr"])

    def _value(self) -> Any:
        is_discrete = isinstance(self._actions, spaces.Discrete)
        return (DiscreteCritic if is_discrete else ContinuousCritic)(preprocess_net=self._net())

    def _stochastic(self) -> Any:
        more: dict[str, Any] = {"deterministic_eval": self._config.eval_deterministic, **self._spaces}
        if isinstance(self._actions, spaces.Discrete):
            actor = DiscreteActor(preprocess_net=self._net(), action_shape=self._taken)
            return ProbabilisticActorPolicy(actor=actor, dist_fn=categorical, action_scaling=False, **more)
        actor = ContinuousActorProbabilistic(preprocess_net=self._net(), action_shape=self._taken, unbounded=True)
        return ProbabilisticActorPolicy(actor=actor, dist_fn=normal, **more)

    def _sac(self) -> Any:
        actor = ContinuousActorProbabilistic(
            preprocess_net=self._net(), action_shape=self._taken, unbounded=True, conditioned_sigma=True
        )
        return SACPolicy(actor=actor, deterministic_eval=self._config.eval_deterministic, **self._spaces)

    def _deterministic(self) -> Any:
        actor = ContinuousActorDeterministic(preprocess_net=self._net(), action_shape=self._taken)
        noise = GaussianNoise(sigma=self._params["exploration_noise"])
        return ContinuousDeterministicPolicy(actor=actor, exploration_noise=noise, **self._spaces)


def categorical(probabilities: Any) -> Any:
    return torch.distributions.Categorical(probabilities)


def normal(parameters: Any) -> Any:
    mean, deviation = parameters
    return torch.distributions.Independent(torch.distributions.Normal(mean, deviation), 1)
