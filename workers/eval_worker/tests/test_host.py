"""The env host: commands in, answers out, and what happens when something is wrong."""

import json

import pytest
from hosting import Asked, open_host, talk
from mosaic_sdk.config import ConfigError

CARTPOLE, TICTACTOE = "CartPole-v1", "pettingzoo/tictactoe_v3"


def test_reset_describes_the_environment_and_the_first_view():
    ready = Asked(CARTPOLE).reset()

    assert (ready["type"], ready["env_id"], ready["seed"]) == ("ready", CARTPOLE, 3)
    assert (ready["agents"], ready["turn"], ready["multi_agent"]) == (["agent_0"], ["agent_0"], False)
    assert ready["spaces"]["agent_0"]["action"] == {"type": "Discrete", "n": 2, "start": 0}
    assert ready["spaces"]["agent_0"]["observation"]["shape"] == [4]
    assert [action["name"] for action in ready["actions"]["agent_0"]] == ["left", "right"]
    assert ready["views"]["agent_0"].keys() == {"observation", "info", "action_mask"}
    assert len(ready["first_observation"]) == 16


def test_a_step_tells_rewards_and_ends_by_agent():
    host = Asked(CARTPOLE)
    host.reset()

    step = host.step(agent_0=1)

    assert (step["type"], step["rewards"], step["turn"]) == ("step", {"agent_0": 1.0}, ["agent_0"])
    assert (step["terminated"], step["truncated"]) == ({"agent_0": False}, {"agent_0": False})
    assert (step["done"], step["success"]) == (False, None)


def test_the_last_step_has_the_final_view_and_no_turn():
    host = Asked(CARTPOLE)

    last = host.play(host.reset())[-1]

    assert (last["done"], last["turn"], last["terminated"]) == (True, [], {"agent_0": True})
    assert len(last["views"]["agent_0"]["observation"]) == 4


def test_the_same_seed_gives_the_same_episode():
    host = Asked(CARTPOLE)
    first, again, other = host.reset(3), host.reset(3), host.reset(4)

    assert first == again
    assert first["first_observation"] != other["first_observation"]
    assert host.play(host.reset(3)) == host.play(host.reset(3))


def test_describe_needs_no_reset():
    described = Asked(TICTACTOE).ask("describe")

    assert described["agents"] == ["player_1", "player_2"]
    assert (described["multi_agent"], described["can_render"]) == (True, True)
    assert described["spaces"]["player_1"]["action"]["n"] == 9


def test_text_and_image_are_sent_only_to_those_who_asked():
    host = Asked("mpe2/simple_spread_v3")

    views = host.reset(views={"agent_0": ["text"], "agent_1": ["image"]})["views"]

    assert "text" in views["agent_0"]
    assert "image" not in views["agent_0"]
    assert views["agent_1"]["image"].startswith("iVBORw0KGgo")  # the first bytes of a PNG
    assert views["agent_2"].keys() == {"observation", "info", "action_mask"}


@pytest.mark.parametrize(
    ("actions", "message"),
    [
        ({"agent_0": 7}, "actions.agent_0:"),
        ({"agent_0": "left"}, "actions.agent_0:"),
        ({"agent_0": None}, "actions.agent_0:"),
        ({}, "actions: must have one for agent_0, not for no one."),
        ({"agent_1": 0}, "actions: must have one for agent_0, not for agent_1."),
        ([1], "actions: must be an object"),
    ],
)
def test_an_illegal_action_is_refused_and_the_episode_continues(actions, message):
    host = Asked(CARTPOLE)
    host.reset()

    refused = host.ask("step", actions=actions)

    assert refused["type"] == "error"
    assert refused["message"].startswith(message)
    assert "fatal" not in refused
    assert host.step(agent_0=1)["type"] == "step"


def test_an_action_that_the_mask_forbids_is_refused_before_the_game_sees_it():
    host = Asked(TICTACTOE)
    host.reset()
    host.step(player_1=4)

    refused = host.step(player_2=4)

    assert refused["type"] == "error"
    assert host.step(player_2=0)["rewards"] == {"player_1": 0.0, "player_2": 0.0}


def test_gymnasiums_masks_are_only_a_hint():
    host = Asked("Taxi-v4")
    view = host.reset()["views"]["agent_0"]

    hint = view["info"]["action_mask"]

    assert view["action_mask"] is None
    assert host.step(agent_0=hint.index(0))["type"] == "step"


def test_a_step_without_an_episode_is_refused():
    host = Asked(CARTPOLE)

    assert "Send reset first" in host.step(agent_0=1)["message"]
    host.play(host.reset())
    assert "Send reset first" in host.step(agent_0=1)["message"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"views": ["smell"]}, "options.views: must be a list of text and image, not ['smell']."),
        ({"views": {"me": ["text"]}}, "options.views: there is no agent 'me'. Choose from: agent_0."),
        ({"record": {"agent_1": "me"}}, "options.record: there is no agent 'agent_1'. Choose from: agent_0."),
        ({"record": 3}, "options.record: must be an object"),
        ({"episode_index": -1}, "options.episode_index: must be an integer from 0, not -1."),
        (7, "options: must be an object, not 7."),
    ],
)
def test_bad_options_are_refused_in_words(options, message):
    assert Asked(CARTPOLE).ask("reset", seed=1, options=options)["message"].startswith(message)


def test_a_failure_of_the_environment_loses_the_episode_and_not_the_host():
    host = Asked(CARTPOLE)
    host.reset()
    host.host.stage.game.unwrapped.step = lambda action: 1 / 0

    failed = host.step(agent_0=1)

    assert (failed["type"], failed["fatal"]) == ("error", True)
    assert "ZeroDivisionError" in failed["message"]
    assert "Send reset first" in host.step(agent_0=1)["message"]
    assert host.reset()["type"] == "ready"


def test_an_unknown_environment_ends_the_host():
    with pytest.raises(ConfigError, match=r"There is no environment 'CartPol-v1'. Did you mean CartPole-v1"):
        Asked("CartPol-v1").reset()


def test_an_unknown_command_is_answered_with_those_that_exist():
    assert Asked(CARTPOLE).ask("jump")["message"].endswith("Choose from: describe, end, ping, reset, step, stop.")


def test_over_pipes_stdout_holds_answers_only(tmp_path):
    process = open_host(tmp_path, "ALE/Pong-v5")  # ALE prints a banner

    commands = [
        {"cmd": "ping"},
        {"cmd": "reset", "seed": 1},
        {"cmd": "step", "actions": {"agent_0": 0}},
        {"cmd": "stop"},
    ]
    answers, _, code = talk(process, *commands)

    assert [answer["type"] for answer in answers] == ["pong", "ready", "step", "stopped"]
    assert answers[1]["views"]["agent_0"]["observation"]["__array__"]["shape"] == [210, 160, 3]
    assert code == 0


def test_over_pipes_an_unknown_environment_is_an_answer_and_exit_code_2(tmp_path):
    answers, err, code = talk(open_host(tmp_path, "CartPol-v1"), {"cmd": "reset"})

    assert answers[0]["message"].startswith("There is no environment 'CartPol-v1'.")
    assert "Traceback" not in err
    assert code == 2


def test_a_config_that_is_not_json_is_refused(tmp_path, capsys):
    from eval_worker.host import main

    (tmp_path / "host.json").write_text("{")

    assert main([str(tmp_path / "host.json")]) == 2
    assert "cannot be read" in capsys.readouterr().err


def test_answers_are_one_line_of_json_each():
    host = Asked("MiniGrid-Empty-5x5-v0")

    assert "\n" not in json.dumps(host.reset(views=["text"]))
