"""PPO with JAX on Atari games in envpool. A stand-in: the games are stepped by a callback, not inside XLA.

Schulman, Wolski, Dhariwal, Radford, Klimov: "Proximal Policy Optimization Algorithms", 2017 (arXiv 1707.06347).
CleanRL's script of this name compiles the games into the rollout through envpool's XLA interface. That interface needs
parts of JAX that were removed before 0.4.30, and envpool's newer one needs a JAX that CleanRL's other scripts do not
run with. Here acting and learning are compiled, and Python calls envpool between two steps. The results are the same;
only the speed differs. ppo_atari_envpool_xla_jax_scan.py compiles the whole rollout.
"""

import time
from dataclasses import dataclass
from typing import Any

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import optax
import tyro
from flax.linen.initializers import constant, orthogonal
from flax.training.train_state import TrainState

from cleanrl_worker.algorithms.experiment import (
    Experiment,
    log_episode,
    log_speed,
    name_run,
    open_log,
    seed_everything,
)
from cleanrl_worker.wrappers.batches import ended, make_batch


@dataclass
class Args(Experiment):
    exp_name: str = "ppo_atari_envpool_xla_jax"
    env_id: str = "Pong-v5"
    total_timesteps: int = 10_000_000
    learning_rate: float = 2.5e-4
    num_envs: int = 8
    num_steps: int = 128
    anneal_lr: bool = True
    gamma: float = 0.99
    gae_lambda: float = 0.95
    num_minibatches: int = 4
    update_epochs: int = 4
    norm_adv: bool = True
    clip_coef: float = 0.1
    ent_coef: float = 0.01
    vf_coef: float = 0.5
    max_grad_norm: float = 0.5


class Agent(nn.Module):
    """The convolutions of Mnih et al. (2015); returns the logits of the actions and the value of the state."""

    action_dim: int

    @nn.compact
    def __call__(self, observations: Any) -> Any:
        x = jnp.transpose(observations, (0, 2, 3, 1)) / 255.0
        for channels, size, stride in ((32, 8, 4), (64, 4, 2), (64, 3, 1)):
            conv = nn.Conv(channels, (size, size), (stride, stride), "VALID", kernel_init=orthogonal(2**0.5))
            x = nn.relu(conv(x))
        x = nn.relu(nn.Dense(512, kernel_init=orthogonal(2**0.5))(x.reshape((x.shape[0], -1))))
        logits = nn.Dense(self.action_dim, kernel_init=orthogonal(0.01), bias_init=constant(0.0))(x)
        return logits, nn.Dense(1, kernel_init=orthogonal(1.0))(x).squeeze(-1)


def act(state: Any, observations: Any, key: Any) -> Any:
    """Sampled actions with their log probabilities, the values, and the next key."""
    logits, value = state.apply_fn(state.params, observations)
    key, drawn = jax.random.split(key)
    action = jax.random.categorical(drawn, logits)
    return action, jax.nn.log_softmax(logits)[jnp.arange(len(action)), action], value, key


def advantages_of(steps: Any, last_value: Any, gamma: float, lam: float) -> Any:
    """Generalised advantage estimates, (steps, envs); `dones[t]`: step t ended the episode."""

    def back(carry: Any, one: Any) -> Any:
        running, next_value = carry
        goes_on = 1.0 - one["dones"]
        error = one["rewards"] + gamma * next_value * goes_on - one["values"]
        running = error + gamma * lam * goes_on * running
        return (running, one["values"]), running

    _, found = jax.lax.scan(back, (jnp.zeros_like(last_value), last_value), steps, reverse=True)
    return found


def losses(params: Any, apply: Any, mb: Any, args: Any) -> Any:
    """The loss of a minibatch with its parts. A step in which envpool only resets a game has the weight 0."""
    weight = mb["weights"] / jnp.maximum(mb["weights"].sum(), 1.0)
    logits, value = apply(params, mb["obs"])
    log_policy = jax.nn.log_softmax(logits)
    ratio = jnp.exp(log_policy[jnp.arange(len(value)), mb["actions"]] - mb["logprobs"])
    advantage = mb["advantages"]
    if args.norm_adv:
        mean = (weight * advantage).sum()
        spread = jnp.sqrt((weight * (advantage - mean) ** 2).sum())
        advantage = (advantage - mean) / (spread + 1e-8)
    clipped = jnp.clip(ratio, 1.0 - args.clip_coef, 1.0 + args.clip_coef)
    pg_loss = -(weight * jnp.minimum(ratio * advantage, clipped * advantage)).sum()
    v_loss = 0.5 * (weight * (value - mb["returns"]) ** 2).sum()
    entropy = -(weight * (jnp.exp(log_policy) * log_policy).sum(axis=1)).sum()
    approx_kl = (weight * (ratio - 1.0 - jnp.log(ratio))).sum()
    return pg_loss - args.ent_coef * entropy + args.vf_coef * v_loss, (pg_loss, v_loss, entropy, approx_kl)


def make_update(args: Any) -> Any:
    """The compiled learning from one rollout: advantages, then several epochs over random minibatches."""
    batch_size = args.num_envs * args.num_steps
    minibatch_size = batch_size // args.num_minibatches

    def learn(state: Any, mb: Any) -> Any:
        gradients, parts = jax.grad(losses, has_aux=True)(state.params, state.apply_fn, mb, args)
        return state.apply_gradients(grads=gradients), parts

    @jax.jit
    def update(state: Any, steps: Any, last_obs: Any, key: Any) -> Any:
        _, last_value = state.apply_fn(state.params, last_obs)
        advantages = advantages_of(steps, last_value, args.gamma, args.gae_lambda)
        batch = {**steps, "advantages": advantages, "returns": advantages + steps["values"]}
        batch = jax.tree_util.tree_map(lambda part: part.reshape((batch_size, *part.shape[2:])), batch)

        def epoch(state: Any, order_key: Any) -> Any:
            order = jax.random.permutation(order_key, batch_size)[: minibatch_size * args.num_minibatches]
            shuffled = jax.tree_util.tree_map(
                lambda part: part[order].reshape((args.num_minibatches, minibatch_size, *part.shape[1:])), batch
            )
            return jax.lax.scan(learn, state, shuffled)

        key, *order_keys = jax.random.split(key, args.update_epochs + 1)
        state, parts = jax.lax.scan(epoch, state, jnp.stack(order_keys))
        return state, jax.tree_util.tree_map(lambda part: part[-1, -1], parts), key

    return update


def make_optimizer(args: Any, num_updates: int) -> Any:
    """Adam with clipped gradients; its learning rate falls to 0 over the updates."""
    per_update = args.num_minibatches * args.update_epochs

    def schedule(count: Any) -> Any:
        return args.learning_rate * (1.0 - (count // per_update) / num_updates)

    rate = schedule if args.anneal_lr else args.learning_rate
    return optax.chain(optax.clip_by_global_norm(args.max_grad_norm), optax.adam(rate, eps=1e-5))


if __name__ == "__main__":
    args = tyro.cli(Args)
    run_name = name_run(args)
    writer = open_log(args, run_name)
    seed_everything(args)

    envs = make_batch(args.env_id, args.num_envs, args.seed)
    num_updates = args.total_timesteps // (args.num_envs * args.num_steps)
    agent = Agent(action_dim=int(envs.single_action_space.n))
    next_obs = np.asarray(envs.reset())
    key, first_key = jax.random.split(jax.random.PRNGKey(args.seed))
    agent_state = TrainState.create(
        apply_fn=agent.apply, params=agent.init(first_key, next_obs), tx=make_optimizer(args, num_updates)
    )
    choose, learn_from = jax.jit(act), make_update(args)

    global_step = 0
    start_time = time.time()
    for update in range(1, num_updates + 1):
        # Act: one call of the compiled policy and one of envpool per step.
        rows = []
        for _step in range(args.num_steps):
            global_step += args.num_envs
            action, logprob, value, key = choose(agent_state, next_obs, key)
            row = {"obs": next_obs, "actions": action, "logprobs": logprob, "values": value}
            row["weights"] = (~envs.skips).astype(np.float32)
            observation, reward, done, infos = envs.step(np.asarray(action))
            next_obs = np.asarray(observation)
            rows.append({**row, "rewards": reward.astype(np.float32), "dones": done.astype(np.float32)})
            for episodic_return, episodic_length in ended(done, infos):
                log_episode(writer, episodic_return, episodic_length, global_step)
        steps = jax.tree_util.tree_map(lambda *parts: jnp.stack(parts), *rows)

        # Learn: everything else in one compiled call.
        agent_state, (pg_loss, v_loss, entropy, approx_kl), key = learn_from(agent_state, steps, next_obs, key)

        writer.add_scalar("losses/value_loss", v_loss.item(), global_step)
        writer.add_scalar("losses/policy_loss", pg_loss.item(), global_step)
        writer.add_scalar("losses/entropy", entropy.item(), global_step)
        writer.add_scalar("losses/approx_kl", approx_kl.item(), global_step)
        writer.add_scalar("charts/updates", update, global_step)
        log_speed(writer, global_step, start_time)

    envs.close()
    writer.close()
