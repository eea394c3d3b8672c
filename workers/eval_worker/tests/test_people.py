"""People among the lanes: they are asked with a line, and answer with a command."""

import pytest

MINIGRID = "MiniGrid-Empty-5x5-v0"


@pytest.fixture
def alone(evaluate):
    """A person alone in a small grid world."""
    return evaluate({"env": MINIGRID, "operators": {"me": "human"}, "seeds": [0, 1], "max_steps": 3})


def test_a_person_plays_by_value_and_by_name(alone):
    run = alone
    asked = run.until("action_requested")
    names = [action["name"] for action in asked["actions"]]

    wrong = run.command("act", lane=0, request=asked["request"] + 5, action=2)
    unknown = run.command("act", lane=0, request=asked["request"], action="fly")
    by_value = run.command("act", lane=0, request=asked["request"], action=asked["actions"][2]["value"])
    second = run.until("action_requested")
    by_name = run.command("act", lane="me", request=second["request"], action=names[0])
    late = run.command("act", lane=0, request=asked["request"], action=0)

    assert (asked["operator"], asked["step_index"], asked["deadline_s"]) == ("me", 0, None)
    assert asked["text"]
    assert not wrong["ok"]
    assert wrong["message"].startswith(f"request: {asked['request'] + 5} is not what lane 0 waits for now.")
    assert unknown["message"].startswith("action: 'fly' is not an action of agent_0 now. Choose from: ")
    assert (by_value["ok"], by_value["request"]) == (True, asked["request"])
    assert by_name["ok"]
    assert not late["ok"]
    steps = run.steps()
    assert [(step["action"], step["action_name"]) for step in steps] == [(2, names[2]), (0, names[0])][: len(steps)]
    assert steps[0]["view"]


def test_a_person_who_walks_away_loses_the_episode_and_nobody_else_does(evaluate):
    operators = {"me": {"kind": "human", "time_limit_s": 0.3}, "chance": "random"}
    run = evaluate({"env": MINIGRID, "operators": operators, "seeds": [0, 1], "max_steps": 3})

    assert run.finish() == 0

    assert [one["reason"] for one in run.events("lane_failed")] == ["operator me: no action in 0.3 s"] * 2
    assert [row["steps"] for row in run.episodes("chance")] == [3, 3]
    assert not any(failure.get("given_up") for failure in run.events("lane_failed"))


def test_without_a_limit_it_waits_and_heartbeats_go_on(evaluate):
    run = evaluate({"env": MINIGRID, "operators": {"me": "human"}, "seeds": [0]}, heartbeat_s=0.2)
    run.until("action_requested")

    run.until("heartbeat")
    run.until("heartbeat")

    assert not run.steps()
    assert run.command("finish")["ok"]
    assert run.finish() == 0


def test_without_an_input_nobody_can_answer(evaluate):
    run = evaluate({"env": MINIGRID, "operators": {"me": "human", "chance": "random"}, "seeds": [0], "max_steps": 2})

    run.process.stdin.close()

    assert run.finish() == 0
    assert run.events("lane_failed")[0]["reason"] == (
        "operator me: nobody can answer, because the evaluation has no input"
    )


def test_two_people_play_one_game(evaluate):
    lanes = [{"name": "duel", "agents": {"player_0": "ann", "player_1": "bob"}}]
    script = {"env": "pettingzoo/connect_four_v3", "operators": {"ann": "human", "bob": "human"}, "lanes": lanes}
    run = evaluate({**script, "seeds": [0]})

    for column in (0, 1, 0, 1, 0, 1, 0):
        asked = run.until("action_requested")
        assert run.command("act", lane=0, agent_id=asked["agent_id"], request=asked["request"], action=column)["ok"]

    assert run.finish() == 0
    assert {row["agent_id"]: row["total_reward"] for row in run.episodes()} == {"player_0": 1.0, "player_1": -1.0}
    assert {row["agent_id"]: row["operator"] for row in run.episodes()} == {"player_0": "ann", "player_1": "bob"}


def test_a_persons_actions_are_not_asked_for_again(evaluate):
    script = {"env": MINIGRID, "operators": {"me": "human"}, "seeds": [0], "max_steps": 3, "record": []}
    killed = evaluate(script)
    for action in (2, 1):
        asked = killed.until("action_requested")
        killed.command("act", lane=0, request=asked["request"], action=action)
    killed.until("action_requested")
    killed.kill()

    resumed = evaluate(script, resume_from=killed.journal)
    asked = resumed.until("action_requested")
    resumed.command("act", lane=0, request=asked["request"], action=0)

    assert resumed.finish() == 0
    assert asked["step_index"] == 2
    assert [step["action"] for step in resumed.steps()] == [2, 1, 0]


def test_a_manual_step_is_answered_before_the_person_acts(evaluate):
    run = evaluate({"env": MINIGRID, "operators": {"me": "human", "chance": "random"}, "seeds": [0]}, mode="manual")
    run.command("start")

    stepped = run.command("step")
    asked = run.events("action_requested")[-1]
    again = run.command("step")
    acted = run.command("act", lane=0, request=asked["request"], action=2)
    run.until("step", env_index=1)

    assert (stepped["ok"], stepped["message"]) == (True, "me is asked for an action.")
    assert again["message"] == "step: an earlier step is not over; it waits for a person's action."
    assert acted["ok"]
    run.command("step")
    reset = run.command("reset")
    assert reset["ok"]
    assert [one["seed"] for one in run.events("lane_ready")] == [0, 0, 0, 0]


def test_a_reset_that_is_refused_takes_no_question_back(evaluate):
    run = evaluate({"env": MINIGRID, "operators": {"me": "human"}, "seeds": [0]}, mode="manual")
    run.command("start")
    run.command("step")
    asked = run.events("action_requested")[-1]

    refused = run.command("reset", seed=-1)
    acted = run.command("act", lane=0, request=asked["request"], action=2)
    run.until("step", env_index=0)

    assert (refused["ok"], acted["ok"]) == (False, True)
    assert [step["action"] for step in run.steps()] == [2]


def test_what_a_person_did_before_a_reset_is_not_done_again_after_a_resume(evaluate):
    script = {"env": MINIGRID, "operators": {"me": "human"}, "seeds": [0, 1], "record": []}
    killed = evaluate(script, mode="manual")
    killed.command("start")
    act(killed, 2)
    killed.command("reset", seed=5)
    act(killed, 1)
    killed.command("step")
    killed.kill()

    resumed = evaluate(script, mode="manual", resume_from=killed.journal)
    resumed.command("start")
    resumed.command("step", count=2)
    continued = resumed.events("action_requested")[-1]
    resumed.command("reset", seed=6)
    resumed.command("step")
    anew = resumed.events("action_requested")[-1]

    assert [ready["seed"] for ready in resumed.events("lane_ready")] == [5, 6], "it goes on where it stopped"
    assert (continued["episode_index"], continued["step_index"]) == (2, 1)
    assert (anew["episode_index"], anew["step_index"]) == (3, 0)


def act(run, action):
    run.command("step")
    asked = run.events("action_requested")[-1]
    assert run.command("act", lane=0, request=asked["request"], action=action)["ok"]
    run.until("step", env_index=0)
