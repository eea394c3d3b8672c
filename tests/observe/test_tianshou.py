"""Tianshou: its logger writes to a SummaryWriter, its trainer knows the steps, its tests are evaluations."""

from pathlib import Path

import pytest

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]  # its import compiles for 15 s

BEFORE_2 = """
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


# The same training with Tianshou 2, which has other names for everything.
SINCE_2 = """
import hashlib
import gymnasium as gym
import numpy as np
import tianshou as ts
import torch
from tianshou.algorithm.modelfree.dqn import DiscreteQLearningPolicy
from tianshou.algorithm.optim import AdamOptimizerFactory
from tianshou.trainer import OffPolicyTrainerParams
from tianshou.utils.net.common import Net
from torch.utils.tensorboard import SummaryWriter

np.random.seed(1)
torch.manual_seed(1)
train = ts.env.DummyVectorEnv([lambda: gym.make("CartPole-v1") for _ in range(2)])
test = ts.env.DummyVectorEnv([lambda: gym.make("CartPole-v1")])
train.seed(1)
test.seed(2)
net = Net(state_shape=(4,), action_shape=(2,), hidden_sizes=[16])
policy = DiscreteQLearningPolicy(
    model=net, action_space=gym.spaces.Discrete(2), eps_training=0.1, eps_inference=0.1
)
algorithm = ts.algorithm.DQN(policy=policy, optim=AdamOptimizerFactory(), target_update_freq=100)
found = algorithm.run_training(OffPolicyTrainerParams(
    training_collector=ts.data.Collector(algorithm, train, ts.data.VectorReplayBuffer(500, 2)),
    test_collector=ts.data.Collector(algorithm, test), max_epochs=2, epoch_num_steps=100,
    collection_step_num_env_steps=10, test_step_num_episodes=1, batch_size=16,
    update_step_num_gradient_steps_per_sample=0.1, verbose=False, show_progress=False,
    logger=ts.utils.TensorboardLogger(SummaryWriter("log"), training_interval=10, update_interval=5),
))
print(hashlib.sha256(b"".join(part.numpy().tobytes() for part in net.state_dict().values())).hexdigest())
print(found.train_episode)
"""


@pytest.fixture
def tianshou_2(python):
    """The environment of MOSAIC's own worker, in which a user's script may run."""
    return Path(python).parents[2] / ".venv-tianshou" / "bin" / "python"


def test_a_training_is_the_same_and_its_steps_and_tests_are_known(run):
    assert_observed(run(BEFORE_2, observed=False), run(BEFORE_2), {"train/reward", "test/reward", "update/loss"})


def test_a_training_of_version_2_is_the_same_and_its_steps_and_tests_are_known(run, tianshou_2):
    bare, observed = run(SINCE_2, observed=False, python=tianshou_2), run(SINCE_2, python=tianshou_2)

    assert_observed(bare, observed, {"training/returns_stat/mean", "test/returns_stat/mean"})


def assert_observed(bare, observed, curves):
    assert observed.said == bare.said
    assert observed.events("heartbeat")[-1] == {"progress": 200, "total": 200}
    assert curves <= {name for name, _, _ in observed.metrics}
    assert len([line for line in observed.episodes if line.get("agent_id") == "eval"]) == 3
    assert len([line for line in observed.episodes if line.get("agent_id") is None]) == int(bare.said[1])
