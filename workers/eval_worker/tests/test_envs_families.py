"""What a person or an LLM is told: names, keys, texts, success."""

import pytest
from hosting import Asked


def text_of(env, seed=3):
    ready = Asked(env).reset(seed, views=["text"])
    return ready["views"][ready["turn"][0]]["text"]


def names_of(env):
    ready = Asked(env).reset()
    return [action["name"] for action in ready["actions"][ready["turn"][0]]]


MOVES = ["left", "right", "forward", "pickup", "drop", "toggle", "done"]


@pytest.mark.parametrize(
    ("env", "names"),
    [
        ("MiniGrid-Empty-5x5-v0", MOVES),
        ("MosaicMultiGrid-C-1v1-IndAgObs-v1", ["noop", *MOVES]),
        ("FrozenLake-v1", ["left", "down", "right", "up"]),
        ("LunarLander-v3", ["noop", "left engine", "main engine", "right engine"]),
        ("ALE/Pong-v5", ["noop", "fire", "right", "left", "rightfire", "leftfire"]),
        ("mpe2/simple_spread_v3", ["noop", "left", "right", "down", "up"]),
        ("pettingzoo/leduc_holdem_v4", ["call", "raise", "fold", "check"]),
        ("pettingzoo/rps_v2", ["rock", "paper", "scissors"]),
    ],
)
def test_actions_have_names(env, names):
    assert names_of(env) == names


def test_actions_have_keys_and_no_two_the_same():
    for env in ("MiniGrid-Empty-5x5-v0", "Taxi-v4", "ALE/Boxing-v5", "pettingzoo/hanabi_v5"):
        ready = Asked(env).reset()
        keys = [key for action in ready["actions"][ready["turn"][0]] for key in action["keys"]]
        assert len(keys) == len(set(keys)), env
        assert "q" not in keys


def test_continuous_actions_have_no_list():
    assert Asked("Pendulum-v1").reset()["actions"] == {"agent_0": None}


def test_minigrid_tells_the_mission_the_direction_and_what_is_in_view():
    text = text_of("MiniGrid-Empty-5x5-v0")

    assert text.startswith("Mission: get to the green goal square\nYou face east and carry nothing.\n")
    assert "Ahead of you: free floor.\nYou see: a green goal 2 ahead and 2 to the right.\n" in text
    assert text.endswith("# # # . . G #\n# # # . . . #\n# # # ^ . . #")


def test_minigrid_tells_only_what_the_agent_sees():
    """The observation of an agent in front of a closed door holds nothing behind it."""
    text = text_of("MiniGrid-DoorKey-8x8-v0")

    assert "goal" not in text.partition("Mission")[2].partition("\n")[2]
    assert "door" in text


def test_what_a_minigrid_agent_carries_is_told():
    host = Asked("MiniGrid-DoorKey-5x5-v0")
    host.reset(3, views=["text"])  # the key is on the right of the agent

    host.step(agent_0=1)
    text = host.step(agent_0=3)["views"]["agent_0"]["text"]

    assert "carry a yellow key" in text


def test_a_multigrid_view_has_its_left_and_right_where_the_game_has_them():
    """Turning towards a ball that is said to be on one side brings it ahead, and there it can be picked up."""
    host, found = Asked({"id": "MosaicMultiGrid-C-IndAgObs-v1", "kwargs": {"view_size": 7}}), set()

    for seed in range(60):
        text = host.reset(seed, views=["text"])["views"]["agent_0"]["text"]
        for side, turn in (("left", 1), ("right", 2)):
            if f"a red ball 1 to the {side}" in text and side not in found:
                found.add(side)
                after = host.step(agent_0=turn, agent_1=0, agent_2=0)["views"]["agent_0"]["text"]
                assert "Ahead of you: a red ball." in after
                assert host.step(agent_0=4, agent_1=0, agent_2=0)["rewards"]["agent_0"] > 0
                break

    assert found == {"left", "right"}


@pytest.mark.parametrize(("actions", "is_success"), [([2, 2, 1, 2, 2], True)])
def test_reaching_the_goal_is_a_success_in_minigrid(actions, is_success):
    host = Asked("MiniGrid-Empty-5x5-v0")
    host.reset()

    last = [host.step(agent_0=action) for action in actions][-1]

    assert (last["done"], last["success"]) == (True, is_success)


def test_a_time_limit_is_no_success_in_minigrid():
    host = Asked({"id": "MiniGrid-Empty-5x5-v0", "kwargs": {"max_steps": 2}})
    host.reset()

    assert [host.step(agent_0=6)["success"] for _ in range(2)] == [None, False]


def test_success_is_null_where_the_environment_has_no_such_notion():
    host = Asked("CartPole-v1")

    assert host.play(host.reset())[-1]["success"] is None


@pytest.mark.parametrize(
    ("env", "part"),
    [
        ("FrozenLake-v1", "[S] F  F  F "),
        ("CliffWalking-v1", "[S] C  C  C "),
        ("Taxi-v4", "The passenger is waiting at R (red) and wants to go to Y (yellow)."),
        ("Blackjack-v1", "The dealer shows"),
        ("CartPole-v1", "pole angle (rad): 0.03013"),
        ("pettingzoo/connect_four_v3", "You are player_0, playing X.\n1 2 3 4 5 6 7\n"),
        ("pettingzoo/leduc_holdem_v4", "Your cards: H"),
        ("pettingzoo/hanabi_v5", "Fireworks: R0 Y0 G0 W0 B0"),
        ("MosaicMultiGrid-C-1v1-IndAgObs-v1", "You are agent_0 of the green team."),
        ("mpe2/simple_spread_v3", "You are agent_0. You observe (velocity, position"),
        ("Pendulum-v1", "angular velocity: "),
        ("ALE/Pong-v5", "The screen is an array of 210 × 160 × 3 numbers."),
    ],
)
def test_texts(env, part):
    assert part in text_of(env)


def test_chess_lists_its_legal_moves_with_their_names():
    host = Asked("pettingzoo/chess_v6")

    view = host.reset(views=["text"])["views"]["player_0"]
    moves = {action["name"]: action["value"] for action in view["actions"]}

    assert len(moves) == 20
    assert sum(view["action_mask"]) == 20
    assert "FEN: rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1" in view["text"]
    assert view["text"].endswith(" ".join(moves))
    after = host.step(player_0=moves["e2e4"])["views"]["player_1"]
    assert "/4P3/" in after["text"]
    assert "e7e5" in {action["name"] for action in after["actions"]}


def test_go_names_its_points():
    view = Asked({"id": "pettingzoo/go_v5", "kwargs": {"board_size": 5}}).reset()["views"]["black_0"]

    assert [view["actions"][place]["name"] for place in (0, 4, 24, 25)] == ["A5", "E5", "E1", "pass"]


def test_the_scene_of_multigrid_shows_all_agents():
    scene = Asked("MosaicMultiGrid-S-2v2-IndAgObs-v1").reset(views=["text"])["text"]

    assert sum(scene.count(arrow) for arrow in "<>^v") == 4


def test_an_unknown_environment_is_told_in_numbers():
    import numpy as np
    from eval_worker.envs.families.family import in_words

    assert in_words({"at": np.array([1.0, 2.5]), "n": 3}) == "at: 1 2.5\nn: 3"
    assert in_words(np.zeros((9, 9))) == "an array of 9 × 9 numbers"
