"""What all agents share: orthogonal initialisation, and how logits become actions."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.distributions import Categorical

HIDDEN_GAIN = 2.0**0.5
ACTOR_GAIN = 0.01  # all actions are nearly equally likely at first
CRITIC_GAIN = 1.0


def orthogonal(layer: Any, gain: float = HIDDEN_GAIN) -> Any:
    """The layer, initialised with orthogonal weights and zero biases."""
    nn.init.orthogonal_(layer.weight, gain)
    nn.init.zeros_(layer.bias)
    return layer


class DiscreteAgent(nn.Module):
    """A policy over discrete actions and a state value, both computed from `features`."""

    features: Callable[[Tensor], Tensor]
    actor: Callable[[Tensor], Tensor]
    critic: Callable[[Tensor], Tensor]

    def get_value(self, observations: Tensor) -> Tensor:
        return self.critic(self.features(observations))

    def get_action_and_value(
        self, observations: Tensor, action: Tensor | None = None
    ) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """The action (sampled unless given), its log probability, the policy's entropy and the state value."""
        features = self.features(observations)
        policy = Categorical(logits=self.actor(features))
        chosen = policy.sample() if action is None else action
        return chosen, policy.log_prob(chosen), policy.entropy(), self.critic(features)

    @torch.no_grad()
    def best_action(self, observations: Tensor) -> Tensor:
        return self.actor(self.features(observations)).argmax(dim=-1)
