"""From an id to an environment, and what a wrong one is answered with."""

from typing import ClassVar

import pytest
from eval_worker.envs.choice import EnvChoice
from eval_worker.envs.making import make_game
from mosaic_sdk.config import ConfigError


def make(document):
    game = make_game(EnvChoice.parse(document))
    game.reset(1)
    return game


@pytest.mark.parametrize(
    ("env", "message"),
    [
        ("MiniGird-Empty-8x8-v0", r"Did you mean MiniGrid-Empty-8x8-v0"),
        ("pettingzoo/conect_four_v3", r"Did you mean pettingzoo/connect_four_v3"),
        ("mpe2/simple_spread_v2", r"Did you mean mpe2/simple_spread_v3"),
        ("MosaicMultiGrid-C-2v1-IndAgObs-v1", r"Did you mean .*MosaicMultiGrid-C-2v2-IndAgObs-v1"),
        ("no_such_module:Env-v0", r"needs the module no_such_module, which cannot be imported"),
        ({"id": "CartPole-v1", "kwargs": {"wheels": 4}}, r"CartPole-v1 cannot be created: TypeError: .*wheels"),
        ({"id": "CartPole-v1", "kwargs": {"render_mode": "human"}}, r"env.kwargs.render_mode: must be rgb_array"),
        ({"id": "CartPole-v1", "kwargs": [1]}, r"env.kwargs: must be an object"),
        ({"id": "CartPole-v1", "api": "aec"}, r"env.api: CartPole-v1 is an environment of Gymnasium"),
        ({"id": "CartPole-v1", "api": "both"}, r"env.api: "),
        ({"id": "pettingzoo/chess_v6", "api": "parallel"}, r"act one after the other: aec\."),
        ({"id": "MosaicMultiGrid-C-IndAgObs-v1", "api": "aec"}, r"act at the same time: parallel\."),
        ({"id": "CartPole-v1", "wrappers": ["os.system"]}, r"env.wrappers: 'os.system' is not allowed\. Choose from"),
        (
            {"id": "CartPole-v1", "wrappers": ["gymnasium.wrappers.FlattenObservations"]},
            r"Did you mean gymnasium.wrappers.FlattenObservation\?",
        ),
        (
            {"id": "CartPole-v1", "wrappers": ["gymnasium.wrappers.TimeLimit"]},
            r"env.wrappers: gymnasium.wrappers.TimeLimit cannot be used here: TypeError",
        ),
        (
            {"id": "CartPole-v1", "wrappers": [{"name": "gymnasium.wrappers.TimeLimit", "kwargs": {"steps": 3}}]},
            r"env.wrappers: gymnasium.wrappers.TimeLimit cannot be used here: TypeError",
        ),
        ({"id": "pettingzoo/rps_v2", "wrappers": ["gymnasium.wrappers.TimeLimit"]}, r"no wrappers are allowed"),
        (7, r"env: must be"),
    ],
)
def test_a_wrong_environment_is_refused_in_words(env, message):
    with pytest.raises(ConfigError, match=message):
        make(env)


def test_a_module_in_front_of_an_id_is_imported():
    assert make("gymnasium.envs.classic_control:CartPole-v1").agents == ["agent_0"]


def test_keyword_arguments_reach_the_environment():
    game = make({"id": "FrozenLake-v1", "kwargs": {"map_name": "8x8"}})

    assert game.observation_space("agent_0").n == 64


def test_a_wrapper_gets_its_arguments():
    limit = {"name": "gymnasium.wrappers.TimeLimit", "kwargs": {"max_episode_steps": 2}}
    game = make({"id": "CartPole-v1", "wrappers": [limit]})

    assert [game.step({"agent_0": 0}).truncated["agent_0"] for _ in range(2)] == [False, True]


def test_wrappers_change_what_the_agent_sees_and_not_the_first_observation():
    plain = make("MiniGrid-Empty-5x5-v0")
    wrapped = make({"id": "MiniGrid-Empty-5x5-v0", "wrappers": ["minigrid.wrappers.ImgObsWrapper"]})

    assert wrapped.observation("agent_0").shape == (7, 7, 3)
    assert (
        plain.observation("agent_0").keys() == wrapped.first_observation().keys() == {"image", "direction", "mission"}
    )


@pytest.mark.parametrize(
    ("env", "is_parallel"),
    [
        ("pettingzoo/tictactoe_v3", False),
        ("mpe2/simple_spread_v3", True),
        ({"id": "mpe2/simple_spread_v3", "api": "aec"}, False),
        ("MosaicMultiGrid-C-1v1-IndAgObs-v1", True),
    ],
)
def test_agents_act_at_the_same_time_where_the_game_allows_it(env, is_parallel):
    game = make(env)

    assert game.turn == (game.agents if is_parallel else game.agents[:1])


def test_an_environment_that_cannot_render_plays_without_pictures(capfd):
    import gymnasium

    class Blind(gymnasium.Env):
        metadata: ClassVar = {"render_modes": []}
        observation_space = action_space = gymnasium.spaces.Discrete(2)

        def reset(self, seed=None, options=None):
            return 0, {}

        def step(self, action):
            return 0, 0.0, False, False, {}

    gymnasium.register("Blind-v0", entry_point=Blind)

    game = make("Blind-v0")

    assert (game.can_render, game.render()) == (False, None)
    assert game.step({"agent_0": 0}).rewards == {"agent_0": 0.0}
    assert "no pictures of Blind-v0: it has no render mode rgb_array." in capfd.readouterr().err


def test_a_policy_that_was_trained_on_minigrid_fits_multigrid_with_two_wrappers():
    from mosaic_sdk.operators import spaces

    minigrid = make({"id": "MiniGrid-Fetch-5x5-N2-v0", "wrappers": ["minigrid.wrappers.ImgObsWrapper"]})
    wrappers = ["mosaic_multigrid.wrappers.ImgObsWrapper", "eval_worker.wrappers.MiniGridActions"]
    multigrid = make({"id": "MosaicMultiGrid-C-IndAgObs-v1", "kwargs": {"view_size": 7}, "wrappers": wrappers})

    for agent in multigrid.agents:
        for kind in ("action_space", "observation_space"):
            ours, theirs = getattr(minigrid, kind)("agent_0"), getattr(multigrid, kind)(agent)
            assert spaces.difference(spaces.describe(ours), spaces.describe(theirs)) == ""


def test_minigrid_actions_turn_the_agents_of_multigrid():
    wrappers = ["eval_worker.wrappers.MiniGridActions"]
    game = make({"id": "MosaicMultiGrid-C-1v1-IndAgObs-v1", "wrappers": wrappers})
    before = [int(agent.state.dir) for agent in game.unwrapped.agents]

    game.step({"agent_0": 0, "agent_1": 1})

    after = [int(agent.state.dir) for agent in game.unwrapped.agents]
    assert after == [(before[0] - 1) % 4, (before[1] + 1) % 4]


def test_minigrid_actions_are_refused_elsewhere():
    with pytest.raises(ConfigError, match=r"MiniGridActions cannot be used here"):
        make({"id": "CartPole-v1", "wrappers": ["eval_worker.wrappers.MiniGridActions"]})
