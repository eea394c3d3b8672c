"""Interactive mode: a policy plays its own environment, and decides for agents whose environment is elsewhere."""

import json

import pytest
from mosaic_sdk.interactive import Session
from xuance_worker.config import XuanceConfig
from xuance_worker.interactive import make_player


@pytest.fixture
def ask(trained_with, tmp_path, monkeypatch):
    """A dialogue with the policy of a short training of an algorithm."""
    sessions = []

    def begin(algo):
        run = trained_with(algo)
        monkeypatch.setenv("MOSAIC_RUN_DIR", str(tmp_path))
        extras = {"mode": "interactive", "policy_path": run.checkpoint}
        config = XuanceConfig.from_dict({"run_id": "TEST", "extras": extras})
        session = Session(lambda: make_player(config), run_id="TEST", first_seed=1)
        sessions.append(session)
        return lambda **command: session.answer(json.dumps(command))

    yield begin
    for session in sessions:
        session.close()


def test_a_policy_plays_an_episode_that_its_seed_determines(ask):
    tell = ask("ppo")

    def play():
        ready = tell(cmd="reset", seed=3)[0]
        answers = []
        while not answers or answers[-1]["type"] != "episode_done":
            answers += tell(cmd="step")
        return ready, answers

    (ready, first), (_, second) = play(), play()

    assert (ready["policy"], ready["algo"], ready["observation_space"]["shape"]) == ("checkpoint", "ppo", [4])
    assert ready["action_space"] == {"type": "Discrete", "n": 2, "start": 0}
    assert [one.get("action") for one in first] == [one.get("action") for one in second]
    assert first[-1]["total_reward"] == first[-1]["num_steps"]


def test_it_decides_for_an_environment_elsewhere_as_it_would_play(ask):
    tell = ask("dqn")
    space = {"type": "Discrete", "n": 2, "start": 0}

    assert tell(cmd="init_agent", agent_id="a", seed=1, action_space=space)[0]["type"] == "agent_ready"
    answer = tell(cmd="select_action", observation=[0.0, 0.1, 0.0, -0.1], agent_id="a")[0]
    assert answer["action"] in (0, 1)
    assert "shape" in tell(cmd="select_action", observation=[0.0], agent_id="a")[0]["message"]
    refused = tell(cmd="init_agent", agent_id="b", seed=1, action_space={**space, "n": 3})[0]
    assert (refused["type"], refused["message"][:13]) == ("error", "action_space:")


def test_each_of_several_agents_decides_from_its_own_observation(ask):
    tell = ask("iql")
    observation = [0.1] * 18

    for agent in ("agent_0", "agent_2"):
        assert tell(cmd="init_agent", agent_id=agent, seed=1)[0]["type"] == "agent_ready"
        assert tell(cmd="select_action", observation=observation, agent_id=agent)[0]["action"] in range(5)
    assert "has no agent 'red'" in tell(cmd="init_agent", agent_id="red", seed=1)[0]["message"]
    assert "several agents" in tell(cmd="reset", seed=1)[0]["message"]
