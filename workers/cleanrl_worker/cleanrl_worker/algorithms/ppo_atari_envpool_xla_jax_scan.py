"""PPO with JAX on Atari games in envpool, one compiled call per update. A stand-in: XLA calls the games back in Python.

Schulman, Wolski, Dhariwal, Radford, Klimov: "Proximal Policy Optimization Algorithms", 2017 (arXiv 1707.06347). As in
CleanRL's script of this name a whole rollout is one `lax.scan`, and learning is another one. Its envpool-XLA interface
no longer works (see ppo_atari_envpool_xla_jax.py, which also has the network and the losses): inside the scan an
ordered callback steps the games.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import tyro
from flax.training.train_state import TrainState
from jax.experimental import io_callback

from cleanrl_worker.algorithms.experiment import (
    Experiment,
    log_episode,
    log_speed,
    name_run,
    open_log,
    seed_everything,
)
from cleanrl_worker.algorithms.ppo_atari_envpool_xla_jax import Agent, act, make_optimizer, make_update
from cleanrl_worker.wrappers.batches import ended, make_batch


@dataclass
class Args(Experiment):
    exp_name: str = "ppo_atari_envpool_xla_jax_scan"
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


def make_rollout(play: Callable[[Any], Any], shape: tuple[int, ...], num_steps: int) -> Any:
    """The compiled rollout. `play(actions)` steps the games: pictures, rewards, dones and weights of the steps."""
    numbers = jax.ShapeDtypeStruct(shape[:1], np.float32)
    outcome = (jax.ShapeDtypeStruct(shape, np.uint8), numbers, numbers, numbers)

    @jax.jit
    def rollout(state: Any, next_obs: Any, key: Any) -> Any:
        def step(carry: Any, _: Any) -> Any:
            obs, key = carry
            action, logprob, value, key = act(state, obs, key)
            # Ordered: the games must see the actions in the order of the steps.
            after, reward, done, weight = io_callback(play, outcome, action, ordered=True)
            row = {"obs": obs, "actions": action, "logprobs": logprob, "values": value}
            return (after, key), {**row, "rewards": reward, "dones": done, "weights": weight}

        (after, key), steps = jax.lax.scan(step, (next_obs, key), None, num_steps)
        return steps, after, key

    return rollout


if __name__ == "__main__":
    args = tyro.cli(Args)
    run_name = name_run(args)
    writer = open_log(args, run_name)
    seed_everything(args)
    # Otherwise the callback may wait for an array that is computed by the thread it runs in.
    jax.config.update("jax_cpu_enable_async_dispatch", False)

    envs = make_batch(args.env_id, args.num_envs, args.seed)
    num_updates = args.total_timesteps // (args.num_envs * args.num_steps)
    agent = Agent(action_dim=int(envs.single_action_space.n))
    next_obs = np.asarray(envs.reset())
    key, first_key = jax.random.split(jax.random.PRNGKey(args.seed))
    agent_state = TrainState.create(
        apply_fn=agent.apply, params=agent.init(first_key, next_obs), tx=make_optimizer(args, num_updates)
    )

    def play(action: Any) -> Any:
        """One step of all games; also logs the episodes that end in it."""
        global global_step
        global_step += args.num_envs
        weight = (~envs.skips).astype(np.float32)
        observation, reward, done, infos = envs.step(np.asarray(action))
        for episodic_return, episodic_length in ended(done, infos):
            log_episode(writer, episodic_return, episodic_length, global_step)
        return np.asarray(observation), reward.astype(np.float32), done.astype(np.float32), weight

    global_step = 0
    start_time = time.time()
    rollout, learn_from = make_rollout(play, next_obs.shape, args.num_steps), make_update(args)
    for update in range(1, num_updates + 1):
        steps, next_obs, key = rollout(agent_state, jnp.asarray(next_obs), key)
        global_step = update * args.num_envs * args.num_steps  # as play() has counted; a checkpoint keeps it from here
        agent_state, (pg_loss, v_loss, entropy, approx_kl), key = learn_from(agent_state, steps, next_obs, key)

        writer.add_scalar("losses/value_loss", v_loss.item(), global_step)
        writer.add_scalar("losses/policy_loss", pg_loss.item(), global_step)
        writer.add_scalar("losses/entropy", entropy.item(), global_step)
        writer.add_scalar("losses/approx_kl", approx_kl.item(), global_step)
        log_speed(writer, global_step, start_time)

    envs.close()
    writer.close()
