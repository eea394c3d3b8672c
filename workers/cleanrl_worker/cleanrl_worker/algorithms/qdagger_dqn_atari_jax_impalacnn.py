"""QDagger with JAX: a DQN with a larger network learns from a trained one first, and then on its own.

Agarwal, Schwarzer, Castro, Courville, Bellemare: "Reincarnating Reinforcement Learning: Reusing Prior Computation to
Accelerate Progress", 2022 (arXiv 2206.01626). The phases and the arguments are those of qdagger_dqn_atari_impalacnn.py.
The teacher is the checkpoint of a run with torch or JAX on the same environment; nothing is downloaded.
"""

import random
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import flax.linen as nn
import gymnasium as gym
import jax
import jax.numpy as jnp
import numpy as np
import optax
import tyro
from flax.training.train_state import TrainState
from stable_baselines3.common.buffers import ReplayBuffer

from cleanrl_worker.algorithms.experiment import (
    Experiment,
    linear_schedule,
    log_episodes,
    log_speed,
    name_run,
    open_log,
    seed_everything,
)
from cleanrl_worker.teacher import load_teacher
from cleanrl_worker.wrappers.pixels import make_pixels


@dataclass
class Args(Experiment):
    exp_name: str = "qdagger_dqn_atari_jax_impalacnn"
    env_id: str = "BreakoutNoFrameskip-v4"
    total_timesteps: int = 11_000_000
    teacher_path: str = ""
    """The teacher: the folder of a run on the same environment, or one of its checkpoints."""
    teacher_steps: int = 500_000
    """Steps that the teacher plays."""
    offline_steps: int = 500_000
    """Updates from the teacher's steps before the student plays."""
    teacher_epsilon: float = 0.01
    """Probability of a random action while the teacher plays."""
    temperature: float = 1.0
    """Of the policies that are compared: the higher, the more alike are the probabilities of the actions."""
    learning_rate: float = 1e-4
    buffer_size: int = 1_000_000
    gamma: float = 0.99
    target_network_frequency: int = 1_000
    batch_size: int = 32
    start_e: float = 1.0
    end_e: float = 0.01
    exploration_fraction: float = 0.1
    learning_starts: int = 80_000
    train_frequency: int = 4


def make_env(env_id: str, seed: int, idx: int, capture_video: bool, run_name: str) -> Callable[[], Any]:
    return lambda: make_pixels(env_id, seed, idx, capture_video, run_name)


class Residual(nn.Module):
    channels: int

    @nn.compact
    def __call__(self, pictures: Any) -> Any:
        changed = nn.Conv(self.channels, (3, 3))(nn.relu(pictures))
        return pictures + nn.Conv(self.channels, (3, 3))(nn.relu(changed))


class QNetwork(nn.Module):
    """IMPALA's network (Espeholt et al., 2018). Three times: a convolution, a pooling, two residual blocks."""

    action_dim: int

    @nn.compact
    def __call__(self, observations: Any) -> Any:
        x = jnp.transpose(observations, (0, 2, 3, 1)) / 255.0
        for channels in (16, 32, 32):
            x = nn.max_pool(nn.Conv(channels, (3, 3))(x), (3, 3), strides=(2, 2), padding="SAME")
            x = Residual(channels)(Residual(channels)(x))
        x = nn.relu(x).reshape((x.shape[0], -1))
        return nn.Dense(self.action_dim)(nn.relu(nn.Dense(256)(x)))


class QState(TrainState):
    target_params: Any


def teachers_share(student: float, teacher: float) -> float:
    """The weight of the teacher in the loss: 1 at first, 0 once the student's returns have reached the teacher's."""
    return float(np.clip((teacher - student) / max(abs(teacher), 1e-8), 0.0, 1.0))


@partial(jax.jit, static_argnames=("gamma", "temperature"))
def learn(state: Any, batch: dict[str, Any], share: float, gamma: float, temperature: float) -> Any:
    """The state after one update, with the loss of DQN, the distance to the teacher and the mean value."""
    best = state.apply_fn(state.target_params, batch["next_observations"]).max(axis=1)
    targets = batch["rewards"] + gamma * (1.0 - batch["dones"]) * best
    taught = jax.nn.log_softmax(batch["taught"] / temperature)

    def loss(params: Any) -> Any:
        values = state.apply_fn(params, batch["observations"])
        chosen = values[jnp.arange(len(targets)), batch["actions"]]
        td_loss = ((chosen - targets) ** 2).mean()
        student = jax.nn.log_softmax(values / temperature)
        distance = (jnp.exp(taught) * (taught - student)).sum(axis=1).mean()
        return td_loss + share * distance, (td_loss, distance, values.mean())

    gradients, measured = jax.grad(loss, has_aux=True)(state.params)
    return state.apply_gradients(grads=gradients), measured


if __name__ == "__main__":
    args = tyro.cli(Args)
    run_name = name_run(args)
    writer = open_log(args, run_name)
    seed_everything(args)

    envs = gym.vector.SyncVectorEnv([make_env(args.env_id, args.seed, 0, args.capture_video, run_name)])
    teach = load_teacher(args.teacher_path, args.env_id, envs)
    obs, _ = envs.reset(seed=args.seed)
    actions_space: Any = envs.single_action_space
    q_network = QNetwork(action_dim=int(actions_space.n))
    first_params = q_network.init(jax.random.PRNGKey(args.seed), obs)
    q_state = QState.create(
        apply_fn=q_network.apply,
        params=first_params,
        target_params=first_params,
        tx=optax.chain(optax.clip_by_global_norm(10.0), optax.adam(args.learning_rate)),
    )
    best_action = jax.jit(lambda params, pictures: q_network.apply(params, pictures).argmax(axis=1))
    rb = ReplayBuffer(
        args.buffer_size,
        envs.single_observation_space,
        envs.single_action_space,
        "cpu",
        optimize_memory_usage=True,
        handle_timeout_termination=False,
    )

    online = args.teacher_steps + args.offline_steps
    teacher_return, teacher_episodes = 0.0, 0  # the mean of its episodes
    student_returns: deque[float] = deque(maxlen=20)
    share = 1.0
    start_time = time.time()
    for global_step in range(args.total_timesteps):
        is_teachers, is_offline = global_step < args.teacher_steps, args.teacher_steps <= global_step < online
        if global_step == online:
            rb.reset()  # from here on the student learns from its own steps
            obs, _ = envs.reset()

        # Act: first the teacher, then nobody, then the student.
        if not is_offline:
            span = args.exploration_fraction * (args.total_timesteps - online)
            epsilon = linear_schedule(args.start_e, args.end_e, span, global_step - online)
            if random.random() < (args.teacher_epsilon if is_teachers else epsilon):
                actions = np.array([envs.single_action_space.sample()])
            elif is_teachers:
                actions = teach(obs).argmax(axis=1)
            else:
                actions = np.asarray(best_action(q_state.params, obs))
            next_obs, rewards, terminated, truncated, infos = envs.step(actions)
            rb.add(obs, next_obs, actions, rewards, np.logical_or(terminated, truncated), [{}])
            obs = next_obs
            if not is_teachers:
                log_episodes(writer, infos, global_step)
            for info in infos.get("final_info", ()):
                if info and "episode" in info:
                    episodic_return = float(info["episode"]["r"].item())
                    if is_teachers:
                        teacher_episodes += 1
                        teacher_return += (episodic_return - teacher_return) / teacher_episodes
                    else:
                        student_returns.append(episodic_return)
                        share = teachers_share(float(np.mean(student_returns)), teacher_return)

        # Learn: every step offline, and every few steps once the student has played enough.
        is_ready = global_step >= online + args.learning_starts and global_step % args.train_frequency == 0
        if is_offline or is_ready:
            data = rb.sample(args.batch_size)
            batch = {
                "observations": data.observations.numpy(),
                "next_observations": data.next_observations.numpy(),
                "actions": data.actions.flatten().numpy(),
                "rewards": data.rewards.flatten().numpy(),
                "dones": data.dones.flatten().numpy(),
                "taught": teach(data.observations.numpy()),
            }
            q_state, (td_loss, distance, mean_value) = learn(q_state, batch, share, args.gamma, args.temperature)
            if global_step % 100 < args.train_frequency:
                writer.add_scalar("losses/td_loss", td_loss.item(), global_step)
                writer.add_scalar("losses/distill_loss", distance.item(), global_step)
                writer.add_scalar("losses/q_values", mean_value.item(), global_step)
                writer.add_scalar("charts/distill_coeff", share, global_step)
                writer.add_scalar("charts/teacher_return", teacher_return, global_step)
                log_speed(writer, global_step, start_time)

        if global_step % args.target_network_frequency == 0:
            q_state = q_state.replace(target_params=q_state.params)

    envs.close()
    writer.close()
