"""Dueling DQN: the network estimates how good a state is apart from how much better each action is.

Wang, Schaul, Hessel, van Hasselt, Lanctot, de Freitas: "Dueling Network Architectures for Deep Reinforcement Learning",
2015 (arXiv 1511.06581). As in the paper, the target is that of double DQN.
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
from torch.nn import functional

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
    exp_name: str = "dueling_dqn"
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


def make_env(env_id: str, seed: int, idx: int, capture_video: bool, run_name: str) -> Callable[[], Any]:
    def thunk() -> Any:
        options: dict[str, Any] = {"render_mode": "rgb_array"} if capture_video else {}
        return record(for_agent(gym.make(env_id, **options)), seed, idx, capture_video, run_name)

    return thunk


class QNetwork(nn.Module):
    """Q = state value + advantage - mean advantage; without the mean the two could not be told apart."""

    def __init__(self, envs: Any) -> None:
        super().__init__()
        inputs = int(np.prod(envs.single_observation_space.shape))
        self.features = nn.Sequential(nn.Flatten(), nn.Linear(inputs, 120), nn.ReLU())
        self.value = nn.Sequential(nn.Linear(120, 84), nn.ReLU(), nn.Linear(84, 1))
        self.advantage = nn.Sequential(nn.Linear(120, 84), nn.ReLU(), nn.Linear(84, int(envs.single_action_space.n)))

    def forward(self, observations: Tensor) -> Tensor:
        features = self.features(observations)
        advantage: Tensor = self.advantage(features)
        value: Tensor = self.value(features)
        return value + advantage - advantage.mean(dim=1, keepdim=True)


if __name__ == "__main__":
    args = tyro.cli(Args)
    run_name = name_run(args)
    writer = open_log(args, run_name)
    device = seed_everything(args)

    envs = gym.vector.SyncVectorEnv([make_env(args.env_id, args.seed, 0, args.capture_video, run_name)])
    q_network = QNetwork(envs).to(device)
    target_network = QNetwork(envs).to(device)
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
            with torch.no_grad():
                best = q_network(next_observations).argmax(dim=1, keepdim=True)
                following = target_network(next_observations).gather(1, best).squeeze(1)
                targets = reward + args.gamma * going_on * following
            old_values = q_network(observations).gather(1, taken).squeeze(1)
            loss = functional.mse_loss(old_values, targets)

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
