"""PPO in self-play on Atari games for several players (PettingZoo): one network plays all of them.

Schulman, Wolski, Dhariwal, Radford, Klimov: "Proximal Policy Optimization Algorithms", 2017 (arXiv 1707.06347); the
games are those of Terry and Black: "Multiplayer Support for the Arcade Learning Environment", 2020 (arXiv 2009.09341).
Each player of each game is one row of the batch; a plane in its observation marks which player it is. CleanRL's script
of this name needs SuperSuit and gym; this one has its own wrappers (wrappers/players.py). An evaluation plays as the
first player against random ones.
"""

import time
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
import tyro
from torch import Tensor, nn, optim

from cleanrl_worker.agents.head import ACTOR_GAIN, CRITIC_GAIN, DiscreteAgent, orthogonal
from cleanrl_worker.algorithms.experiment import (
    Experiment,
    log_episode,
    log_speed,
    name_run,
    open_log,
    seed_everything,
)
from cleanrl_worker.algorithms.ppo import estimate_advantages, policy_loss, value_loss
from cleanrl_worker.wrappers.batches import ended
from cleanrl_worker.wrappers.players import Players


@dataclass
class Args(Experiment):
    exp_name: str = "ppo_pettingzoo_ma_atari"
    env_id: str = "pong_v3"
    total_timesteps: int = 20_000_000
    learning_rate: float = 2.5e-4
    num_envs: int = 16
    num_steps: int = 128
    anneal_lr: bool = True
    gamma: float = 0.99
    gae_lambda: float = 0.95
    num_minibatches: int = 4
    update_epochs: int = 4
    norm_adv: bool = True
    clip_coef: float = 0.1
    clip_vloss: bool = True
    ent_coef: float = 0.01
    vf_coef: float = 0.5
    max_grad_norm: float = 0.5


class Agent(DiscreteAgent):
    """The convolutions of Mnih et al. (2015) over the pictures and the planes that mark the player."""

    def __init__(self, envs: Any) -> None:
        super().__init__()
        self.network = nn.Sequential(
            *(orthogonal(nn.Conv2d(envs.single_observation_space.shape[0], 32, 8, stride=4)), nn.ReLU()),
            *(orthogonal(nn.Conv2d(32, 64, 4, stride=2)), nn.ReLU()),
            *(orthogonal(nn.Conv2d(64, 64, 3)), nn.ReLU(), nn.Flatten()),
            *(orthogonal(nn.Linear(64 * 7 * 7, 512)), nn.ReLU()),
        )
        self.actor = orthogonal(nn.Linear(512, int(envs.single_action_space.n)), ACTOR_GAIN)
        self.critic = orthogonal(nn.Linear(512, 1), CRITIC_GAIN)

    def features(self, observations: Tensor) -> Tensor:
        return self.network(observations / 255.0)


if __name__ == "__main__":
    args = tyro.cli(Args)
    batch_size = args.num_envs * args.num_steps
    minibatch_size = batch_size // args.num_minibatches
    run_name = name_run(args)
    writer = open_log(args, run_name)
    device = seed_everything(args)

    envs = Players(args.env_id, args.num_envs, args.seed)
    agent = Agent(envs).to(device)
    optimizer = optim.Adam(agent.parameters(), lr=args.learning_rate, eps=1e-5)

    shape = (args.num_steps, args.num_envs)
    obs = torch.zeros((*shape, *envs.single_observation_space.shape), dtype=torch.uint8, device=device)
    actions = torch.zeros(shape, dtype=torch.long, device=device)
    logprobs, rewards, dones, values = (torch.zeros(shape, device=device) for _ in range(4))

    global_step = 0
    start_time = time.time()
    next_obs = torch.as_tensor(envs.reset(), device=device)
    next_done = torch.zeros(args.num_envs, device=device)
    num_updates = args.total_timesteps // batch_size

    for update in range(1, num_updates + 1):
        if args.anneal_lr:
            optimizer.param_groups[0]["lr"] = args.learning_rate * (1.0 - (update - 1) / num_updates)

        # Act: the network chooses for every player.
        for step in range(args.num_steps):
            global_step += args.num_envs
            obs[step], dones[step] = next_obs, next_done
            with torch.no_grad():
                action, logprob, _, value = agent.get_action_and_value(next_obs)
            actions[step], logprobs[step], values[step] = action, logprob, value.flatten()
            observation, reward, done, infos = envs.step(action.cpu().numpy())
            rewards[step] = torch.as_tensor(reward, dtype=torch.float32, device=device)
            next_obs = torch.as_tensor(observation, device=device)
            next_done = torch.as_tensor(done, dtype=torch.float32, device=device)
            for episodic_return, episodic_length in ended(done, infos):
                log_episode(writer, episodic_return, episodic_length, global_step)

        # Judge: how much better than expected was each action?
        with torch.no_grad():
            last_value = agent.get_value(next_obs).flatten()
            advantages = estimate_advantages(rewards, values, dones, last_value, next_done, args.gamma, args.gae_lambda)
            returns = advantages + values

        # Learn: several epochs over the batch in random minibatches.
        b_obs, b_actions = obs.flatten(0, 1), actions.flatten()
        b_logprobs, b_advantages, b_returns, b_values = (
            part.flatten() for part in (logprobs, advantages, returns, values)
        )
        b_inds = np.arange(batch_size)
        for _epoch in range(args.update_epochs):
            np.random.shuffle(b_inds)
            for start in range(0, batch_size, minibatch_size):
                mb = torch.as_tensor(b_inds[start : start + minibatch_size], device=device)
                _, newlogprob, entropy, newvalue = agent.get_action_and_value(b_obs[mb], b_actions[mb])
                ratio = (newlogprob - b_logprobs[mb]).exp()
                mb_advantages = b_advantages[mb]
                if args.norm_adv and len(mb) > 1:
                    mb_advantages = (mb_advantages - mb_advantages.mean()) / (mb_advantages.std() + 1e-8)
                pg_loss = policy_loss(ratio, mb_advantages, args.clip_coef)
                clip = args.clip_coef if args.clip_vloss else None
                v_loss = value_loss(newvalue.flatten(), b_values[mb], b_returns[mb], clip)
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
