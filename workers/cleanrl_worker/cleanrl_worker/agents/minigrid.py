"""The agent for MiniGrid and BabyAI: a small CNN over the 7 x 7 cells that the player sees.

(B, 7, 7, 3) uint8 → (B, 3, 7, 7) in [0, 1] → 3 × (Conv2d 3×3 + ReLU): 32, 64, 64 → Flatten 3136 → Linear 128
                                                                   actor  Linear 128 → ReLU → Linear actions
                                                                   critic Linear 128 → ReLU → Linear 1
"""

from torch import Tensor, nn

from cleanrl_worker.agents.head import ACTOR_GAIN, CRITIC_GAIN, DiscreteAgent, orthogonal


class MinigridCNN(nn.Module):
    INPUT = (7, 7, 3)
    FEATURES = 128

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            orthogonal(nn.Conv2d(3, 32, 3, padding=1)),
            nn.ReLU(),
            orthogonal(nn.Conv2d(32, 64, 3, padding=1)),
            nn.ReLU(),
            orthogonal(nn.Conv2d(64, 64, 3, padding=1)),
            nn.ReLU(),
            nn.Flatten(),
            orthogonal(nn.Linear(64 * 7 * 7, self.FEATURES)),
        )

    def forward(self, cells: Tensor) -> Tensor:
        return self.layers(cells.permute(0, 3, 1, 2).float() / 255.0)


class MinigridAgent(DiscreteAgent):
    def __init__(self, actions: int) -> None:
        super().__init__()
        self.features = MinigridCNN()
        self.actor = _head(actions, ACTOR_GAIN)
        self.critic = _head(1, CRITIC_GAIN)


def _head(outputs: int, gain: float) -> nn.Sequential:
    size = MinigridCNN.FEATURES
    return nn.Sequential(orthogonal(nn.Linear(size, 128)), nn.ReLU(), orthogonal(nn.Linear(128, outputs), gain))
