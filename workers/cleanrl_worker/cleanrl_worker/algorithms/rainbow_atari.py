"""Rainbow: six improvements of DQN in one agent, for Atari games and other images.

Hessel, Modayil, van Hasselt, Schaul, Ostrovski, Dabney, Horgan, Piot, Azar, Silver: "Rainbow: Combining Improvements in
Deep Reinforcement Learning", 2017 (arXiv 1710.02298): double Q-learning, prioritised replay, a dueling network, n-step
returns, a distribution of returns (C51), and noisy layers instead of random actions.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import gymnasium as gym
import numpy as np
import torch
import tyro
from numpy.typing import NDArray
from stable_baselines3.common.buffers import ReplayBuffer
from torch import Tensor, nn, optim

from cleanrl_worker.algorithms.experiment import (
    Experiment,
    linear_schedule,
    log_episodes,
    log_speed,
    name_run,
    open_log,
    seed_everything,
)
from cleanrl_worker.wrappers.pixels import make_pixels


@dataclass
class Args(Experiment):
    exp_name: str = "rainbow_atari"
    env_id: str = "BreakoutNoFrameskip-v4"
    total_timesteps: int = 10_000_000
    learning_rate: float = 6.25e-5
    buffer_size: int = 1_000_000
    gamma: float = 0.99
    n_step: int = 3
    """Rewards in a return before the network's estimate."""
    target_network_frequency: int = 8_000
    batch_size: int = 32
    learning_starts: int = 20_000
    train_frequency: int = 4
    priority_alpha: float = 0.5
    """How strongly the error determines how often a step is sampled; 0: not at all."""
    priority_beta: float = 0.4
    """How far the loss corrects for that at the start; it rises to 1."""
    n_atoms: int = 51
    v_min: float = -10.0
    v_max: float = 10.0
    noise: float = 0.5
    """Initial standard deviation of the noisy layers."""


def make_env(env_id: str, seed: int, idx: int, capture_video: bool, run_name: str) -> Callable[[], Any]:
    return lambda: make_pixels(env_id, seed, idx, capture_video, run_name)


class NoisyLinear(nn.Module):
    """A linear layer with learned, factorised Gaussian noise on its weights (Fortunato et al., 2017)."""

    input_noise: Tensor
    output_noise: Tensor

    def __init__(self, inputs: int, outputs: int, noise: float) -> None:
        super().__init__()
        bound = inputs**-0.5
        self.weight = nn.Parameter(torch.empty(outputs, inputs).uniform_(-bound, bound))
        self.bias = nn.Parameter(torch.empty(outputs).uniform_(-bound, bound))
        self.weight_scale = nn.Parameter(torch.full((outputs, inputs), noise * bound))
        self.bias_scale = nn.Parameter(torch.full((outputs,), noise * bound))
        self.register_buffer("input_noise", torch.zeros(inputs))
        self.register_buffer("output_noise", torch.zeros(outputs))

    def draw(self) -> None:
        """New noise, until the next call."""
        for noise in (self.input_noise, self.output_noise):
            drawn = torch.randn_like(noise)
            noise.copy_(drawn.sign() * drawn.abs().sqrt())

    def forward(self, features: Tensor) -> Tensor:
        mean = nn.functional.linear(features, self.weight, self.bias)
        if not self.training:
            return mean
        # The noise of a weight is the product of its input's and its output's: no matrix of noise is needed.
        return mean + self.output_noise * nn.functional.linear(
            features * self.input_noise, self.weight_scale, self.bias_scale
        )


class QNetwork(nn.Module):
    """Convolutions, then one noisy stream for the state and one for the actions' advantages, over the atoms."""

    atoms: Tensor

    def __init__(self, envs: Any, n_atoms: int, v_min: float, v_max: float, noise: float = 0.5) -> None:
        super().__init__()
        self.actions, self.n_atoms = int(envs.single_action_space.n), n_atoms
        self.register_buffer("atoms", torch.linspace(v_min, v_max, n_atoms))
        self.features = nn.Sequential(
            *(nn.Conv2d(4, 32, 8, stride=4), nn.ReLU()),
            *(nn.Conv2d(32, 64, 4, stride=2), nn.ReLU()),
            *(nn.Conv2d(64, 64, 3), nn.ReLU(), nn.Flatten()),
        )
        self.value = nn.Sequential(NoisyLinear(3136, 512, noise), nn.ReLU(), NoisyLinear(512, n_atoms, noise))
        self.advantage = nn.Sequential(
            NoisyLinear(3136, 512, noise), nn.ReLU(), NoisyLinear(512, self.actions * n_atoms, noise)
        )

    def log_probabilities(self, observations: Tensor) -> Tensor:
        """(batch, actions, atoms)"""
        features = self.features(observations / 255.0)
        advantage = self.advantage(features).view(-1, self.actions, self.n_atoms)
        logits = self.value(features)[:, None] + advantage - advantage.mean(dim=1, keepdim=True)
        return nn.functional.log_softmax(logits, dim=2)

    def forward(self, observations: Tensor) -> Tensor:
        """The expected return of each action."""
        return (self.log_probabilities(observations).exp() * self.atoms).sum(dim=2)

    def draw_noise(self) -> None:
        for layer in self.modules():
            if isinstance(layer, NoisyLinear):
                layer.draw()


class PrioritisedBuffer(ReplayBuffer):
    """A ring of single steps of one environment, sampled in proportion to their priority and read as n-step returns.

    A step can be sampled while its next n steps are in the ring; until then its priority is 0. Pictures are stored
    once: what follows step i is picture i + 1.
    """

    BLOCK = 1024

    def __init__(self, size: int, envs: Any, n_step: int, gamma: float) -> None:
        spaces = envs.single_observation_space, envs.single_action_space
        super().__init__(size, *spaces, "cpu", optimize_memory_usage=True, handle_timeout_termination=False)
        self.n_step, self.gamma = n_step, gamma
        self.priorities = np.zeros((self.buffer_size, 1), np.float32)

    def add(self, *args: Any, **options: Any) -> None:
        at, size = self.pos, self.buffer_size
        super().add(*args, **options)
        # The picture after this step replaces that of the oldest one.
        self.priorities[[at, (at + 1) % size]] = 0.0
        first = at - self.n_step + 1
        if self.full or first >= 0:
            self.priorities[first % size] = self.priorities.max() or 1.0

    def draw(self, count: int, beta: float) -> tuple[NDArray[Any], NDArray[Any]]:
        """Numbers of `count` steps, and the weight of each in the loss."""
        priorities = self.priorities[:, 0]
        firsts = np.arange(0, len(priorities), self.BLOCK)
        # Two levels instead of a tree: the sums of the blocks, then the steps of one block.
        totals = np.cumsum(np.add.reduceat(priorities, firsts, dtype=np.float64))
        targets = (np.arange(count) + np.random.random(count)) / count * totals[-1]
        indices = np.empty(count, int)
        for number, target in enumerate(targets):
            block = min(int(np.searchsorted(totals, target, side="right")), len(firsts) - 1)
            inside = priorities[firsts[block] : firsts[block] + self.BLOCK]
            before = totals[block] - inside.sum(dtype=np.float64)
            offset = int(np.searchsorted(np.cumsum(inside, dtype=np.float64) + before, target, side="right"))
            known = np.flatnonzero(inside)
            indices[number] = firsts[block] + (offset if offset < len(inside) and inside[offset] else known[-1])
        share = priorities[indices] / totals[-1]
        weights = (np.count_nonzero(priorities) * share) ** -beta
        return indices, weights / weights.max()

    def read(self, indices: NDArray[Any]) -> tuple[NDArray[Any], ...]:
        """Pictures, actions, n-step returns, the pictures after them, and the discount of what follows."""
        returns, going_on = np.zeros(len(indices), np.float32), np.ones(len(indices), np.float32)
        for k in range(self.n_step):
            at = (indices + k) % self.buffer_size
            returns += self.gamma**k * going_on * self.rewards[at, 0]
            going_on *= 1.0 - self.dones[at, 0]
        after = (indices + self.n_step) % self.buffer_size
        discounts = going_on * self.gamma**self.n_step
        return (
            self.observations[indices, 0],
            self.actions[indices, 0, 0],
            returns,
            self.observations[after, 0],
            discounts,
        )

    def note(self, indices: NDArray[Any], errors: NDArray[Any], alpha: float) -> None:
        self.priorities[indices, 0] = (errors + 1e-6) ** alpha


def project(probabilities: Tensor, returns: Tensor, discounts: Tensor, atoms: Tensor) -> Tensor:
    """The distribution of `return + discount * atom`, moved onto the atoms (Bellemare et al., 2017)."""
    low, high, width = atoms[0], atoms[-1], atoms[1] - atoms[0]
    moved = (returns[:, None] + discounts[:, None] * atoms).clamp(low, high)
    place = ((moved - low) / width).clamp(0, len(atoms) - 1)
    below, above = place.floor(), place.ceil()
    projected = torch.zeros_like(probabilities)
    # On an atom both neighbours are the same one, which then gets everything from the first line.
    projected.scatter_add_(1, below.long(), probabilities * (above - place + (below == above).float()))
    projected.scatter_add_(1, above.long(), probabilities * (place - below))
    return projected


if __name__ == "__main__":
    args = tyro.cli(Args)
    run_name = name_run(args)
    writer = open_log(args, run_name)
    device = seed_everything(args)

    envs = gym.vector.SyncVectorEnv([make_env(args.env_id, args.seed, 0, args.capture_video, run_name)])
    shape = (args.n_atoms, args.v_min, args.v_max, args.noise)
    q_network = QNetwork(envs, *shape).to(device)
    target_network = QNetwork(envs, *shape).to(device)
    target_network.load_state_dict(q_network.state_dict())
    optimizer = optim.Adam(q_network.parameters(), lr=args.learning_rate, eps=1.5e-4)
    rb = PrioritisedBuffer(args.buffer_size, envs, args.n_step, args.gamma)

    start_time = time.time()
    obs, _ = envs.reset(seed=args.seed)
    for global_step in range(args.total_timesteps):
        # Act: the noise explores.
        with torch.no_grad():
            q_network.draw_noise()
            actions = q_network(torch.as_tensor(obs, device=device)).argmax(dim=1).cpu().numpy()
        next_obs, rewards, terminated, truncated, infos = envs.step(actions)
        log_episodes(writer, infos, global_step)
        rb.add(obs, next_obs, actions, rewards, np.logical_or(terminated, truncated), [{}])
        obs = next_obs

        # Learn: from the steps that surprised most.
        if global_step > args.learning_starts and global_step % args.train_frequency == 0:
            beta = linear_schedule(args.priority_beta, 1.0, args.total_timesteps, global_step)
            indices, weights = rb.draw(args.batch_size, beta)
            b_obs, b_actions, b_returns, b_next_obs, b_discounts = (
                torch.as_tensor(part, device=device) for part in rb.read(indices)
            )
            q_network.draw_noise()
            target_network.draw_noise()
            with torch.no_grad():
                best = q_network(b_next_obs).argmax(dim=1)
                rows = torch.arange(len(best), device=device)
                future = target_network.log_probabilities(b_next_obs)[rows, best].exp()
                wanted = project(future, b_returns, b_discounts, q_network.atoms)
            log_probabilities = q_network.log_probabilities(b_obs)[rows, b_actions]
            errors = -(wanted * log_probabilities).sum(dim=1)
            loss = (errors * torch.as_tensor(weights, dtype=torch.float32, device=device)).mean()
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(q_network.parameters(), 10.0)
            optimizer.step()
            rb.note(indices, errors.detach().cpu().numpy(), args.priority_alpha)

            if global_step % 100 < args.train_frequency:
                q_values = (log_probabilities.exp() * q_network.atoms).sum(dim=1)
                writer.add_scalar("losses/loss", loss.item(), global_step)
                writer.add_scalar("losses/q_values", q_values.mean().item(), global_step)
                writer.add_scalar("charts/beta", beta, global_step)
                log_speed(writer, global_step, start_time)

        if global_step % args.target_network_frequency == 0:
            target_network.load_state_dict(q_network.state_dict())

    envs.close()
    writer.close()
