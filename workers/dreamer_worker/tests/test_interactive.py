"""--interactive: an env and an agent over pipes, moved by commands; and the agent alone, for somebody else's env."""

import json
import subprocess
import sys

import numpy as np
import pytest
from dreamer_worker.agent.spaces import Space
from dreamer_worker.config import DreamerConfig
from dreamer_worker.interactive import CommandError, Session, as_action, as_observation

CORNER = [1.0] + [0.0] * 15


@pytest.fixture
def session(tmp_path):
    config = {"run_id": "TEST", "env": "dummy_grid", "random_agent": True, "logdir": str(tmp_path)}
    session = Session(DreamerConfig.from_dict(config).resolved())
    yield session
    session.close()


def test_an_episode_is_played_step_by_step_to_its_end(session):
    [ready] = session.answer({"cmd": "reset", "seed": 3})
    assert (ready["type"], ready["env"], ready["seed"], ready["episode_index"]) == ("ready", "dummy_grid", 3, 0)

    told = []
    while not told or told[-1]["type"] == "step":
        told += session.answer({"cmd": "step"})

    *steps, done = told
    assert [step["step_index"] for step in steps] == list(range(len(steps)))
    assert steps[-1]["terminated"] or steps[-1]["truncated"]
    assert done["type"] == "episode_done"
    assert (done["steps"], done["total_reward"]) == (len(steps), sum(step["reward"] for step in steps))
    with pytest.raises(CommandError, match="Send reset first"):
        session.answer({"cmd": "step"})


def test_an_action_of_the_users_is_done_and_told(session):
    session.answer({"cmd": "reset"})

    moves = [0, 0, 0, 1, 1, 1]  # from corner to corner
    told = [message for move in moves for message in session.answer({"cmd": "step", "action": move})]

    assert [message["action"] for message in told[:-1]] == moves
    assert told[-1] == {"type": "episode_done", "episode_index": 0, "total_reward": 1.0, "steps": 6}


def test_the_agent_alone_chooses_for_an_env_that_somebody_else_plays(session):
    [ready] = session.answer({"cmd": "init_agent", "agent_id": "red"})
    assert (ready["type"], ready["agent_id"]) == ("agent_ready", "red")

    for observation in (CORNER, {"place": CORNER}):
        [chosen] = session.answer({"cmd": "select_action", "observation": observation, "agent_id": "red"})
        assert (chosen["type"], chosen["agent_id"]) == ("action_selected", "red")
        assert chosen["action"] in range(4)


def test_the_agent_remembers_an_episode_and_begins_anew_with_the_next(session):
    session.answer({"cmd": "init_agent"})
    shown = {"cmd": "select_action", "observation": CORNER}
    asked = []
    for command in (shown, shown, {**shown, "is_first": True}, shown):
        session.answer(command)
        asked.append(int(session._policy._carry["asked"][0]))

    session.answer({"cmd": "init_agent"})
    session.answer(shown)

    assert asked == [1, 2, 1, 2]
    assert int(session._policy._carry["asked"][0]) == 1


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (4, "action: it must lie between 0 and 3, and 4 does not"),
        (-1, "between 0 and 3"),
        ("left", "action: it must be a number"),
        ([0, 1], "action: it must be a number"),
        (float("nan"), "between 0 and 3"),
        (1.5, "action: it must be whole"),
        ({"move": 1}, "action: it must name action"),
    ],
)
def test_an_action_that_the_env_does_not_have_is_refused_and_the_episode_goes_on(session, given, words):
    session.answer({"cmd": "reset"})

    with pytest.raises(CommandError, match=words):
        session.answer({"cmd": "step", "action": given})

    assert session.answer({"cmd": "step", "action": 0})[0]["step_index"] == 0


def test_actions_and_observations_of_several_parts_go_by_name():
    spaces = {"move": Space("int32", (), 0, 3), "push": Space("float32", (2,), -1, 1)}

    action = as_action({"push": [0.5, -1], "move": 2}, spaces)
    seen = as_observation({"image": np.zeros((2, 2, 3)).tolist(), "more": 1}, {"image": Space("uint8", (2, 2, 3))})

    assert (int(action["move"]), action["push"].tolist(), action["push"].dtype.name) == (2, [0.5, -1.0], "float32")
    assert (list(seen), seen["image"].dtype.name, seen["image"].shape) == (["image"], "uint8", (2, 2, 3))
    with pytest.raises(CommandError, match="must name move, push"):
        as_action({"move": 1}, spaces)
    with pytest.raises(CommandError, match=r"image is missing\. Send an object with: image"):
        as_observation({"picture": 1}, {"image": Space("uint8", (2, 2, 3))})


def test_over_pipes_every_line_is_answered_and_what_cannot_be_done_is_said(run_of):
    run = run_of()
    commands = [
        '{"cmd": "ping"}',
        "no json",
        "7",
        '{"cmd": "dance"}',
        '{"cmd": "step"}',
        '{"cmd": "reset", "seed": "x"}',
        '{"cmd": "reset", "seed": 1}',
        '{"cmd": "stop"}',
    ]
    command = [sys.executable, "-m", "dreamer_worker.cli", "--config", str(run.config), "--interactive"]

    told = subprocess.run(
        command, input="\n".join(commands) + "\n", capture_output=True, text=True, timeout=run.limit_s
    )

    answers = [json.loads(line) for line in told.stdout.splitlines()]
    assert told.returncode == 0, told.stderr
    assert [answer["type"] for answer in answers] == ["pong", *["error"] * 5, "ready", "stopped"]
    assert "There is no command 'dance'. There are: reset, step" in answers[3]["message"]


def test_a_config_of_no_use_is_refused_in_one_sentence(run_of):
    run = run_of(size="13m")

    assert run.start("--interactive").wait() == 2

    assert run.words == "agent: There is no size '13m'. Sizes: debug, 1m, 12m, 25m, 50m, 100m, 200m, 400m.\n"
