"""PPO: MOSAIC's version of CleanRL's ppo.py, and the worker's default. Flags and metric names are CleanRL's.

On vector observations it uses CleanRL's network and computes exactly the same numbers. It adds a choice of networks
(--agent, see agents/__init__.py), support for MiniGrid's cells, and curricula. It is run as a script (`python -m
cleanrl_worker.algorithms.ppo --env-id CartPole-v1`) and keeps its state in module globals, as CleanRL's scripts do,
because the launcher reads from there what a checkpoint needs. With a curriculum (CLEANRL_CURRICULUM, see
wrappers/schedule.py) only the environments and the default network differ.
"""

import argparse
import os
import random
import time
from collections.abc import Callable
from typing import Any

import gymnasium as gym
import numpy as np
import torch
from mosaic_sdk.config import ConfigError
from torch import Tensor, nn, optim
from torch.utils.tensorboard import SummaryWriter

from cleanrl_worker.agents import agent_name, make_agent
from cleanrl_worker.wrappers.observations import for_agent
from cleanrl_worker.wrappers.recording import record

CURRICULUM = "CLEANRL_CURRICULUM"  # the variable with the stages, as JSON
NO_STAGE = -1


def parse_args() -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    _add_experiment(parser)
    _add_algorithm(parser)
    args = parser.parse_args()
    args.batch_size = args.num_envs * args.num_steps
    args.minibatch_size = args.batch_size // args.num_minibatches
    return args


def _add_experiment(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--exp-name", type=str, default="ppo", help="name of the experiment")
    parser.add_argument("--seed", type=int, default=1, help="seed of the experiment")
    _add_switch(parser, "--torch-deterministic", True, "restrict cuDNN to deterministic kernels")
    _add_switch(parser, "--cuda", True, "train on the GPU, if there is one")
    _add_switch(parser, "--track", False, "track the experiment with Weights & Biases")
    parser.add_argument("--wandb-project-name", type=str, default="cleanRL", help="Weights & Biases project")
    parser.add_argument("--wandb-entity", type=str, default=None, help="Weights & Biases team")
    _add_switch(parser, "--capture-video", False, "record videos of the first environment in videos/")


def _add_algorithm(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--env-id", type=str, default="CartPole-v1", help="ID of the environment")
    add("--total-timesteps", type=int, default=500000, help="total steps, summed over all environments")
    add("--learning-rate", type=float, default=2.5e-4, help="learning rate of the optimizer")
    add("--num-envs", type=int, default=4, help="number of parallel environments")
    add("--num-steps", type=int, default=128, help="steps per environment between two updates")
    _add_switch(parser, "--anneal-lr", True, "decrease the learning rate linearly to 0 over the training")
    add("--gamma", type=float, default=0.99, help="discount factor")
    add("--gae-lambda", type=float, default=0.95, help="lambda of generalised advantage estimation")
    add("--num-minibatches", type=int, default=4, help="number of minibatches per batch")
    add("--update-epochs", type=int, default=4, help="epochs of training on each batch")
    _add_switch(parser, "--norm-adv", True, "normalise the advantages within each minibatch")
    add("--clip-coef", type=float, default=0.2, help="clipping range of the policy ratio")
    _add_switch(parser, "--clip-vloss", True, "clip the value loss as well")
    add("--ent-coef", type=float, default=0.01, help="weight of the entropy bonus")
    add("--vf-coef", type=float, default=0.5, help="weight of the value loss")
    add("--max-grad-norm", type=float, default=0.5, help="maximum norm of the gradient")
    add("--target-kl", type=float, default=None, help="stop an update early once the KL divergence exceeds this")
    # Not imported: the worker calls this function alone to read the script's flags.
    networks = ("auto", "cleanrl", "mlp", "minigrid")
    add("--agent", type=str, default="auto", choices=networks, help="network: CleanRL's own or one of MOSAIC's")


def _add_switch(parser: argparse.ArgumentParser, flag: str, default: bool, words: str) -> None:
    parser.add_argument(flag, type=_truth, default=default, nargs="?", const=True, help=words)


def _truth(text: str) -> bool:
    if text.lower() not in ("true", "false", "1", "0", "yes", "no", "on", "off", "y", "n", "t", "f"):
        raise argparse.ArgumentTypeError(f"must be True or False, not {text!r}")
    return text.lower() in ("true", "1", "yes", "on", "y", "t")


def make_env(env_id: str, seed: int, idx: int, capture_video: bool, run_name: str) -> Callable[[], Any]:
    """A function that creates environment number `idx`."""

    def thunk() -> Any:
        options: dict[str, Any] = {"render_mode": "rgb_array"} if capture_video else {}
        return record(for_agent(gym.make(env_id, **options)), seed, idx, capture_video, run_name)

    return thunk


Agent = make_agent  # the name that evaluation expects in every script


def estimate_advantages(
    rewards: Tensor, values: Tensor, dones: Tensor, last_value: Tensor, last_done: Tensor, gamma: float, lam: float
) -> Tensor:
    """Generalised advantage estimates, (steps, envs). `dones[t]`: the episode had ended before step t."""
    advantages = torch.zeros_like(rewards)
    running = torch.zeros_like(last_value)
    goes_on, next_value = 1.0 - last_done, last_value
    for t in reversed(range(len(rewards))):
        error = rewards[t] + gamma * next_value * goes_on - values[t]
        advantages[t] = running = error + gamma * lam * goes_on * running
        goes_on, next_value = 1.0 - dones[t], values[t]
    return advantages


def policy_loss(ratio: Tensor, advantages: Tensor, clip: float) -> Tensor:
    """The clipped surrogate objective, as a loss to minimise."""
    return -torch.min(ratio * advantages, ratio.clamp(1.0 - clip, 1.0 + clip) * advantages).mean()


def value_loss(new: Tensor, old: Tensor, returns: Tensor, clip: float | None) -> Tensor:
    """Half the squared error; with `clip`, the larger of the errors of the new and of the clipped value."""
    error = (new - returns) ** 2
    if clip is not None:
        error = torch.max(error, (old + (new - old).clamp(-clip, clip) - returns) ** 2)
    return 0.5 * error.mean()


def start_tracking(args: argparse.Namespace, run_name: str) -> None:
    import wandb

    wandb.init(
        project=args.wandb_project_name,
        entity=args.wandb_entity,
        name=run_name,
        config=vars(args),
        sync_tensorboard=True,
        monitor_gym=True,
    )


if __name__ == "__main__":
    args = parse_args()
    run_name = f"{args.env_id}__{args.exp_name}__{args.seed}__{int(time.time())}".replace("/", "_")
    if args.track:
        start_tracking(args, run_name)
    writer = SummaryWriter(f"runs/{run_name}")
    table = "".join(f"|{name}|{value}|\n" for name, value in vars(args).items())
    writer.add_text("hyperparameters", f"|param|value|\n|-|-|\n{table}")

    random.seed(args.seed)
    np.random.seed(args.seed)
    torch.manual_seed(args.seed)
    torch.backends.cudnn.deterministic = args.torch_deterministic
    device = torch.device("cuda" if args.cuda and torch.cuda.is_available() else "cpu")

    curriculum = None
    if os.environ.get(CURRICULUM):
        from cleanrl_worker.wrappers.curriculum import CurriculumTraining

        curriculum = CurriculumTraining.from_json(os.environ[CURRICULUM], args.capture_video)
    envs = gym.vector.SyncVectorEnv(
        [
            (curriculum.make_env if curriculum else make_env)(
                args.env_id, args.seed + i, i, args.capture_video, run_name
            )
            for i in range(args.num_envs)
        ]
    )

    # Resolved here, because the checkpoint records it.
    observation_shape = tuple(envs.single_observation_space.shape or ())
    args.agent = agent_name(args.agent, observation_shape, is_curriculum=curriculum is not None)
    agent = Agent(envs, args.agent).to(device)
    optimizer = optim.Adam(agent.parameters(), lr=args.learning_rate, eps=1e-5)

    shape = (args.num_steps, args.num_envs)
    obs = torch.zeros(shape + observation_shape, device=device)
    actions = torch.zeros(shape, dtype=torch.long, device=device)
    logprobs, rewards, dones, values = (torch.zeros(shape, device=device) for _ in range(4))

    global_step = 0
    start_time = time.time()
    next_obs = torch.as_tensor(envs.reset(seed=args.seed)[0], dtype=torch.float32, device=device)
    next_done = torch.zeros(args.num_envs, device=device)
    num_updates = args.total_timesteps // args.batch_size
    # Plain numbers: a checkpoint keeps those.
    curriculum_stage, curriculum_steps, curriculum_episodes = curriculum.counts() if curriculum else (NO_STAGE, 0, 0)

    for update in range(1, num_updates + 1):
        if curriculum:
            curriculum.catch_up(curriculum_stage, curriculum_steps, curriculum_episodes)
        elif curriculum_stage != NO_STAGE:
            raise ConfigError("The checkpoint belongs to a curriculum. Set its curriculum_schedule to resume it.")
        if args.anneal_lr:
            optimizer.param_groups[0]["lr"] = args.learning_rate * (1.0 - (update - 1) / num_updates)

        # Act: collect one batch with the current policy.
        for step in range(args.num_steps):
            global_step += args.num_envs
            obs[step], dones[step] = next_obs, next_done
            with torch.no_grad():
                action, logprob, _, value = agent.get_action_and_value(next_obs)
            actions[step], logprobs[step], values[step] = action, logprob, value.flatten()

            observation, reward, terminated, truncated, infos = envs.step(action.cpu().numpy())
            rewards[step] = torch.as_tensor(reward, dtype=torch.float32, device=device)
            next_obs = torch.as_tensor(observation, dtype=torch.float32, device=device)
            next_done = torch.as_tensor(np.logical_or(terminated, truncated), dtype=torch.float32, device=device)

            for info in infos.get("final_info", ()):
                if info and "episode" in info:
                    episodic_return, episodic_length = (info["episode"][name].item() for name in "rl")
                    print(f"global_step={global_step}, episodic_return={episodic_return}")
                    writer.add_scalar("charts/episodic_return", episodic_return, global_step)
                    writer.add_scalar("charts/episodic_length", episodic_length, global_step)

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
        b_inds = np.arange(args.batch_size)
        clipfracs = []
        for _epoch in range(args.update_epochs):
            np.random.shuffle(b_inds)
            for start in range(0, args.batch_size, args.minibatch_size):
                mb = torch.as_tensor(b_inds[start : start + args.minibatch_size], device=device)
                _, newlogprob, entropy, newvalue = agent.get_action_and_value(b_obs[mb], b_actions[mb])
                logratio = newlogprob - b_logprobs[mb]
                ratio = logratio.exp()
                with torch.no_grad():
                    old_approx_kl = -logratio.mean()
                    approx_kl = (ratio - 1.0 - logratio).mean()
                    clipfracs.append(((ratio - 1.0).abs() > args.clip_coef).float().mean().item())

                mb_advantages = b_advantages[mb]
                if args.norm_adv and len(mb) > 1:
                    mb_advantages = (mb_advantages - mb_advantages.mean()) / (mb_advantages.std() + 1e-8)
                pg_loss = policy_loss(ratio, mb_advantages, args.clip_coef)
                clip = args.clip_coef if args.clip_vloss else None
                v_loss = value_loss(newvalue.flatten(), b_values[mb], b_returns[mb], clip)
                entropy_loss = entropy.mean()
                # Summed in CleanRL's order: any other order rounds differently.
                loss = pg_loss - args.ent_coef * entropy_loss + v_loss * args.vf_coef

                optimizer.zero_grad()
                loss.backward()
                nn.utils.clip_grad_norm_(agent.parameters(), args.max_grad_norm)
                optimizer.step()
            if args.target_kl is not None and approx_kl > args.target_kl:
                break

        spread = b_returns.var(unbiased=False)
        explained_var = (
            float("nan") if spread == 0 else (1 - (b_returns - b_values).var(unbiased=False) / spread).item()
        )
        writer.add_scalar("charts/learning_rate", optimizer.param_groups[0]["lr"], global_step)
        writer.add_scalar("losses/value_loss", v_loss.item(), global_step)
        writer.add_scalar("losses/policy_loss", pg_loss.item(), global_step)
        writer.add_scalar("losses/entropy", entropy_loss.item(), global_step)
        writer.add_scalar("losses/old_approx_kl", old_approx_kl.item(), global_step)
        writer.add_scalar("losses/approx_kl", approx_kl.item(), global_step)
        writer.add_scalar("losses/clipfrac", float(np.mean(clipfracs)), global_step)
        writer.add_scalar("losses/explained_variance", explained_var, global_step)
        if curriculum:
            curriculum_stage, curriculum_steps, curriculum_episodes = curriculum.counts()
            writer.add_scalar("curriculum/stage", curriculum_stage, global_step)
        sps = int(global_step / (time.time() - start_time))
        print("SPS:", sps)
        writer.add_scalar("charts/SPS", sps, global_step)

    envs.close()
    writer.close()
