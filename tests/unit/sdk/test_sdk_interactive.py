"""mosaic_sdk.interactive: the protocol over pipes, with a player that uses no library."""

import json
import subprocess
import sys

import pytest
from mosaic_sdk.config import ConfigError
from mosaic_sdk.interactive import CommandError, Player, Session, Step


class Number:
    """A numpy scalar, as far as the SDK knows."""

    def __init__(self, value):
        self.value = value

    def tolist(self):
        return self.value


class Counter(Player):
    """An episode of three steps with a reward of 1 each; the policy always takes action 1."""

    made = 0

    def __init__(self):
        type(self).made += 1
        self.left, self.requests, self.agents, self.is_closed = 0, [], [], False

    def describe(self):
        return {"env_id": "Count-v0", "algo": "none", "policy": "random"}

    def reset(self, seed, options):
        self.left = (options or {}).get("length", 3)
        if self.left == "explode":
            raise RuntimeError("boom")
        return {"observation_shape": (1,)}

    def step(self, action):
        if action == "explode":
            raise RuntimeError("boom")
        if action not in (None, 0, 1):
            raise CommandError(f"action: {action!r} is not one of 0, 1.")
        self.left -= 1
        return Step(Number(1 if action is None else action), 1, self.left == 0, False, {"left": self.left})

    def init_agent(self, agent_id, seed):
        self.agents.append((agent_id, seed))

    def select_action(self, request):
        self.requests.append(request)
        return Number(1)

    def close(self):
        self.is_closed = True


@pytest.fixture
def session():
    return Session(Counter, run_id="R1", first_seed=7)


def send(session, cmd, **more):
    return session.answer(json.dumps({"cmd": cmd, **more}))


def test_an_episode_from_reset_to_its_end(session):
    (ready,) = send(session, "reset", seed=3)
    steps = [message for _ in range(3) for message in send(session, "step")]

    assert ready == {
        **{"type": "ready", "run_id": "R1", "env_id": "Count-v0", "algo": "none", "policy": "random"},
        **{"episode_index": 0, "step_index": 0, "seed": 3, "observation_shape": [1]},
    }
    assert steps[0] == {
        **{"type": "step", "episode_index": 0, "step_index": 0, "action": 1, "reward": 1.0, "terminated": False},
        **{"truncated": False, "episode_reward": 1.0, "left": 2},
    }
    assert [message["type"] for message in steps] == ["step", "step", "step", "episode_done"]
    assert steps[-1] == {
        **{"type": "episode_done", "run_id": "R1", "episode_index": 0, "total_reward": 3.0, "num_steps": 3},
        **{"terminated": True, "truncated": False},
    }
    assert send(session, "step")[0]["message"] == "The episode is over, or none was begun. Send reset first."
    assert send(session, "reset", options={"length": 1})[0]["episode_index"] == 1


def test_a_reset_without_a_seed_takes_the_next_one(session):
    assert [send(session, "reset")[0]["seed"] for _ in range(3)] == [7, 8, 9]
    assert send(Session(Counter, run_id="R1"), "reset")[0]["seed"] is None


def test_ping_and_stop_need_no_player(session):
    Counter.made = 0

    assert send(session, "ping") == [{"type": "pong"}]
    assert send(session, "stop") == [{"type": "stopped", "run_id": "R1"}]
    session.close()

    assert Counter.made == 0


def test_an_agent_selects_actions_for_an_environment_elsewhere(session):
    (ready,) = send(session, "init_agent", agent_id="red", player_id=2, game_name="x", seed=5)
    (chosen,) = send(session, "select_action", observation=[0], info={"a": 1}, action_mask=[0, 1], agent_id="red")

    assert ready == {
        **{"type": "agent_ready", "run_id": "R1", "env_id": "Count-v0", "algo": "none", "policy": "random"},
        **{"agent_id": "red", "player_id": 2, "game_name": "x", "mode": "action_selector"},
    }
    assert chosen == {"type": "action_selected", "run_id": "R1", "agent_id": "red", "action": 1}
    request = session.player.requests[0]
    assert session.player.agents == [("red", 5)]
    assert (request.observation, request.info, request.action_mask, request.agent_id) == ([0], {"a": 1}, [0, 1], "red")


def test_a_mask_begins_with_the_first_action_of_the_agents_space(session):
    send(session, "init_agent", agent_id="red", action_space={"type": "Discrete", "n": 2, "start": 1})

    assert send(session, "select_action", agent_id="red", action_mask=[1, 0])[0]["action"] == 1
    assert "does not allow" in send(session, "select_action", agent_id="red", action_mask=[0, 1])[0]["message"]


def test_each_agent_has_its_own_first_request(session):
    for agent in ("red", "red", "blue"):
        send(session, "select_action", observation=[0], agent_id=agent)
    send(session, "select_action", observation=[0], agent_id="red", is_first=True, reward=0.5)
    send(session, "init_agent", agent_id="blue")
    for agent in ("red", "blue"):
        send(session, "select_action", observation=[0], agent_id=agent)

    assert [request.is_first for request in session.player.requests] == [True, False, True, True, False, True]
    assert session.player.requests[3].reward == 0.5


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("not json", "This is not JSON"),
        ("[" * 100_000, "This is not JSON"),
        ("[1]", 'A command is an object with a "cmd"'),
        ('{"cmd": 3}', 'A command is an object with a "cmd"'),
        ('{"cmd": "dance"}', "There is no command 'dance'. Choose from: init_agent, ping, reset, select_action, step"),
        ('{"cmd": "reset", "seed": -1}', "seed: must be an integer from 0"),
        ('{"cmd": "reset", "seed": true}', "seed: must be an integer from 0"),
        ('{"cmd": "reset", "options": 3}', "options: must be an object"),
        ('{"cmd": "step", "action": 2}', "action: 2 is not one of"),
        ('{"cmd": "select_action", "action_mask": 3}', "action_mask: must be a list"),
        ('{"cmd": "select_action", "action_mask": [1, 0]}', "which action_mask does not allow"),
        ('{"cmd": "select_action", "action_mask": [1]}', "which action_mask does not allow"),
        ('{"cmd": "select_action", "info": []}', "info: must be an object"),
        ('{"cmd": "select_action", "reward": "x"}', "reward: must be a number"),
        ('{"cmd": "select_action", "agent_id": []}', "agent_id: must be a string or a number"),
    ],
)
def test_a_command_that_cannot_be_executed_is_answered_and_the_episode_goes_on(session, line, reason):
    send(session, "reset")

    (answer,) = session.answer(line)

    assert answer["type"] == "error"
    assert reason in answer["message"]
    assert send(session, "step")[0]["type"] == "step"


def test_an_exception_of_a_library_is_answered_and_ends_the_episode(session, capsys):
    send(session, "reset")

    (answer,) = send(session, "step", action="explode")

    assert answer == {"type": "error", "message": "RuntimeError: boom"}
    assert "Traceback" in capsys.readouterr().err
    assert "Send reset first" in send(session, "step")[0]["message"]
    assert send(session, "reset")[0]["type"] == "ready"


def test_a_reset_that_fails_ends_the_episode_before_it(session):
    send(session, "reset")

    (answer,) = send(session, "reset", options={"length": "explode"})

    assert answer == {"type": "error", "message": "RuntimeError: boom"}
    assert "Send reset first" in send(session, "step")[0]["message"]


def test_a_config_error_is_not_answered_by_the_session():
    def refuse():
        raise ConfigError("There is no checkpoint /x.")

    with pytest.raises(ConfigError):
        send(Session(refuse, run_id="R1"), "reset")


def test_a_player_without_an_environment_or_a_policy_says_so():
    session = Session(Player, run_id="R1")

    assert "no environment to step" in send(session, "reset")[0]["message"]
    assert "does not select actions" in send(session, "select_action", observation=[0])[0]["message"]


def test_closing_closes_the_player(session):
    send(session, "reset")
    player = session.player

    session.close()

    assert player.is_closed


PROGRAM = """
import os, subprocess, sys
from mosaic_sdk.config import ConfigError
from mosaic_sdk.interactive import Player, Step, serve

class Loud(Player):
    def __init__(self):
        print("a library prints"); os.write(1, b"a C library prints\\n"); subprocess.run(["echo", "a child prints"])
        if "refuse" in sys.argv:
            raise ConfigError("There is no checkpoint /x.")
        assert sys.stdin.read() == ""
    def close(self):
        if "stuck" in sys.argv:
            raise RuntimeError("the window is gone")
    def reset(self, seed, options): return {}
    def step(self, action): return Step(float("nan"), 0.0, False, True)

sys.exit(serve(Loud, run_id="R1"))
"""


def serve(text, *arguments):
    argv = [sys.executable, "-c", PROGRAM, *arguments]
    return subprocess.run(argv, input=text, capture_output=True, timeout=60)


def test_over_pipes_stdout_holds_answers_and_nothing_else():
    lines = [b'{"cmd": "ping"}', b"", b'{"cmd": "reset"}', b'{"cmd": "step"}', b"\xff\xfe", b'{"cmd": "stop"}', b"{}"]

    done = serve(b"\n".join(lines) + b"\n")

    answers = [json.loads(line) for line in done.stdout.splitlines()]
    assert [answer["type"] for answer in answers] == ["pong", "ready", "step", "episode_done", "error", "stopped"]
    assert (answers[3]["terminated"], answers[3]["truncated"]) == (False, True)
    for who in (b"a library", b"a C library", b"a child"):
        assert who + b" prints" in done.stderr
    assert done.returncode == 0


def test_a_config_error_is_answered_and_ends_the_process_with_2():
    done = serve(b'{"cmd": "ping"}\n{"cmd": "reset"}\n{"cmd": "ping"}\n', "refuse")

    answers = [json.loads(line) for line in done.stdout.splitlines()]
    assert answers == [{"type": "pong"}, {"type": "error", "message": "There is no checkpoint /x."}]
    assert done.stderr.splitlines()[-1] == b"There is no checkpoint /x."
    assert done.returncode == 2


def test_the_end_of_stdin_ends_it():
    done = serve(b"")

    assert (done.returncode, done.stdout) == (0, b"")


def test_a_player_that_cannot_be_closed_does_not_change_the_exit_code():
    done = serve(b'{"cmd": "reset"}\n{"cmd": "stop"}\n', "stuck")

    assert json.loads(done.stdout.splitlines()[-1])["type"] == "stopped"
    assert b"RuntimeError: the window is gone" in done.stderr
    assert done.returncode == 0


def test_an_error_carries_the_fields_that_the_player_gives_it():
    class Failing(Player):
        def select_action(self, request):
            raise CommandError("The endpoint is down.", kind="infrastructure", report={"retries": 2})

    session = Session(Failing, run_id="R1")

    (answer,) = session.answer('{"cmd": "select_action", "observation": [0]}')

    assert answer == {
        "type": "error",
        "message": "The endpoint is down.",
        "kind": "infrastructure",
        "report": {"retries": 2},
    }
