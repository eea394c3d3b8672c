"""QDagger: a DQN with a larger network learns from a trained one first, and then on its own.

Agarwal, Schwarzer, Castro, Courville, Bellemare: "Reincarnating Reinforcement Learning: Reusing Prior Computation to
Accelerate Progress", 2022 (arXiv 2206.01626). Three phases, all counted as steps of the training:

    teacher_steps   the teacher plays and fills the replay buffer
    offline_steps   one update per step from these steps: the loss of DQN plus the distance to the teacher's policy
    the rest        the student plays; the teacher's part of the loss fades as the student's returns reach the teacher's

The student's network is that of IMPALA (Espeholt et al., 2018). The teacher is the checkpoint of a run on the same
environment (see teacher.py); nothing is downloaded.
"""

import random
import time
from collections import deque
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
from cleanrl_worker.teacher import load_teacher
from cleanrl_worker.wrappers.pixels import make_pixels


@dataclass
class Args(Experiment):
    exp_name: str = "qdagger_dqn_atari_impalacnn"
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
    def __init__(self, channels: int) -> None:
        super().__init__()
        self.first = nn.Conv2d(channels, channels, 3, padding=1)
        self.second = nn.Conv2d(channels, channels, 3, padding=1)

    def forward(self, pictures: Tensor) -> Tensor:
        changed: Tensor = self.second(functional.relu(self.first(functional.relu(pictures))))
        return pictures + changed


class QNetwork(nn.Module):
    """Three times: a convolution, a pooling that halves the picture, two residual blocks."""

    def __init__(self, envs: Any) -> None:
        super().__init__()
        layers: list[nn.Module] = []
        channels, side = 4, 84
        for wider in (16, 32, 32):
            layers += [nn.Conv2d(channels, wider, 3, padding=1), nn.MaxPool2d(3, stride=2, padding=1)]
            layers += [Residual(wider), Residual(wider)]
            channels, side = wider, (side + 1) // 2
        self.network = nn.Sequential(
            *layers,
            *(nn.ReLU(), nn.Flatten(), nn.Linear(channels * side * side, 256), nn.ReLU()),
            nn.Linear(256, int(envs.single_action_space.n)),
        )

    def forward(self, observations: Tensor) -> Tensor:
        values: Tensor = self.network(observations / 255.0)
        return values


def teachers_share(student: float, teacher: float) -> float:
    """The weight of the teacher in the loss: 1 at first, 0 once the student's returns have reached the teacher's."""
    return float(np.clip((teacher - student) / max(abs(teacher), 1e-8), 0.0, 1.0))


if __name__ == "__main__":
    args = tyro.cli(Args)
    run_name = name_run(args)
    writer = open_log(args, run_name)
    device = seed_everything(args)

    envs = gym.vector.SyncVectorEnv([make_env(args.env_id, args.seed, 0, args.capture_video, run_name)])
    teach = load_teacher(args.teacher_path, args.env_id, envs)
    q_network = QNetwork(envs).to(device)
    target_network = QNetwork(envs).to(device)
    target_network.load_state_dict(q_network.state_dict())
    optimizer = optim.Adam(q_network.parameters(), lr=args.learning_rate)
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
    obs, _ = envs.reset(seed=args.seed)
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
                with torch.no_grad():
                    actions = q_network(torch.as_tensor(obs, device=device)).argmax(dim=1).cpu().numpy()
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
            with torch.no_grad():
                best = target_network(data.next_observations.to(device)).max(dim=1).values
                going_on = 1.0 - data.dones.flatten().to(device)
                targets = data.rewards.flatten().to(device) + args.gamma * going_on * best
                taught = torch.as_tensor(teach(data.observations.numpy()), device=device) / args.temperature
            values = q_network(data.observations.to(device))
            td_loss = functional.mse_loss(values.gather(1, data.actions.to(device)).squeeze(1), targets)
            student = functional.log_softmax(values / args.temperature, dim=1)
            distance = functional.kl_div(
                student, functional.log_softmax(taught, 1), reduction="batchmean", log_target=True
            )
            loss = td_loss + share * distance
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(q_network.parameters(), 10.0)
            optimizer.step()

            if global_step % 100 < args.train_frequency:
                writer.add_scalar("losses/td_loss", td_loss.item(), global_step)
                writer.add_scalar("losses/distill_loss", distance.item(), global_step)
                writer.add_scalar("losses/q_values", values.mean().item(), global_step)
                writer.add_scalar("charts/distill_coeff", share, global_step)
                writer.add_scalar("charts/teacher_return", teacher_return, global_step)
                log_speed(writer, global_step, start_time)

        if global_step % args.target_network_frequency == 0:
            target_network.load_state_dict(q_network.state_dict())

    envs.close()
    writer.close()
