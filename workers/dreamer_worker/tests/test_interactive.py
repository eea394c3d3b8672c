"""--interactive: an env and an agent over pipes, driven by commands; and the agent alone, for an env elsewhere."""

import json
import subprocess
import sys

import gymnasium
import numpy as np
import pytest
from dreamer_worker.agent.spaces import Space
from dreamer_worker.config import DreamerConfig
from dreamer_worker.interactive import DreamerPlayer, as_action, as_observation
from mosaic_sdk.interactive import CommandError, Session
from mosaic_sdk.operators import spaces
from mosaic_sdk.operators.arrays import encode
from mosaic_sdk.operators.digest import observation_digest

CORNER = [1.0] + [0.0] * 15


@pytest.fixture
def session(tmp_path):
    config = {"run_id": "TEST", "env": "dummy_grid", "random_agent": True, "logdir": str(tmp_path)}
    resolved = DreamerConfig.from_dict(config).resolved()
    session = Session(lambda: DreamerPlayer(resolved), run_id="TEST")
    yield session
    session.close()


def send(session, **command):
    return session.answer(json.dumps(command))


def test_an_episode_is_played_step_by_step_to_its_end(session):
    [ready] = send(session, cmd="reset", seed=3)
    assert (ready["type"], ready["env_id"], ready["seed"], ready["episode_index"]) == ("ready", "dummy_grid", 3, 0)

    answers = []
    while not answers or answers[-1]["type"] == "step":
        answers += send(session, cmd="step")

    *steps, done = answers
    assert [step["step_index"] for step in steps] == list(range(len(steps)))
    assert steps[-1]["terminated"] or steps[-1]["truncated"]
    assert done["type"] == "episode_done"
    assert (done["num_steps"], done["total_reward"]) == (len(steps), sum(step["reward"] for step in steps))
    assert (done["terminated"], done["truncated"]) == (steps[-1]["terminated"], steps[-1]["truncated"])
    [refused] = send(session, cmd="step")
    assert "Send reset first" in refused["message"]


def test_an_action_of_the_users_is_taken_and_reported(session):
    send(session, cmd="reset")

    moves = [0, 0, 0, 1, 1, 1]  # from corner to corner
    answers = [message for move in moves for message in send(session, cmd="step", action=move)]

    assert [message["action"] for message in answers[:-1]] == moves
    done = {"type": "episode_done", "run_id": "TEST", "episode_index": 0, "total_reward": 1.0, "num_steps": 6}
    assert answers[-1] == {**done, "terminated": True, "truncated": False}


def test_the_agent_alone_chooses_for_an_env_elsewhere(session):
    [ready] = send(session, cmd="init_agent", agent_id="red")
    assert (ready["type"], ready["agent_id"]) == ("agent_ready", "red")

    for observation in (CORNER, {"place": CORNER}):
        [chosen] = send(session, cmd="select_action", observation=observation, agent_id="red")
        assert (chosen["type"], chosen["agent_id"]) == ("action_selected", "red")
        assert chosen["action"] in range(4)


def asked(session, agent_id=None):
    """How many steps of its episode an agent remembers."""
    return int(session.player._policies[agent_id]._carry["asked"][0])


def test_the_agent_remembers_an_episode_and_starts_over_with_the_next(session):
    send(session, cmd="init_agent")
    remembered = []
    for more in ({}, {}, {"is_first": True}, {}):
        send(session, cmd="select_action", observation=CORNER, **more)
        remembered.append(asked(session))

    send(session, cmd="init_agent")
    send(session, cmd="select_action", observation=CORNER)

    assert remembered == [1, 2, 1, 2]
    assert asked(session) == 1


def test_two_agents_remember_an_episode_each(session):
    for agent_id in ("red", "blue", "red", "red"):
        send(session, cmd="select_action", observation=CORNER, agent_id=agent_id)

    assert (asked(session, "red"), asked(session, "blue")) == (3, 1)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (4, "action: it must be between 0 and 3, not 4"),
        (-1, "between 0 and 3"),
        ("left", "action: it must be a number"),
        ([0, 1], "action: it must be a number"),
        (float("nan"), "between 0 and 3"),
        (1.5, "action: it must be a whole number"),
        ({"move": 1}, "action: it must name action"),
    ],
)
def test_an_action_that_the_env_does_not_have_is_refused_and_the_episode_goes_on(session, given, words):
    send(session, cmd="reset")

    [refused] = send(session, cmd="step", action=given)

    assert words in refused["message"]
    assert send(session, cmd="step", action=0)[0]["step_index"] == 0


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


def session_of(tmp_path, env, **settings):
    config = {"run_id": "TEST", "env": env, "random_agent": True, "logdir": str(tmp_path), **settings}
    resolved = DreamerConfig.from_dict(config).resolved()
    return Session(lambda: DreamerPlayer(resolved), run_id="TEST")


def agent_of(env, **more):
    described = {name: spaces.describe(getattr(env, name)) for name in ("action_space", "observation_space")}
    return {"agent_id": "agent_0", "seed": 3, **described, **more}


@pytest.mark.parametrize("pixels", [True, False])
def test_ready_has_the_digest_of_the_unwrapped_envs_first_observation_on_that_seed(tmp_path, pixels):
    import minigrid  # noqa: F401  registers its envs

    session = session_of(tmp_path, "minigrid_MiniGrid-DoorKey-5x5-v0", env_options={"pixels": pixels})
    bare = gymnasium.make("MiniGrid-DoorKey-5x5-v0").unwrapped

    digests = [send(session, cmd="reset", seed=seed)[0]["first_observation"] for seed in (3, 4)]

    assert digests == [observation_digest(bare.reset(seed=seed)[0]) for seed in (3, 4)]
    session.close()


def test_a_hosted_env_gets_its_own_kind_of_action(tmp_path):
    session = session_of(tmp_path, "gym_Pendulum-v1")
    host = gymnasium.make("Pendulum-v1")
    observation, _ = host.reset(seed=3)

    assert send(session, cmd="init_agent", **agent_of(host))[0]["type"] == "agent_ready"
    actions = []
    for _ in range(40):
        [chosen] = send(session, cmd="select_action", agent_id="agent_0", observation=encode(observation))
        actions += chosen["action"]
        observation, *_ = host.step(np.asarray(chosen["action"], np.float32))

    assert max(map(abs, actions)) > 1  # the agent's are within -1 and 1, the env's within -2 and 2
    session.close()


def test_an_agent_with_other_spaces_is_refused_in_words(tmp_path):
    session = session_of(tmp_path, "gym_CartPole-v1")

    [refused] = send(session, cmd="init_agent", **agent_of(gymnasium.make("Acrobot-v1")))
    [wrong] = send(session, cmd="init_agent", **agent_of(gymnasium.make("CartPole-v1")))
    [shape] = send(session, cmd="select_action", agent_id="agent_0", observation=[1.0, 2.0])

    assert refused["message"] == "action_space: the policy needs Discrete(2), the environment has Discrete(3)."
    assert wrong["type"] == "agent_ready"
    assert shape["message"] == "observation: must have the shape [4]"
    session.close()


def interact(run, *commands):
    command = [sys.executable, "-m", "dreamer_worker.cli", "--config", str(run.config), "--interactive"]
    ended = subprocess.run(
        command, input="\n".join(commands) + "\n", capture_output=True, text=True, timeout=run.limit_s
    )
    return ended, [json.loads(line) for line in ended.stdout.splitlines()]


def test_over_pipes_every_line_is_answered(run_of):
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

    ended, answers = interact(run_of(), *commands)

    assert ended.returncode == 0, ended.stderr
    assert [answer["type"] for answer in answers] == ["pong", *["error"] * 5, "ready", "stopped"]
    assert "There is no command 'dance'. Choose from: " in answers[3]["message"]


def test_a_checkpoint_that_cannot_be_used_is_answered_and_ends_with_exit_code_2(run_of, tmp_path):
    run = run_of(random_agent=False, size="debug", checkpoint=str(tmp_path))

    ended, answers = interact(run, '{"cmd": "ping"}', '{"cmd": "reset"}', '{"cmd": "ping"}')

    assert ended.returncode == 2, ended.stderr
    assert [answer["type"] for answer in answers] == ["pong", "error"]
    assert "There is no complete checkpoint in" in answers[1]["message"]


def test_an_invalid_config_is_refused_in_one_sentence(run_of):
    run = run_of(size="13m")

    assert run.start("--interactive").wait() == 2

    assert run.stderr == "agent: There is no size '13m'. Sizes: debug, 1m, 12m, 25m, 50m, 100m, 200m, 400m.\n"
