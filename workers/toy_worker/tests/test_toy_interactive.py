"""--interactive: the toy environment, step by step."""

import json

import pytest
from mosaic_sdk.interactive import Session
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
