"""Playing inside the world model of an agent."""

import jax
import numpy as np
import pytest
from dreamer_worker.agent import make_agent
from dreamer_worker.config import DreamerConfig
from dreamer_worker.dream import DreamEnv, bars, dreamed
from dreamer_worker.envs import make_env
from dreamer_worker.evaluate import evaluation_of
from dreamer_worker.runtime import opening
from mosaic_sdk.config import ConfigError

pytestmark = pytest.mark.timeout(600)  # compiling on a busy machine
jax.config.update("jax_disable_most_optimizations", True)


@pytest.fixture(scope="module")
def agent():
    env = make_env("dummy_image", seed=0)
    agent = make_agent(env.obs_space, env.act_space, {"size": "debug", "compute": {"dtype": "float32"}})
    rng, noisy = np.random.default_rng(0), agent.save()
    # An agent that has learned nothing expects the same whatever is done.
    noisy |= {
        key: x + 0.5 * rng.standard_normal(x.shape).astype(x.dtype) for key, x in noisy.items() if "params/" in key
    }
    noisy["params/con/out/bias"] = np.full(1, 20, np.float32)
    agent.load(noisy)
    return agent


def play(agent, actions, seed=0, steps=100):
    env = DreamEnv(make_env("dummy_image", seed=1), agent, steps, seed)
    return env, [env.reset(), *(env.step({"action": np.int32(action)}) for action in actions)]


def test_a_dream_looks_like_its_env_and_ends_after_its_steps(agent):
    real = make_env("dummy_image", seed=1)
    first = real.reset()

    env, seen = play(agent, [0, 1, 2], steps=3)

    np.testing.assert_array_equal(seen[0]["image"], first["image"])
    after = real.step({"action": np.int32(0)})
    assert {key: (x.shape, x.dtype) for key, x in seen[1].items()} == {
        key: (x.shape, x.dtype) for key, x in after.items()
    }
    assert [bool(obs["is_last"]) for obs in seen] == [False, False, False, True]
    assert not any(obs["is_terminal"] for obs in seen)
    assert env.render().shape == (192, 192, 3)


def test_a_dream_follows_its_seed_and_the_actions(agent):
    one, same, other_seed, other_action = (
        play(agent, actions, seed)[1][-1]["image"]
        for actions, seed in (([1, 2, 3], 0), ([1, 2, 3], 0), ([1, 2, 3], 5), ([4, 4, 4], 0))
    )

    np.testing.assert_array_equal(one, same)
    assert np.any(one != other_seed)
    assert np.any(one != other_action)


def test_the_next_episode_is_not_compiled_again(agent, monkeypatch):
    play(agent, [0])
    traced = []
    predict = agent.model.predict_next
    monkeypatch.setattr(agent.model, "predict_next", lambda *args: traced.append(args) or predict(*args))

    play(agent, [0, 1], seed=1)

    assert traced == []


def test_an_episode_ends_where_the_model_expects_it_to(agent):
    before = agent.save()
    agent.load({**before, "params/con/out/bias": np.full(1, -20, np.float32)})

    _, seen = play(agent, [0])

    agent.load(before)
    assert seen[-1]["is_terminal"]
    assert seen[-1]["is_last"]


def test_an_end_that_each_step_makes_likelier_comes_where_it_is_likelier_than_not(agent):
    before = agent.save()
    chance = {"params/con/out/bias": np.full(1, np.log(0.8 / 0.2), np.float32)}
    agent.load({**before, **chance, "params/con/out/kernel": np.zeros_like(before["params/con/out/kernel"])})

    _, seen = play(agent, [0, 0, 0, 0])

    agent.load(before)
    assert [bool(obs["is_terminal"]) for obs in seen] == [False, False, False, False, True]  # 0.8 ** 4 is 0.41


def test_numbers_are_shown_as_bars():
    picture = bars(np.asarray([0.0, 5.0, -5.0]), side=30)

    lit = (picture != picture[0, 0]).any(-1)
    assert lit[:15, 10:19].any()
    assert not lit[:14, :9].any()
    assert lit[17:, 20:].any()
    assert not lit[17:, :19].any()


def test_an_evaluation_in_a_dream_says_so(tmp_path):
    (tmp_path / "agent.npz").touch()
    config = DreamerConfig(run_id="T", env="dummy_grid", dream=True, script="eval", checkpoint=str(tmp_path))

    assert evaluation_of(config, None).summary()["env_id"] == "dream:dummy_grid"
    assert opening(config).endswith("plays 10 episodes in its world model.")


def test_the_random_agent_has_no_world_to_dream():
    with pytest.raises(ConfigError, match="no world model"):
        dreamed(make_env("dummy_grid"), None, DreamerConfig(run_id="T", dream=True, random_agent=True))
