"""RLlib: the script's process tells what `train` returned, and the processes of Ray tell nothing."""

from pathlib import Path

import pytest

# Names of the real package, so that the hooks are those of real scripts.
STAND_IN = """
import pathlib, sys
sys.path.insert(0, "packages")
for name in ("ray", "ray/tune", "ray/tune/trainable", "ray/rllib", "ray/rllib/algorithms"):
    folder = pathlib.Path("packages", name)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "__init__.py").write_text("")
pathlib.Path("packages/ray/tune/trainable/trainable.py").write_text('''
class Trainable:
    calls = 0
    def train(self):
        self.calls += 1
        return {
            "num_env_steps_sampled_lifetime": 500.0 * self.calls, "done": False, "pid": 7, "config": {"lr": 1.0},
            "env_runners": {"episode_return_mean": 20.0 + self.calls, "agents": {}, "is_fast": True},
            "date": "today", "training_iteration": self.calls,
        }
''')
pathlib.Path("packages/ray/rllib/algorithms/algorithm.py").write_text('''
from ray.tune.trainable.trainable import Trainable
class Algorithm(Trainable):
    def evaluate(self):
        import gymnasium
        env = gymnasium.make("CartPole-v1")
        env.reset(seed=1)
        while not any(env.step(0)[2:4]):
            pass
        return 5
''')
from ray.rllib.algorithms.algorithm import Algorithm
"""
TRAIN = """
algorithm = Algorithm()
print([algorithm.train()["env_runners"]["episode_return_mean"] for _ in range(2)], algorithm.evaluate())
algorithm.train()
del algorithm  # its steps are still known at the end
"""


def test_what_train_returns_is_told_with_its_steps(run):
    observed = run(STAND_IN + TRAIN)

    assert observed.said == ["[21.0, 22.0] 5"]
    assert [(step, value) for name, step, value in observed.metrics if name == "env_runners/episode_return_mean"] == [
        (500, 21.0),
        (1000, 22.0),
        (1500, 23.0),
    ]
    assert {name for name, _, _ in observed.metrics} == {
        "num_env_steps_sampled_lifetime",
        "env_runners/episode_return_mean",
        "training_iteration",
    }
    assert [line["agent_id"] for line in observed.episodes] == ["eval"]
    assert observed.events("heartbeat")[-1] == {"progress": 1500}
    assert ("progress", "ray.rllib.Algorithm.train") in observed.observing


LOOP = """
import gymnasium
env = gymnasium.make("CartPole-v1")
env.reset(seed=1)
while not any(env.step(0)[2:4]):
    pass
"""


@pytest.mark.parametrize(("program", "count"), [("ray/_private/workers/default_worker.py", 0), ("train.py", 1)])
def test_a_process_of_ray_tells_nothing(run, program, count):
    observed = run(f"import sys\nsys.argv[0] = '/env/{program}'\n" + LOOP)

    assert len(observed.episodes) == count


REAL = """
from ray.rllib.algorithms.ppo import PPOConfig

config = PPOConfig().environment("CartPole-v1").env_runners(num_env_runners=1)
algorithm = config.training(train_batch_size_per_learner=256, minibatch_size=128, num_epochs=1).build_algo()
for _ in range(2):
    steps = algorithm.train()["num_env_steps_sampled_lifetime"]
algorithm.stop()
print(int(steps))
"""


@pytest.mark.slow  # it starts Ray
@pytest.mark.timeout(600)
def test_a_real_training_with_an_env_runner_of_its_own_is_told(run, python):
    observed = run(REAL, python=Path(python).parents[2] / ".venv-ray" / "bin" / "python", RAY_AUTH_MODE="disabled")

    assert {"env_runners/episode_return_mean", "num_env_steps_sampled_lifetime"} <= {
        name for name, _, _ in observed.metrics
    }
    assert observed.events("heartbeat")[-1] == {"progress": int(observed.said[-1])}
    assert observed.episodes == []
    assert "episode_index" not in observed.text + observed.err  # nor as text behind Ray's prefix
