"""--interactive: the toy environment, step by step."""

import json
import sys

import pytest
from mosaic_sdk.interactive import Session
from mosaic_sdk.operators.child import Child, ChildDied, ChildHung
from mosaic_sdk.operators.process import ProcessPlayer, Refused
from toy_worker.checkpoint import Checkpoints
from toy_worker.config import ToyConfig
from toy_worker.interactive import ToyPlayer


@pytest.fixture
def send():
    config = ToyConfig(run_id="R1", seed=3, episode_length=4)
    session = Session(lambda: ToyPlayer(config), run_id="R1", first_seed=3)

    def send(cmd, **more):
        return session.answer(json.dumps({"cmd": cmd, **more}))

    return send


def test_the_same_seed_and_actions_give_the_same_rewards(send):
    episodes = []
    for seed in (5, 5, 6):
        send("reset", seed=seed)
        episodes.append([send("step", action=1)[0]["reward"] for _ in range(4)])

    assert episodes[0] == episodes[1] != episodes[2]


def test_an_episode_ends_after_its_length(send):
    send("reset")

    answers = [message for _ in range(4) for message in send("step")]

    assert [message["type"] for message in answers] == ["step"] * 4 + ["episode_done"]
    assert answers[-1]["num_steps"] == 4


def test_only_its_two_actions_are_taken_and_a_mask_is_respected(send):
    send("reset")

    assert "must be 0 or 1, not 7" in send("step", action=7)[0]["message"]
    assert [send("select_action", observation=[0], action_mask=[0, 1])[0]["action"] for _ in range(8)] == [1] * 8
    assert "must allow at least one" in send("select_action", observation=[0], action_mask=[0, 0])[0]["message"]


@pytest.fixture
def start(tmp_path):
    """Starts the worker as a process, as an evaluation does."""
    children = []

    def start(**settings):
        path = tmp_path / f"config-{len(children)}.json"
        path.write_text(json.dumps({"run_id": "R1", "episode_length": 4, **settings}))
        argv = [sys.executable, "-m", "toy_worker.cli", "--config", str(path), "--interactive"]
        children.append(Child(argv, name="toy", log=lambda line: None))
        return children[-1]

    yield start
    for child in children:
        child.close()


def test_it_describes_its_spaces_and_its_first_observation(send):
    first, again, other = (send("reset", seed=seed)[0] for seed in (3, 3, 4))

    assert first["action_space"] == {"type": "Discrete", "n": 2, "start": 0}
    assert first["first_observation"] == again["first_observation"] != other["first_observation"]


def test_it_acts_only_in_its_own_spaces(send):
    (refused,) = send("init_agent", agent_id="a", action_space={"type": "Discrete", "n": 7})

    expected = "action_space: the policy needs Discrete(2), the environment has Discrete(7)."
    assert refused == {"type": "error", "message": expected}
    assert send("init_agent", agent_id="a", action_space={"type": "Discrete", "n": 2})[0]["type"] == "agent_ready"


def test_it_can_ignore_the_seed(start):
    player = ProcessPlayer(start(ignore_seed=True), 30)

    assert player.reset(3)["first_observation"] == player.reset(4)["first_observation"]


def test_it_can_crash_and_is_asked_again_after_a_reset(start):
    player = ProcessPlayer(start(crash_at=1), 30)
    player.reset(3)
    player.step()

    with pytest.raises(Refused, match="asked to crash at step 1"):
        player.step()

    player.reset(3)
    assert player.step().reward


def test_it_can_die(start):
    player = ProcessPlayer(start(signal_at=0, stderr_lines=1), 30)
    player.reset(3)

    with pytest.raises(ChildDied, match="was killed by SIGKILL: toy: line 0 on stderr"):
        player.step()


def test_it_can_hang(start):
    player = ProcessPlayer(start(hang_at=0), 30)
    player.reset(3)
    player.timeout_s = 0.3

    with pytest.raises(ChildHung, match=r"no answer in 0.3 s"):
        player.step()


def test_it_can_print_garbage_among_its_answers(start):
    child = start(garbage_every=1, long_line_bytes=3_000_000, episode_length=30)
    player = ProcessPlayer(child, 30)
    player.reset(3)

    rewards = [player.step().reward for _ in range(30)]

    assert len(set(rewards)) == 30


def test_it_can_select_an_illegal_action(start):
    child = start(illegal_action_at=1)
    child.ask({"cmd": "init_agent", "agent_id": "a"}, 30)

    actions = [child.ask({"cmd": "select_action", "agent_id": "a"}, 30)["action"] for _ in range(3)]

    assert actions[1] == 99
    assert {actions[0], actions[2]} <= {0, 1}


def test_a_checkpoint_with_skill_takes_the_better_action_more_often(tmp_path, monkeypatch):
    monkeypatch.setenv("MOSAIC_RUN_DIR", str(tmp_path))
    state = {"step": 9, "skill": 0.9, "horizon": 10, "noise": 1, "episode_index": 0, "episode_return": 0.0}
    path = Checkpoints(ToyConfig(run_id="R1")).save({**state, "last_return": 0.0})

    def share(config):
        player = ToyPlayer(config)
        player.reset(3, None)
        return sum(player.step(None).action for _ in range(200)) / 200

    assert share(ToyConfig(run_id="R1", checkpoint=path)) > 0.9
    assert 0.4 < share(ToyConfig(run_id="R1")) < 0.6
