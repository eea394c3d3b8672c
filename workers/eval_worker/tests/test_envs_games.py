"""Games of several agents: rewards, turns, masks, and agents that leave."""

import random
from itertools import pairwise

import pytest
from hosting import Asked
from mosaic_sdk.operators import spaces

AEC = ["pettingzoo/tictactoe_v3", "pettingzoo/connect_four_v3", "pettingzoo/leduc_holdem_v4", "pettingzoo/hanabi_v5"]


def returns_by_the_book(game, seed, rng):
    """What each agent gets when one plays with `last()`, as PettingZoo's documentation does."""
    env, totals = game.env, dict.fromkeys(game.agents, 0.0)
    env.reset(seed=seed)
    for agent in env.agent_iter():
        observation, reward, terminated, truncated, info = env.last()
        totals[agent] += reward
        mask = observation["action_mask"] if isinstance(observation, dict) else info.get("action_mask")
        space = spaces.describe(env.action_space(agent))
        env.step(None if terminated or truncated else spaces.sample(space, rng, list(mask)))
    return totals


@pytest.mark.parametrize("env", AEC)
def test_the_rewards_of_a_turn_based_game_add_up_to_those_of_the_library(env):
    host = Asked(env)
    host.reset()

    expected = returns_by_the_book(host.host.stage.game, 5, random.Random(2))
    answers = host.play(host.reset(5), random.Random(2))

    totals = {agent: sum(answer["rewards"].get(agent, 0.0) for answer in answers) for agent in expected}
    assert totals == pytest.approx(expected)
    assert answers[-1]["done"]


def test_one_agent_acts_at_a_time_in_a_turn_based_game():
    host = Asked("pettingzoo/connect_four_v3")

    ready = host.reset()
    turns = [ready["turn"], *(answer["turn"] for answer in host.play(ready, steps=3))]

    assert turns == [["player_0"], ["player_1"], ["player_0"], ["player_1"]]


def test_a_won_game_names_its_winner():
    host = Asked("pettingzoo/tictactoe_v3")
    host.reset(views=["text"])

    for player_1, player_2 in [(0, 3), (1, 4)]:
        host.step(player_1=player_1)
        host.step(player_2=player_2)
    last = host.step(player_1=2)

    assert (last["done"], last["winners"]) == (True, ["player_1"])
    assert last["rewards"] == {"player_1": 1.0, "player_2": -1.0}
    assert last["text"] == "X O .\nX O .\nX . ."


def test_a_draw_has_no_winner():
    host = Asked("pettingzoo/tictactoe_v3")
    host.reset()

    answers = [
        host.step(**{f"player_{1 + turn % 2}": square}) for turn, square in enumerate([0, 1, 2, 4, 3, 5, 7, 6, 8])
    ]

    assert (answers[-1]["done"], answers[-1]["winners"]) == (True, [])


def test_a_mask_is_a_field_of_its_own_and_not_part_of_the_observation():
    host = Asked("pettingzoo/connect_four_v3")

    ready = host.reset()

    assert ready["spaces"]["player_0"]["observation"]["shape"] == [6, 7, 2]
    assert len(ready["views"]["player_0"]["observation"]) == 6
    assert ready["views"]["player_0"]["action_mask"] == [1] * 7


def test_all_agents_of_a_parallel_game_act_and_end_together():
    host = Asked({"id": "mpe2/simple_spread_v3", "kwargs": {"max_cycles": 4}})

    answers = host.play(host.reset())

    assert [len(answer["turn"]) for answer in answers] == [3, 3, 3, 0]
    assert answers[-1]["truncated"] == dict.fromkeys(["agent_0", "agent_1", "agent_2"], True)


@pytest.mark.parametrize("api", ["parallel", "aec"])
def test_agents_that_die_leave_the_game_and_the_others_go_on(api):
    # Zombies in great numbers: the first agent dies long before the last one.
    host = Asked(
        {"id": "pettingzoo/knights_archers_zombies_v11", "kwargs": {"spawn_delay": 1, "max_zombies": 60}, "api": api}
    )

    ready = host.reset(1)
    answers = host.play(ready, random.Random(1))

    alive = [set(ready["agents"]), *(set(answer["rewards"]) for answer in answers)]
    dead = [agent for answer in answers for agent, is_dead in answer["terminated"].items() if is_dead]
    assert answers[-1]["done"]
    assert sorted(dead) == sorted(ready["agents"])  # each is told once
    assert all(after <= before for before, after in pairwise(alive))
    assert any(1 <= len(agents) < len(ready["agents"]) for agents in alive)


def test_multigrid_has_named_agents_with_observations_of_their_own():
    host = Asked("MosaicMultiGrid-C-IndAgObs-v1")

    ready = host.reset()
    step = host.step(agent_0=0, agent_1=3, agent_2=1)

    assert (ready["agents"], ready["multi_agent"]) == (["agent_0", "agent_1", "agent_2"], True)
    assert ready["views"]["agent_0"]["observation"]["mission"] == "maximize reward"
    assert ready["views"]["agent_0"]["observation"] != ready["views"]["agent_1"]["observation"]
    assert step["rewards"] == {"agent_0": 0.0, "agent_1": 0.0, "agent_2": 0.0}
    assert ready["first_observation"] == host.reset()["first_observation"] != host.reset(4)["first_observation"]


def test_a_multigrid_with_one_agent_is_a_single_agent_environment():
    ready = Asked("MosaicMultiGrid-S-G-1v0-v1").reset()

    assert (ready["agents"], ready["multi_agent"]) == (["agent_0"], False)
