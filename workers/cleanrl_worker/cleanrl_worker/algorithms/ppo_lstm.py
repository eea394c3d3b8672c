"""PPO with an LSTM for vector observations: for environments that do not show everything.

Schulman, Wolski, Dhariwal, Radford, Klimov: "Proximal Policy Optimization Algorithms", 2017 (arXiv 1707.06347), with
the memory of Hochreiter and Schmidhuber: "Long Short-Term Memory", 1997. The advantages and the losses are those of
ppo.py.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import gymnasium as gym
import numpy as np
import torch
import tyro
from torch import Tensor, nn, optim
from torch.distributions import Categorical

from cleanrl_worker.agents.head import ACTOR_GAIN, CRITIC_GAIN, orthogonal
from cleanrl_worker.algorithms.experiment import (
    Experiment,
    log_episodes,
    log_speed,
    name_run,
    open_log,
    seed_everything,
)
from cleanrl_worker.algorithms.ppo import estimate_advantages, policy_loss, value_loss
from cleanrl_worker.wrappers.observations import for_agent
from cleanrl_worker.wrappers.recording import record


@dataclass
class Args(Experiment):
    exp_name: str = "ppo_lstm"
    env_id: str = "CartPole-v1"
    total_timesteps: int = 500_000
    learning_rate: float = 2.5e-4
    num_envs: int = 8
    num_steps: int = 128
    anneal_lr: bool = True
    gamma: float = 0.99
    gae_lambda: float = 0.95
    num_minibatches: int = 4
    update_epochs: int = 4
    norm_adv: bool = True
    clip_coef: float = 0.2
    clip_vloss: bool = True
    ent_coef: float = 0.01
    vf_coef: float = 0.5
    max_grad_norm: float = 0.5


def make_env(env_id: str, seed: int, idx: int, capture_video: bool, run_name: str) -> Callable[[], Any]:
    def thunk() -> Any:
        options: dict[str, Any] = {"render_mode": "rgb_array"} if capture_video else {}
        return record(for_agent(gym.make(env_id, **options)), seed, idx, capture_video, run_name)

    return thunk


Memory = tuple[Tensor, ...]  # hidden and cell state, each (1, envs, units)


class Agent(nn.Module):
    """An encoder, an LSTM, and a policy and a value that are computed from its output."""

    UNITS = 64

    def __init__(self, envs: Any) -> None:
        super().__init__()
        inputs = int(np.prod(envs.single_observation_space.shape))
        self.encoder = nn.Sequential(nn.Flatten(), orthogonal(nn.Linear(inputs, self.UNITS)), nn.Tanh())
        self.memory = nn.LSTM(self.UNITS, self.UNITS)
        for name, part in self.memory.named_parameters():
            nn.init.zeros_(part) if "bias" in name else nn.init.orthogonal_(part)
        self.actor = orthogonal(nn.Linear(self.UNITS, int(envs.single_action_space.n)), ACTOR_GAIN)
        self.critic = orthogonal(nn.Linear(self.UNITS, 1), CRITIC_GAIN)

    def first_memory(self, count: int) -> Memory:
        empty = torch.zeros(1, count, self.UNITS, device=next(self.parameters()).device)
        return empty, empty

    def forward(self, observations: Tensor, memory: Memory, starts: Tensor) -> tuple[Tensor, Memory]:
        """Features (steps, envs, units) of sequences, and the memory after them. `starts`: an episode begins here."""
        features = self.encoder(observations.flatten(0, 1)).unflatten(0, starts.shape)
        outputs = []
        for feature, start in zip(features, starts, strict=True):
            kept = (1.0 - start)[None, :, None]
            output, memory = self.memory(feature[None], (memory[0] * kept, memory[1] * kept))
            outputs.append(output)
        return torch.cat(outputs), memory

    def act(self, observations: Tensor, memory: Memory) -> tuple[Tensor, Memory]:
        """Sampled actions for one step within an episode; used to evaluate a checkpoint."""
        features, memory = self(observations[None], memory, torch.zeros(1, len(observations)).to(observations))
        return Categorical(logits=self.actor(features[0])).sample(), memory


if __name__ == "__main__":
    args = tyro.cli(Args)
    batch_size = args.num_envs * args.num_steps
    envs_per_batch = max(1, args.num_envs // args.num_minibatches)
    run_name = name_run(args)
    writer = open_log(args, run_name)
    device = seed_everything(args)

    envs = gym.vector.SyncVectorEnv(
        [make_env(args.env_id, args.seed + i, i, args.capture_video, run_name) for i in range(args.num_envs)]
    )
    agent = Agent(envs).to(device)
    optimizer = optim.Adam(agent.parameters(), lr=args.learning_rate, eps=1e-5)

    shape = (args.num_steps, args.num_envs)
    obs = torch.zeros(shape + tuple(envs.single_observation_space.shape or ()), device=device)
    actions = torch.zeros(shape, dtype=torch.long, device=device)
    logprobs, rewards, dones, values = (torch.zeros(shape, device=device) for _ in range(4))

    global_step = 0
    start_time = time.time()
    next_obs = torch.as_tensor(envs.reset(seed=args.seed)[0], dtype=torch.float32, device=device)
    next_done = torch.ones(args.num_envs, device=device)
    memory = agent.first_memory(args.num_envs)
    num_updates = args.total_timesteps // batch_size

    for update in range(1, num_updates + 1):
        if args.anneal_lr:
            optimizer.param_groups[0]["lr"] = args.learning_rate * (1.0 - (update - 1) / num_updates)
        memory = tuple(part.to(device) for part in memory)
        first_memory = memory

        # Act: the memory is cleared where an episode starts.
        for step in range(args.num_steps):
            global_step += args.num_envs
            obs[step], dones[step] = next_obs, next_done
            with torch.no_grad():
                features, memory = agent(next_obs[None], memory, next_done[None])
                policy = Categorical(logits=agent.actor(features[0]))
                action = policy.sample()
                actions[step], logprobs[step] = action, policy.log_prob(action)
                values[step] = agent.critic(features[0]).flatten()

            observation, reward, terminated, truncated, infos = envs.step(action.cpu().numpy())
            rewards[step] = torch.as_tensor(reward, dtype=torch.float32, device=device)
            next_obs = torch.as_tensor(observation, dtype=torch.float32, device=device)
            next_done = torch.as_tensor(np.logical_or(terminated, truncated), dtype=torch.float32, device=device)
            log_episodes(writer, infos, global_step)

        # Judge: how much better than expected was each action?
        with torch.no_grad():
            last_features, _ = agent(next_obs[None], memory, next_done[None])
            last_value = agent.critic(last_features[0]).flatten()
            advantages = estimate_advantages(rewards, values, dones, last_value, next_done, args.gamma, args.gae_lambda)
            returns = advantages + values

        # Learn: whole sequences of some environments at a time, replayed from the memory that they began with.
        numbers = np.arange(args.num_envs)
        for _epoch in range(args.update_epochs):
            np.random.shuffle(numbers)
            for begin in range(0, args.num_envs, envs_per_batch):
                mb = torch.as_tensor(numbers[begin : begin + envs_per_batch], device=device)
                features, _ = agent(obs[:, mb], tuple(part[:, mb] for part in first_memory), dones[:, mb])
                policy = Categorical(logits=agent.actor(features))
                newlogprob, entropy = policy.log_prob(actions[:, mb]), policy.entropy()
                newvalue = agent.critic(features).squeeze(2)
                old_logprobs, old_values = logprobs[:, mb], values[:, mb]
                mb_advantages, mb_returns = advantages[:, mb], returns[:, mb]
                ratio = (newlogprob - old_logprobs).exp()
                if args.norm_adv and mb_advantages.numel() > 1:
                    mb_advantages = (mb_advantages - mb_advantages.mean()) / (mb_advantages.std() + 1e-8)
                pg_loss = policy_loss(ratio, mb_advantages, args.clip_coef)
                v_loss = value_loss(newvalue, old_values, mb_returns, args.clip_coef if args.clip_vloss else None)
                entropy_loss = entropy.mean()
                loss = pg_loss - args.ent_coef * entropy_loss + args.vf_coef * v_loss
                optimizer.zero_grad()
                loss.backward()
                nn.utils.clip_grad_norm_(agent.parameters(), args.max_grad_norm)
                optimizer.step()

        writer.add_scalar("charts/learning_rate", optimizer.param_groups[0]["lr"], global_step)
        writer.add_scalar("losses/value_loss", v_loss.item(), global_step)
        writer.add_scalar("losses/policy_loss", pg_loss.item(), global_step)
        writer.add_scalar("losses/entropy", entropy_loss.item(), global_step)
        writer.add_scalar("losses/approx_kl", (ratio - 1.0 - ratio.log()).mean().item(), global_step)
        log_speed(writer, global_step, start_time)

    envs.close()
    writer.close()
