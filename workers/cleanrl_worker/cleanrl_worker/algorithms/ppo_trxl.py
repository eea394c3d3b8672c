"""PPO with a Transformer-XL as its memory, for vector observations.

Pleines, Pallasch, Zimmer, Preuss: "Memory Gym: Towards Endless Tasks to Benchmark Memory Capabilities of Agents", 2023
(arXiv 2309.17207). Each layer attends from the current step to its own inputs of the last `window` steps of the
episode. What is remembered is stored with each step of the batch, so that minibatches are single steps in any
order, and no gradient flows into the past. The advantages and the losses are those of ppo.py.
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
    exp_name: str = "ppo_trxl"
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
    window: int = 32
    """Past steps that the network remembers."""
    trxl_layers: int = 2
    """Layers of the transformer."""
    trxl_dim: int = 64
    """Width of the transformer."""
    trxl_heads: int = 4
    """Heads of its attention; they share its width."""


def make_env(env_id: str, seed: int, idx: int, capture_video: bool, run_name: str) -> Callable[[], Any]:
    def thunk() -> Any:
        options: dict[str, Any] = {"render_mode": "rgb_array"} if capture_video else {}
        return record(for_agent(gym.make(env_id, **options)), seed, idx, capture_video, run_name)

    return thunk


Memory = tuple[Tensor, Tensor]  # inputs of each layer (layers, envs, window, width); which are known (1, envs, window)


class Layer(nn.Module):
    """Attention from the current step to the remembered ones and itself, then a small network; both are added."""

    def __init__(self, width: int, heads: int, window: int) -> None:
        super().__init__()
        self.positions = nn.Parameter(torch.randn(window + 1, width) * width**-0.5)
        self.before, self.between = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attention = nn.MultiheadAttention(width, heads, batch_first=True)
        self.network = nn.Sequential(nn.Linear(width, width), nn.ReLU(), nn.Linear(width, width))

    def forward(self, now: Tensor, past: Tensor, known: Tensor) -> Tensor:
        sequence = self.before(torch.cat((past, now[:, None]), dim=1)) + self.positions
        unknown = torch.cat((known == 0, torch.zeros_like(known[:, :1], dtype=torch.bool)), dim=1)
        attended, _ = self.attention(sequence[:, -1:], sequence, sequence, key_padding_mask=unknown, need_weights=False)
        now = now + attended[:, 0]
        changed: Tensor = self.network(self.between(now))
        return now + changed


class Agent(nn.Module):
    def __init__(self, envs: Any, window: int, trxl_layers: int, trxl_dim: int, trxl_heads: int) -> None:
        super().__init__()
        inputs = int(np.prod(envs.single_observation_space.shape))
        self.window, self.width = window, trxl_dim
        self.encoder = nn.Sequential(nn.Flatten(), orthogonal(nn.Linear(inputs, trxl_dim)), nn.ReLU())
        self.layers = nn.ModuleList(Layer(trxl_dim, trxl_heads, window) for _ in range(trxl_layers))
        self.actor = orthogonal(nn.Linear(trxl_dim, int(envs.single_action_space.n)), ACTOR_GAIN)
        self.critic = orthogonal(nn.Linear(trxl_dim, 1), CRITIC_GAIN)

    def first_memory(self, count: int) -> Memory:
        device = next(self.parameters()).device
        past = torch.zeros(len(self.layers), count, self.window, self.width, device=device)
        return past, torch.zeros(1, count, self.window, device=device)

    def forward(self, observations: Tensor, memory: Memory) -> tuple[Tensor, Memory]:
        """Features (envs, width), and the memory with this step as its newest one."""
        past, known = memory
        now = self.encoder(observations)
        inputs = []
        for layer, earlier in zip(self.layers, past, strict=True):
            inputs.append(now.detach())
            now = layer(now, earlier, known[0])
        newest = torch.stack(inputs)[:, :, None]
        newly_known = torch.cat((known[:, :, 1:], torch.ones_like(known[:, :, :1])), dim=2)
        return now, (torch.cat((past[:, :, 1:], newest), dim=2), newly_known)

    def act(self, observations: Tensor, memory: Memory) -> tuple[Tensor, Memory]:
        """Sampled actions for one step within an episode; used to evaluate a checkpoint."""
        features, memory = self(observations, memory)
        return Categorical(logits=self.actor(features)).sample(), memory


def forget(memory: Memory, starts: Tensor) -> Memory:
    """The memory without that of the environments in which an episode starts."""
    return memory[0], memory[1] * (1.0 - starts)[None, :, None]


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
    agent = Agent(envs, args.window, args.trxl_layers, args.trxl_dim, args.trxl_heads).to(device)
    optimizer = optim.Adam(agent.parameters(), lr=args.learning_rate, eps=1e-5)

    shape = (args.num_steps, args.num_envs)
    obs = torch.zeros(shape + tuple(envs.single_observation_space.shape or ()), device=device)
    actions = torch.zeros(shape, dtype=torch.long, device=device)
    logprobs, rewards, dones, values = (torch.zeros(shape, device=device) for _ in range(4))
    past = torch.zeros((*shape, args.trxl_layers, args.window, args.trxl_dim), device=device)
    known = torch.zeros((*shape, args.window), device=device)

    global_step = 0
    start_time = time.time()
    next_obs = torch.as_tensor(envs.reset(seed=args.seed)[0], dtype=torch.float32, device=device)
    next_done = torch.ones(args.num_envs, device=device)
    memory = agent.first_memory(args.num_envs)
    num_updates = args.total_timesteps // batch_size

    for update in range(1, num_updates + 1):
        if args.anneal_lr:
            optimizer.param_groups[0]["lr"] = args.learning_rate * (1.0 - (update - 1) / num_updates)
        memory = (memory[0].to(device), memory[1].to(device))

        # Act: the memory is cleared where an episode starts.
        for step in range(args.num_steps):
            global_step += args.num_envs
            obs[step], dones[step] = next_obs, next_done
            memory = forget(memory, next_done)
            past[step], known[step] = memory[0].transpose(0, 1), memory[1][0]
            with torch.no_grad():
                features, memory = agent(next_obs, memory)
                policy = Categorical(logits=agent.actor(features))
                action = policy.sample()
                actions[step], logprobs[step] = action, policy.log_prob(action)
                values[step] = agent.critic(features).flatten()

            observation, reward, terminated, truncated, infos = envs.step(action.cpu().numpy())
            rewards[step] = torch.as_tensor(reward, dtype=torch.float32, device=device)
            next_obs = torch.as_tensor(observation, dtype=torch.float32, device=device)
            next_done = torch.as_tensor(np.logical_or(terminated, truncated), dtype=torch.float32, device=device)
            log_episodes(writer, infos, global_step)

        # Judge: how much better than expected was each action?
        with torch.no_grad():
            last_value = agent.critic(agent(next_obs, forget(memory, next_done))[0]).flatten()
            advantages = estimate_advantages(rewards, values, dones, last_value, next_done, args.gamma, args.gae_lambda)
            returns = advantages + values

        # Learn: single steps in random order, each with what was remembered in it.
        b_obs, b_actions, b_past, b_known = (part.flatten(0, 1) for part in (obs, actions, past, known))
        b_logprobs, b_advantages, b_returns, b_values = (
            part.flatten() for part in (logprobs, advantages, returns, values)
        )
        b_inds = np.arange(batch_size)
        for _epoch in range(args.update_epochs):
            np.random.shuffle(b_inds)
            for begin in range(0, batch_size, minibatch_size):
                mb = torch.as_tensor(b_inds[begin : begin + minibatch_size], device=device)
                features, _ = agent(b_obs[mb], (b_past[mb].transpose(0, 1), b_known[mb][None]))
                policy = Categorical(logits=agent.actor(features))
                newlogprob, entropy = policy.log_prob(b_actions[mb]), policy.entropy()
                newvalue = agent.critic(features).flatten()
                old_logprobs, old_values = b_logprobs[mb], b_values[mb]
                mb_advantages, mb_returns = b_advantages[mb], b_returns[mb]
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
