"""Interactive mode: a policy plays with the wrappers of its training, in its own environment or for another."""

import gymnasium
import numpy as np
import pytest
from mosaic_sdk.interactive import Session
from stable_baselines3_worker.config import StableBaselines3Config
from stable_baselines3_worker.interactive import make_player


def session_of(**keys):
    config = StableBaselines3Config.from_dict({"run_id": "test", **keys})
    return Session(lambda: make_player(config), run_id="test", first_seed=1)


def ask(session, line):
    return session.answer(line)[-1]


@pytest.fixture
def policy(run):
    trained = run(algo="a2c", env_id="Pendulum-v1", total_timesteps=20, extras={"normalize": True})
    return {"mode": "interactive", "policy_path": str(trained.newest)}


def test_an_episode_with_a_seed_is_the_same_again(policy):
    session = session_of(extras=policy)

    starts, rewards = [], []
    for _ in range(2):
        starts.append(ask(session, '{"cmd": "reset", "seed": 3}')["first_observation"])
        rewards.append([ask(session, '{"cmd": "step"}')["reward"] for _ in range(5)])

    assert starts[0] == starts[1]
    assert rewards[0] == rewards[1]
    assert sum(rewards[0]) < -1  # the environment's own rewards, not normalised ones
    session.close()


def test_it_selects_the_same_action_for_an_environment_elsewhere(policy):
    session = session_of(extras=policy)
    ask(session, '{"cmd": "reset", "seed": 3}')
    own = ask(session, '{"cmd": "step"}')["action"]
    observation, _ = gymnasium.make("Pendulum-v1").reset(seed=3)

    ready = ask(session, '{"cmd": "init_agent", "agent_id": "a", "seed": 1}')
    other = ask(session, f'{{"cmd": "select_action", "agent_id": "a", "observation": {observation.tolist()}}}')

    assert ready["policy"] == "checkpoint"
    assert np.allclose(own, other["action"])  # only if the statistics of VecNormalize are used in both
    session.close()


def test_an_invalid_action_and_foreign_spaces_are_refused():
    session = session_of(env_id="CartPole-v1")
    ask(session, '{"cmd": "reset", "seed": 3}')

    wrong = ask(session, '{"cmd": "step", "action": 7}')
    foreign = ask(session, '{"cmd": "init_agent", "action_space": {"type": "Discrete", "n": 5, "start": 0}}')

    assert wrong["message"] == "action: 7 is not an action of Discrete(2)."
    assert foreign["type"] == "error"
    assert ask(session, '{"cmd": "step", "action": 1}')["action"] == 1
    session.close()
