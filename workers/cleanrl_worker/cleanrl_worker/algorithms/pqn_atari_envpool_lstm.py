"""PQN with a recurrent network on Atari games in envpool: Q-learning with LayerNorm, without replay buffer.

Gallici, Fellows, Ellis, Pou, Masmitja, Foerster, Martin: "Simplifying Deep Temporal Difference Learning", 2024
(arXiv 2407.04811). The algorithm is that of pqn.py; an LSTM follows the convolutions and its memory is cleared at
the start of an episode. A minibatch has whole sequences of some environments, replayed from the memory that they began
with. A step in which envpool only resets an environment is not learned from.
"""

import random
import time
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
import tyro
from torch import Tensor, nn, optim

from cleanrl_worker.algorithms.experiment import (
    Experiment,
    linear_schedule,
    log_episode,
    log_speed,
    name_run,
    open_log,
    seed_everything,
)
from cleanrl_worker.wrappers.batches import ended, make_batch


@dataclass
class Args(Experiment):
    exp_name: str = "pqn_atari_envpool_lstm"
    env_id: str = "Pong-v5"
    total_timesteps: int = 10_000_000
    learning_rate: float = 2.5e-4
    num_envs: int = 8
    num_steps: int = 128
    num_minibatches: int = 4
    update_epochs: int = 2
    anneal_lr: bool = True
    gamma: float = 0.99
    q_lambda: float = 0.65
    """Lambda of the returns; 0: one step, 1: until the end of the batch."""
    max_grad_norm: float = 10.0
    start_e: float = 1.0
    end_e: float = 0.01
    exploration_fraction: float = 0.1


Memory = tuple[Tensor, Tensor]  # hidden and cell state, each (1, envs, units)


class QNetwork(nn.Module):
    """The convolutions of Mnih et al. (2015) with LayerNorm, and an LSTM."""

    UNITS = 128

    def __init__(self, envs: Any) -> None:
        super().__init__()
        self.network = nn.Sequential(
            *(nn.Conv2d(4, 32, 8, stride=4), nn.LayerNorm([32, 20, 20]), nn.ReLU()),
            *(nn.Conv2d(32, 64, 4, stride=2), nn.LayerNorm([64, 9, 9]), nn.ReLU()),
            *(nn.Conv2d(64, 64, 3), nn.LayerNorm([64, 7, 7]), nn.ReLU()),
            *(nn.Flatten(), nn.Linear(64 * 7 * 7, 512), nn.LayerNorm(512), nn.ReLU()),
        )
        self.memory = nn.LSTM(512, self.UNITS)
        for name, part in self.memory.named_parameters():
            nn.init.zeros_(part) if "bias" in name else nn.init.orthogonal_(part)
        self.head = nn.Linear(self.UNITS, int(envs.single_action_space.n))

    def first_memory(self, count: int) -> Memory:
        empty = torch.zeros(1, count, self.UNITS, device=next(self.parameters()).device)
        return empty, empty

    def forward(self, observations: Tensor, memory: Memory, starts: Tensor) -> tuple[Tensor, Memory]:
        """Values (steps, envs, actions) of a sequence of pictures (steps, envs, 4, 84, 84), and the memory after it."""
        steps, count = starts.shape
        features = self.network(observations.flatten(0, 1) / 255.0).unflatten(0, (steps, count))
        hidden = []
        for feature, start in zip(features, starts, strict=True):
            kept = (1.0 - start)[None, :, None]
            output, memory = self.memory(feature[None], (memory[0] * kept, memory[1] * kept))
            hidden.append(output)
        return self.head(torch.cat(hidden)), memory

    def act(self, observations: Tensor, memory: Memory) -> tuple[Tensor, Memory]:
        """The best actions; used to evaluate a checkpoint."""
        values, memory = self(observations[None], memory, torch.zeros(1, len(observations)).to(observations))
        return values[0].argmax(dim=1), memory


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
    envs_per_batch = max(1, args.num_envs // args.num_minibatches)
    run_name = name_run(args)
    writer = open_log(args, run_name)
    device = seed_everything(args)

    envs = make_batch(args.env_id, args.num_envs, args.seed)
    q_network = QNetwork(envs).to(device)
    optimizer = optim.RAdam(q_network.parameters(), lr=args.learning_rate)

    shape = (args.num_steps, args.num_envs)
    obs = torch.zeros((*shape, *envs.single_observation_space.shape), dtype=torch.uint8, device=device)
    actions = torch.zeros(shape, dtype=torch.long, device=device)
    rewards, dones, values, weights, starts = (torch.zeros(shape, device=device) for _ in range(5))

    global_step = 0
    start_time = time.time()
    next_obs = torch.as_tensor(envs.reset(), device=device)
    next_start = torch.ones(args.num_envs, device=device)
    memory = q_network.first_memory(args.num_envs)
    num_updates = args.total_timesteps // batch_size

    for update in range(1, num_updates + 1):
        if args.anneal_lr:
            optimizer.param_groups[0]["lr"] = args.learning_rate * (1.0 - (update - 1) / num_updates)

        memory = (memory[0].to(device), memory[1].to(device))
        first_memory = memory

        # Act: each environment explores for itself.
        for step in range(args.num_steps):
            global_step += args.num_envs
            epsilon = linear_schedule(
                args.start_e, args.end_e, args.exploration_fraction * args.total_timesteps, global_step
            )
            obs[step], starts[step] = next_obs, next_start
            with torch.no_grad():
                q_values, memory = q_network(next_obs[None], memory, next_start[None])
            q_values = q_values[0]
            values[step] = q_values.max(dim=1).values
            choices = q_values.argmax(dim=1).cpu().numpy()
            for i in range(args.num_envs):
                if random.random() < epsilon:
                    choices[i] = random.randrange(q_values.shape[1])
            actions[step] = torch.as_tensor(choices, device=device)

            weights[step] = torch.as_tensor(~envs.skips, dtype=torch.float32, device=device)
            observation, reward, done, infos = envs.step(choices)
            rewards[step] = torch.as_tensor(reward, dtype=torch.float32, device=device)
            next_obs = torch.as_tensor(observation, device=device)
            next_start = torch.as_tensor(envs.starts, dtype=torch.float32, device=device)
            dones[step] = torch.as_tensor(done, dtype=torch.float32, device=device)
            for episodic_return, episodic_length in ended(done, infos):
                log_episode(writer, episodic_return, episodic_length, global_step)

        # Judge: the returns that the batch shows, completed by the network's own estimates.
        with torch.no_grad():
            last_values = q_network(next_obs[None], memory, next_start[None])[0][0].max(dim=1).values
            next_values = torch.cat((values[1:], last_values[None]))
            returns = lambda_returns(rewards, dones, next_values, args.gamma, args.q_lambda)

        # Learn: several epochs over sequences of some environments at a time; then the batch is dropped.
        numbers = np.arange(args.num_envs)
        for _epoch in range(args.update_epochs):
            np.random.shuffle(numbers)
            for begin in range(0, args.num_envs, envs_per_batch):
                mb = torch.as_tensor(numbers[begin : begin + envs_per_batch], device=device)
                sequence, _ = q_network(obs[:, mb], (first_memory[0][:, mb], first_memory[1][:, mb]), starts[:, mb])
                old_values = sequence.gather(2, actions[:, mb, None]).squeeze(2)
                errors = (old_values - returns[:, mb]) ** 2 * weights[:, mb]
                loss = errors.sum() / weights[:, mb].sum().clamp(min=1.0)
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
