"""Whether what is trained through the worker learns: short trainings, judged by their last episodes."""

import statistics

import pytest

pytestmark = [pytest.mark.slow, pytest.mark.timeout(3600)]

DQN = {
    "algo": "dqn",
    "env_id": "CartPole-v1",
    "total_timesteps": 40_000,
    "extras": {
        "algo_params": {
            "learning_rate": 1e-3,
            "learning_starts": 1000,
            "exploration_fraction": 0.25,
            "target_network_frequency": 250,
            "train_frequency": 4,
        }
    },
}
SAC = {
    "algo": "sac_continuous_action",
    "env_id": "Pendulum-v1",
    "total_timesteps": 8_000,
    "extras": {"algo_params": {"learning_starts": 1000, "buffer_size": 10_000}},
}
TD3 = {
    "algo": "td3_continuous_action",
    "env_id": "Pendulum-v1",
    "total_timesteps": 12_000,
    "extras": {"algo_params": {"learning_starts": 1000, "buffer_size": 12_000, "learning_rate": 1e-3}},
}


# A random policy gets about 22 on CartPole and about -1200 on Pendulum.
@pytest.mark.parametrize(("config", "least"), [(DQN, 100.0), (SAC, -500.0), (TD3, -500.0)], ids=["dqn", "sac", "td3"])
def test_its_last_episodes_are_far_better_than_chance(launch, config, least):
    trial = launch({**config, "seed": 1})

    assert trial.code == 0, trial.last_words
    returns = [line["total_reward"] for line in trial.measurements() if line.get("event_type") == "episode"]
    assert statistics.mean(returns[-10:]) >= least
