"""The agent for flat observations (CartPole, MountainCar, LunarLander …).

(B, n) → Linear 64 → Tanh → Linear 64 → Tanh → actor  Linear actions
                                             → critic Linear 1
"""

from torch import nn

from cleanrl_worker.agents.head import ACTOR_GAIN, CRITIC_GAIN, DiscreteAgent, orthogonal


class MLPAgent(DiscreteAgent):
    HIDDEN = 64

    def __init__(self, inputs: int, actions: int) -> None:
        super().__init__()
        self.features = nn.Sequential(
            orthogonal(nn.Linear(inputs, self.HIDDEN)),
            nn.Tanh(),
            orthogonal(nn.Linear(self.HIDDEN, self.HIDDEN)),
            nn.Tanh(),
        )
        self.actor = orthogonal(nn.Linear(self.HIDDEN, actions), ACTOR_GAIN)
        self.critic = orthogonal(nn.Linear(self.HIDDEN, 1), CRITIC_GAIN)
