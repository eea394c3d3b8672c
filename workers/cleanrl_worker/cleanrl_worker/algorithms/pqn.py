"""PQN: Q-learning with parallel environments and LayerNorm, without replay buffer and target network.

Gallici, Fellows, Ellis, Pou, Masmitja, Foerster, Martin: "Simplifying Deep Temporal Difference Learning", 2024
(arXiv 2407.04811). LayerNorm keeps the Q values bounded, so that a batch of fresh steps can be fitted directly: act
epsilon-greedily in all environments, compute lambda returns backwards through the batch, regress on them, forget it.
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
    exp_name: str = "pqn"
    env_id: str = "CartPole-v1"
    total_timesteps: int = 500_000
    learning_rate: float = 2.5e-4
    num_envs: int = 4
    num_steps: int = 128
    num_minibatches: int = 4
    update_epochs: int = 4
    anneal_lr: bool = True
    gamma: float = 0.99
    q_lambda: float = 0.65
    """Lambda of the returns; 0: one step, 1: until the end of the batch."""
    max_grad_norm: float = 10.0
    start_e: float = 1.0
    end_e: float = 0.05
    exploration_fraction: float = 0.5


def make_env(env_id: str, seed: int, idx: int, capture_video: bool, run_name: str) -> Callable[[], Any]:
    def thunk() -> Any:
        options: dict[str, Any] = {"render_mode": "rgb_array"} if capture_video else {}
        return record(for_agent(gym.make(env_id, **options)), seed, idx, capture_video, run_name)

    return thunk


class QNetwork(nn.Module):
    """Two hidden layers, each followed by LayerNorm."""

    def __init__(self, envs: Any) -> None:
        super().__init__()
        inputs = int(np.prod(envs.single_observation_space.shape))
        self.network = nn.Sequential(
            nn.Flatten(),
            *(nn.Linear(inputs, 120), nn.LayerNorm(120), nn.ReLU()),
            *(nn.Linear(120, 84), nn.LayerNorm(84), nn.ReLU()),
            nn.Linear(84, int(envs.single_action_space.n)),
        )

    def forward(self, observations: Tensor) -> Tensor:
        values: Tensor = self.network(observations)
        return values


def lambda_returns(rewards: Tensor, dones: Tensor, next_values: Tensor, gamma: float, lam: float) -> Tensor:
    """Returns of all steps, (steps, envs). `dones[t]`: step t ended the episode; `next_values[t]`: the best value after
    step t."""
    returns = torch.zeros_like(rewards)
    beyond = next_values[-1]  # after the batch only the estimate is known
    for t in reversed(range(len(rewards))):
        mixed = lam * beyond + (1.0 - lam) * next_values[t]
        returns[t] = beyond = rewards[t] + gamma * (1.0 - dones[t]) * mixed
    return returns


if __name__ == "__main__":
    args = tyro.cli(Args)
    batch_size = args.num_envs * args.num_steps
    minibatch_size = batch_size // args.num_minibatches
    run_name = name_run(args)
    writer = open_log(args, run_name)
    device = seed_everything(args)

    envs = gym.vector.SyncVectorEnv(
        [make_env(args.env_id, args.seed + i, i, args.capture_video, run_name) for i in range(args.num_envs)]
    )
    q_network = QNetwork(envs).to(device)
    optimizer = optim.RAdam(q_network.parameters(), lr=args.learning_rate)

    shape = (args.num_steps, args.num_envs)
    obs = torch.zeros(shape + tuple(envs.single_observation_space.shape or ()), device=device)
    actions = torch.zeros(shape, dtype=torch.long, device=device)
    rewards, dones, values = (torch.zeros(shape, device=device) for _ in range(3))

    global_step = 0
    start_time = time.time()
    next_obs = torch.as_tensor(envs.reset(seed=args.seed)[0], dtype=torch.float32, device=device)
    num_updates = args.total_timesteps // batch_size

    for update in range(1, num_updates + 1):
        if args.anneal_lr:
            optimizer.param_groups[0]["lr"] = args.learning_rate * (1.0 - (update - 1) / num_updates)

        # Act: each environment explores for itself.
        for step in range(args.num_steps):
            global_step += args.num_envs
            epsilon = linear_schedule(
                args.start_e, args.end_e, args.exploration_fraction * args.total_timesteps, global_step
            )
            obs[step] = next_obs
            with torch.no_grad():
                q_values = q_network(next_obs)
            values[step] = q_values.max(dim=1).values
            choices = q_values.argmax(dim=1).cpu().numpy()
            for i in range(args.num_envs):
                if random.random() < epsilon:
                    choices[i] = random.randrange(q_values.shape[1])
            actions[step] = torch.as_tensor(choices, device=device)

            observation, reward, terminated, truncated, infos = envs.step(choices)
            rewards[step] = torch.as_tensor(reward, dtype=torch.float32, device=device)
            next_obs = torch.as_tensor(observation, dtype=torch.float32, device=device)
            dones[step] = torch.as_tensor(np.logical_or(terminated, truncated), dtype=torch.float32, device=device)
            log_episodes(writer, infos, global_step)

        # Judge: the returns that the batch shows, completed by the network's own estimates.
        with torch.no_grad():
            last_values = q_network(next_obs).max(dim=1).values
            next_values = torch.cat((values[1:], last_values[None]))
            returns = lambda_returns(rewards, dones, next_values, args.gamma, args.q_lambda)

        # Learn: several epochs over the batch in random minibatches; then the batch is dropped.
        b_obs, b_actions, b_returns = obs.flatten(0, 1), actions.flatten(), returns.flatten()
        b_inds = np.arange(batch_size)
        for _epoch in range(args.update_epochs):
            np.random.shuffle(b_inds)
            for start in range(0, batch_size, minibatch_size):
                mb = torch.as_tensor(b_inds[start : start + minibatch_size], device=device)
                old_values = q_network(b_obs[mb]).gather(1, b_actions[mb, None]).squeeze(1)
                loss = nn.functional.mse_loss(old_values, b_returns[mb])
                optimizer.zero_grad()
                loss.backward()
                nn.utils.clip_grad_norm_(q_network.parameters(), args.max_grad_norm)
                optimizer.step()

        writer.add_scalar("charts/learning_rate", optimizer.param_groups[0]["lr"], global_step)
        writer.add_scalar("charts/epsilon", epsilon, global_step)
        writer.add_scalar("losses/td_loss", loss.item(), global_step)
        writer.add_scalar("losses/q_values", old_values.mean().item(), global_step)
        log_speed(writer, global_step, start_time)

    envs.close()
    writer.close()
