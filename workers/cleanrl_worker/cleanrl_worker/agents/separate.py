"""CleanRL's own network for flat observations: actor and critic share nothing.

(B, n) → Linear 64 → Tanh → Linear 64 → Tanh → Linear 1        critic
(B, n) → Linear 64 → Tanh → Linear 64 → Tanh → Linear actions  actor

The critic is created first, as in CleanRL's ppo.py. Layers draw their weights from torch's generator one after the
other, so with the same seed both scripts start from the same weights.
"""

from torch import Tensor, nn

from cleanrl_worker.agents.head import ACTOR_GAIN, CRITIC_GAIN, DiscreteAgent, orthogonal


class SeparateAgent(DiscreteAgent):
    HIDDEN = 64

    def __init__(self, inputs: int, actions: int) -> None:
        super().__init__()
        self.critic = self._mlp(inputs, 1, CRITIC_GAIN)
        self.actor = self._mlp(inputs, actions, ACTOR_GAIN)

    def features(self, observations: Tensor) -> Tensor:
        return observations

    def _mlp(self, inputs: int, outputs: int, gain: float) -> nn.Sequential:
        return nn.Sequential(
            orthogonal(nn.Linear(inputs, self.HIDDEN)),
            nn.Tanh(),
            orthogonal(nn.Linear(self.HIDDEN, self.HIDDEN)),
            nn.Tanh(),
            orthogonal(nn.Linear(self.HIDDEN, outputs), gain),
        )
