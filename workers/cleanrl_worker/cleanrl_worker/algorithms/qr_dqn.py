"""QR-DQN: the network estimates quantiles of the return instead of its mean.

Dabney, Rowland, Bellemare, Munos: "Distributional Reinforcement Learning with Quantile Regression", 2017
(arXiv 1710.10044). Unlike C51 it needs no range of returns: each output is the return that is exceeded with a fixed
probability, learned with an asymmetric Huber loss.
"""

import random
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import gymnasium as gym
import numpy as np
import torch
import tyro
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
from cleanrl_worker.wrappers.observations import for_agent
from cleanrl_worker.wrappers.recording import record


@dataclass
class Args(Experiment):
    exp_name: str = "qr_dqn"
    env_id: str = "CartPole-v1"
    total_timesteps: int = 500_000
    learning_rate: float = 2.5e-4
    buffer_size: int = 10_000
    gamma: float = 0.99
    target_network_frequency: int = 500
    batch_size: int = 128
    start_e: float = 1.0
    end_e: float = 0.05
    exploration_fraction: float = 0.5
    learning_starts: int = 10_000
    train_frequency: int = 10
    n_quantiles: int = 50
    """Quantiles of the return per action."""


def make_env(env_id: str, seed: int, idx: int, capture_video: bool, run_name: str) -> Callable[[], Any]:
    def thunk() -> Any:
        options: dict[str, Any] = {"render_mode": "rgb_array"} if capture_video else {}
        return record(for_agent(gym.make(env_id, **options)), seed, idx, capture_video, run_name)

    return thunk


class QNetwork(nn.Module):
    def __init__(self, envs: Any, n_quantiles: int) -> None:
        super().__init__()
        self.shape = (int(envs.single_action_space.n), n_quantiles)
        inputs = int(np.prod(envs.single_observation_space.shape))
        self.network = nn.Sequential(
            *(nn.Flatten(), nn.Linear(inputs, 120), nn.ReLU(), nn.Linear(120, 84), nn.ReLU()),
            nn.Linear(84, self.shape[0] * n_quantiles),
        )

    def quantiles(self, observations: Tensor) -> Tensor:
        """(batch, actions, quantiles)"""
        found: Tensor = self.network(observations)
        return found.view(-1, *self.shape)

    def forward(self, observations: Tensor) -> Tensor:
        return self.quantiles(observations).mean(dim=2)


def quantile_loss(found: Tensor, targets: Tensor) -> Tensor:
    """Huber loss of every pair, weighted by the side on which the target lies. Both are (batch, quantiles)."""
    count = found.shape[1]
    middles = (torch.arange(count, device=found.device) + 0.5) / count
    errors = targets[:, None, :] - found[:, :, None]
    huber = torch.where(errors.abs() <= 1.0, 0.5 * errors**2, errors.abs() - 0.5)
    weights = (middles[None, :, None] - (errors.detach() < 0).float()).abs()
    return (weights * huber).mean(dim=2).sum(dim=1).mean()


if __name__ == "__main__":
    args = tyro.cli(Args)
    run_name = name_run(args)
    writer = open_log(args, run_name)
    device = seed_everything(args)

    envs = gym.vector.SyncVectorEnv([make_env(args.env_id, args.seed, 0, args.capture_video, run_name)])
    q_network = QNetwork(envs, args.n_quantiles).to(device)
    target_network = QNetwork(envs, args.n_quantiles).to(device)
    target_network.load_state_dict(q_network.state_dict())
    optimizer = optim.Adam(q_network.parameters(), lr=args.learning_rate)
    rb = ReplayBuffer(
        args.buffer_size,
        envs.single_observation_space,
        envs.single_action_space,
        device,
        handle_timeout_termination=False,
    )

    start_time = time.time()
    obs, _ = envs.reset(seed=args.seed)
    for global_step in range(args.total_timesteps):
        epsilon = linear_schedule(
            args.start_e, args.end_e, args.exploration_fraction * args.total_timesteps, global_step
        )
        if random.random() < epsilon:
            actions = np.array([envs.single_action_space.sample()])
        else:
            with torch.no_grad():
                values = q_network(torch.as_tensor(obs, dtype=torch.float32, device=device))
            actions = values.argmax(dim=1).cpu().numpy()
        next_obs, rewards, terminated, truncated, infos = envs.step(actions)
        log_episodes(writer, infos, global_step)

        # Only a real end means that nothing follows; what follows a time limit is in final_observation.
        after = next_obs.copy()
        if truncated[0]:
            after[0] = infos["final_observation"][0]
        rb.add(obs, after, actions, rewards, terminated, [{}])
        obs = next_obs

        if global_step > args.learning_starts and global_step % args.train_frequency == 0:
            data = rb.sample(args.batch_size)
            observations, next_observations = data.observations.float(), data.next_observations.float()
            taken, reward, going_on = data.actions, data.rewards.flatten(), 1.0 - data.dones.flatten()
            rows = torch.arange(len(reward), device=device)
            with torch.no_grad():
                following = target_network.quantiles(next_observations)
                following = following[rows, following.mean(dim=2).argmax(dim=1)]
                targets = reward[:, None] + args.gamma * going_on[:, None] * following
            old_values = q_network.quantiles(observations)[rows, taken.squeeze(1)]
            loss = quantile_loss(old_values, targets)

            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if global_step % 100 == 0:
                writer.add_scalar("losses/td_loss", loss.item(), global_step)
                writer.add_scalar("losses/q_values", old_values.mean().item(), global_step)
                log_speed(writer, global_step, start_time)

        if global_step % args.target_network_frequency == 0:
            target_network.load_state_dict(q_network.state_dict())

    envs.close()
    writer.close()
