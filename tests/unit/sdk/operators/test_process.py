"""Operators as processes: those that are built in, one's own, and what the asking side makes of their answers."""

import json
import sys

import numpy as np
import pytest
from mosaic_sdk.interactive import Session
from mosaic_sdk.operators.builtin import Passive, Random
from mosaic_sdk.operators.child import Child, ChildDied
from mosaic_sdk.operators.operator import Agent, Decision, OperatorError, StepResult
from mosaic_sdk.operators.process import ProcessOperator, ProcessPlayer, Refused
from mosaic_sdk.operators.served import OperatorPlayer

SEVEN = {"type": "Discrete", "n": 7, "start": 0}
AGENT = Agent("agent_0", env_id="Grid-v0", action_space=SEVEN, observation_space={"type": "Discrete", "n": 1})


@pytest.fixture
def start():
    started = []

    def start(*arguments, name="x"):
        started.append(Child([sys.executable, *arguments], name=name, log=lambda line: None))
        return started[-1]

    yield start
    for child in started:
        child.close()


def test_random_depends_on_name_seed_and_agent(start):
    def play(name, seed, agent_id):
        operator = ProcessOperator(
            start("-m", "mosaic_sdk.operators", "random", "--name", name), AGENT._replace(agent_id=agent_id)
        )
        operator.reset(seed)
        return [operator.select_action(None) for _ in range(20)]

    first = play("a", 3, "p0")

    assert play("a", 3, "p0") == first
    assert all(play(*other) != first for other in [("b", 3, "p0"), ("a", 4, "p0"), ("a", 3, "p1")])


def test_random_begins_again_with_each_episode_and_respects_masks(start):
    operator = ProcessOperator(start("-m", "mosaic_sdk.operators", "random"), AGENT)
    episodes = []
    for seed in (1, 1, 2):
        operator.reset(seed)
        episodes.append([operator.select_action(None, {"action_mask": [0, 1, 0, 0, 1, 0, 0]}) for _ in range(20)])

    assert episodes[0] == episodes[1] != episodes[2]
    assert set(episodes[0]) == {1, 4}
    with pytest.raises(Refused, match="action_mask: must allow at least one"):
        operator.select_action(None, {"action_mask": [0] * 7})


def test_the_actions_of_random_are_the_same_in_every_version():
    operator = Random(Agent("agent_0", action_space=SEVEN), "chance")
    operator.reset(0)

    assert [operator.select_action(None) for _ in range(8)] == [4, 4, 5, 5, 3, 6, 1, 2]


@pytest.mark.parametrize(
    ("agent", "action"),
    [
        (Agent(action_space=SEVEN, actions=[{"value": 0, "name": "left"}, {"value": 6, "name": "Done"}]), 6),
        (Agent(action_space=SEVEN, actions=[{"value": 6, "name": "done"}, {"value": 4, "name": "noop"}]), 4),
        (Agent(action_space=SEVEN, actions=[{"value": 3, "name": "left"}]), 0),
        (Agent(action_space={"type": "Discrete", "n": 3, "start": 2}), 2),
        (Agent(action_space={"type": "Box", "shape": [2], "dtype": "float32", "low": -1.0, "high": 1.0}), [0.0, 0.0]),
        (Agent(action_space={"type": "Box", "shape": [1], "dtype": "float32", "low": 0.5, "high": 1.0}), [0.5]),
    ],
)
def test_passive_does_nothing(agent, action):
    assert Passive(agent).select_action(None) == action


def test_passive_takes_the_first_allowed_action_if_doing_nothing_is_forbidden():
    assert Passive(Agent(action_space=SEVEN)).select_action(None, {"action_mask": [0, 0, 1, 1, 0, 0, 0]}) == 2


def test_an_operator_without_an_action_space_is_refused(start):
    operator = ProcessOperator(start("-m", "mosaic_sdk.operators", "passive"), Agent("a"))

    with pytest.raises(Refused, match="x: init_agent: action_space is missing"):
        operator.reset(1)


class Recorder:
    """An operator that remembers what it is told."""

    def __init__(self, agent):
        self.agent, self.told = agent, []

    def reset(self, seed):
        self.told.append(("reset", seed))

    def select_action(self, obs, info=None):
        self.told.append((obs, info))
        return Decision(1, text="because", report={"tokens": np.int64(3)})

    def on_step(self, result):
        self.told.append(result)

    def close(self):
        self.told.append("closed")


@pytest.fixture
def served():
    """A session with Recorders, and the list of them."""
    made = []

    def make(agent):
        made.append(Recorder(agent))
        return made[-1]

    session = Session(lambda: OperatorPlayer(make, {"policy": "mine"}), run_id="R1")
    return lambda cmd, **more: session.answer(json.dumps({"cmd": cmd, **more}))[0], made, session


def test_an_operator_is_told_everything(served):
    send, made, session = served
    array = {"__array__": {"dtype": "uint8", "shape": [2], "base64": "AQI="}}

    ready = send("init_agent", agent_id="a", seed=5, env_id="E", action_space=SEVEN, actions=[{"value": 0}])
    chosen = send(
        "select_action",
        agent_id="a",
        observation=array,
        info={"x": array},
        text="t",
        action_mask=[0, 1],
        step_index=0,
        reward=0.5,
    )
    noted = send("step_result", agent_id="a", reward=1, terminated=True, truncated=False, info={"y": 1})
    session.close()

    assert (ready["type"], ready["policy"], ready["feedback"]) == ("agent_ready", "mine", True)
    assert (chosen["action"], chosen["text"], chosen["report"]) == (1, "because", {"tokens": 3})
    assert (noted["type"], noted["agent_id"]) == ("noted", "a")
    (operator,) = made
    assert (operator.agent.env_id, operator.agent.action_space, operator.agent.actions) == ("E", SEVEN, [{"value": 0}])
    reset, (observation, info), result, closed = operator.told
    assert (reset, closed, result) == (("reset", 5), "closed", StepResult(1.0, True, False, {"y": 1}))
    assert observation.tolist() == info.pop("x").tolist() == [1, 2]
    assert info == {"text": "t", "action_mask": [0, 1], "step_index": 0, "reward": 0.5}


def test_each_agent_has_an_operator_that_stays_as_long_as_its_spaces(served):
    send, made, _ = served
    for agent, space in (("a", SEVEN), ("b", SEVEN), ("a", SEVEN), ("a", {"type": "Discrete", "n": 2})):
        send("init_agent", agent_id=agent, seed=1, action_space=space)

    assert [operator.agent.agent_id for operator in made] == ["a", "b", "a"]
    assert made[0].told == [("reset", 1), ("reset", 1), "closed"]


def test_an_agent_that_was_never_introduced_is_refused(served):
    send, _, _ = served

    assert send("select_action", agent_id="a")["message"] == "There is no agent 'a' yet. Send init_agent first."


@pytest.mark.parametrize(
    ("command", "message"),
    [
        ({"cmd": "init_agent", "action_space": 3}, "action_space: must be an object"),
        ({"cmd": "init_agent", "actions": 3}, "actions: must be a list"),
        (
            {"cmd": "select_action", "observation": {"__array__": 3}},
            "observation: An array must have one of the dtypes",
        ),
        ({"cmd": "step_result", "reward": "x"}, "reward: must be a number"),
        ({"cmd": "step_result", "info": 3}, "info: must be an object"),
    ],
)
def test_commands_with_invalid_fields_are_answered(served, command, message):
    send, _, _ = served

    assert message in send(**command)["message"]


OWN = """
import sys
from mosaic_sdk.operators.served import serve_operator

class Last:
    def __init__(self, agent): self.n, self.rewards = agent.action_space["n"], 0
    def reset(self, seed): self.seed = seed
    def select_action(self, obs, info=None):
        if obs == "die": sys.exit(3)
        return int(self.n - 1 + self.rewards)
    def on_step(self, result): self.rewards -= result.reward
    def close(self): pass

sys.exit(serve_operator(Last))
"""


def test_an_operator_of_ones_own_runs_as_a_process_and_gets_feedback(start):
    operator = ProcessOperator(start("-c", OWN), AGENT)
    operator.reset(1)

    actions = []
    for _ in range(3):
        actions.append(operator.select_action([0]))
        operator.on_step(StepResult(1.0, False, False, {"array": np.zeros(2000)}))

    assert operator.feedback
    assert actions == [6, 5, 4]


def test_its_death_is_an_error_of_the_operator(start):
    operator = ProcessOperator(start("-c", OWN), AGENT)
    operator.reset(1)

    with pytest.raises(OperatorError) as died:
        operator.select_action("die")

    assert isinstance(died.value, ChildDied)
    assert "x: exited with code 3" in str(died.value)


def answers(*lines):
    """A program that answers one command after the other with these lines."""
    return f"import sys\nfor line in {lines!r}:\n    sys.stdin.readline(); print(line, flush=True)\nsys.stdin.read()"


def test_an_answer_of_another_type_ends_the_child(start):
    child = start("-c", answers('{"type": "pong"}'))

    with pytest.raises(OperatorError, match="x: answered 'pong' where 'agent_ready' was expected"):
        ProcessOperator(child, AGENT).reset(1)

    assert not child.is_alive


def test_an_action_that_is_missing_is_refused(start):
    operator = ProcessOperator(
        start("-c", answers('{"type": "agent_initialized"}', '{"type": "action_selected"}')), AGENT
    )
    operator.reset(1)

    with pytest.raises(Refused, match="action_selected has no action"):
        operator.select_action(None)


def test_a_stranger_may_end_the_episode_in_place_of_a_step(start):
    end = '{"type": "episode_end", "total_reward": 3, "truncated": true}'
    player = ProcessPlayer(start("-c", answers('{"type": "ready"}', end)))
    player.reset(1)

    step = player.step()

    assert (step.is_last, step.terminated, step.truncated, step.reward) == (True, False, True, 0.0)


def test_a_stranger_plays_an_episode(start):
    first = '{"type": "step", "step_index": 1, "reward": 0.5, "action": 3}'
    last = '{"type": "step", "step_index": 2, "reward": 1, "terminated": true, "render": "…"}\n{"type": "episode_end"}'
    player = ProcessPlayer(start("-c", answers('{"type": "ready"}', first, last)))

    player.reset(1)
    steps = [player.step(), player.step()]

    assert [(step.reward, step.action, step.is_last) for step in steps] == [(0.5, 3, False), (1.0, None, True)]


FUSSY = """
from mosaic_sdk.interactive import serve
from mosaic_sdk.player import CommandError, Player

class Fussy(Player):
    def begin_agent(self, agent):
        return {"views": ["text"], "feedback": False, "lane": agent.command["lane"]}

    def select_action(self, request):
        raise CommandError(str(request.command["actions"]), kind="infrastructure", report={"retries": 2})

serve(Fussy, run_id="R1")
"""


def test_a_refusal_has_the_kind_and_the_report_of_its_answer(start):
    operator = ProcessOperator(start("-c", FUSSY), AGENT._replace(command={"lane": "a"}))

    operator.reset(1)
    with pytest.raises(Refused) as caught:
        operator.decide([0], {"actions": [{"value": 7, "name": "e2e4"}]})

    assert operator.views == ["text"]
    assert (caught.value.kind, caught.value.report) == ("infrastructure", {"retries": 2})
    assert "e2e4" in str(caught.value), "the moves of the moment are sent with the request"
