"""Tianshou: its logger writes to a SummaryWriter, its trainer knows the steps, its tests are evaluations."""

import pytest

TRAIN = """
import hashlib
import gymnasium as gym
import numpy as np
import tianshou as ts
import torch
from tianshou.utils import TensorboardLogger
from tianshou.utils.net.common import Net
from torch.utils.tensorboard import SummaryWriter

np.random.seed(1)
torch.manual_seed(1)
train = ts.env.DummyVectorEnv([lambda: gym.make("CartPole-v1") for _ in range(2)])
test = ts.env.DummyVectorEnv([lambda: gym.make("CartPole-v1")])
train.seed(1)
test.seed(2)
net = Net(4, 2, hidden_sizes=[16])
policy = ts.policy.DQNPolicy(net, torch.optim.Adam(net.parameters()), 0.99, 1, target_update_freq=100)
policy.set_eps(0.1)
here = ts.data.Collector(policy, train, ts.data.VectorReplayBuffer(500, 2))
there = ts.data.Collector(policy, test)
logger = TensorboardLogger(SummaryWriter("log"), train_interval=10, update_interval=5)
found = ts.trainer.OffpolicyTrainer(
    policy, here, there, max_epoch=2, step_per_epoch=100, step_per_collect=10, episode_per_test=1, batch_size=16,
    update_per_step=0.1, logger=logger, verbose=False, show_progress=False,
).run()
print(hashlib.sha256(b"".join(part.numpy().tobytes() for part in net.state_dict().values())).hexdigest())
print(found["train_episode"])
"""


@pytest.mark.slow  # its import compiles for 15 s
@pytest.mark.timeout(600)
def test_a_training_is_the_same_and_its_steps_and_tests_are_known(run):
    bare, observed = run(TRAIN, observed=False), run(TRAIN)

    assert observed.said == bare.said
    assert observed.events("heartbeat")[-1] == {"progress": 200, "total": 200}
    assert {"train/reward", "test/reward", "update/loss"} <= {name for name, _, _ in observed.metrics}
    assert len([line for line in observed.episodes if line.get("agent_id") == "eval"]) == 3
    assert len([line for line in observed.episodes if line.get("agent_id") is None]) == int(bare.said[1])
