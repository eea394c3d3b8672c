"""What keys and buttons do with the lanes of an evaluation."""

import pytest
from evaluation_events import asked, said, started

from mosaic.client.evaluation_state import Answer, EvaluationState
from mosaic.present.lane_desk import LaneDesk


@pytest.fixture
def desk():
    evaluation = EvaluationState()
    evaluation.receive([started("ppo", "me", "you"), said("evaluation_state", state="paused")])
    return LaneDesk(evaluation)


def test_keys_are_commands(desk):
    assert desk.press(" ") == [{"cmd": "play", "rate": 5.0}]
    assert desk.press("s") == desk.press("S") == [{"cmd": "step", "count": 1}]
    assert desk.press("r") == [{"cmd": "reset"}]
    assert desk.press("n") == [{"cmd": "start"}]
    assert desk.press("z") == []
    assert not desk.takes("z")


def test_finish_is_asked_for_first(desk):
    assert desk.press("f") == []
    assert desk.wants_to_finish


def test_a_chosen_lane_is_stepped_alone(desk):
    desk.press("2")

    assert desk.step() == [{"cmd": "step", "count": 1, "lanes": [2]}]
    assert desk.reset("7") == [{"cmd": "reset", "lanes": [2], "seed": 7}]
    desk.choose(2)
    assert desk.step() == [{"cmd": "step", "count": 1}]
    desk.press("9")
    assert desk.note == "There is no lane 9."


@pytest.mark.parametrize("seed", ["abc", "-1", "1.5", "4294967296"])
def test_a_bad_seed_is_refused_in_words(desk, seed):
    assert desk.reset(seed) == []
    assert desk.note == f'seed: must be an integer from 0 to 2,147,483,647, not "{seed}".'


def test_the_keys_of_the_asked_lane_come_first_and_an_answer_is_sent_once(desk):
    desk.evaluation.receive([asked(lane=1, request=4)])

    sent = desk.press("A")  # with Caps Lock

    assert sent == [{"cmd": "act", "lane": 1, "agent_id": "me", "request": 4, "action": 0}]
    assert desk.request is None


def test_the_oldest_request_is_first_unless_a_lane_is_chosen(desk):
    desk.evaluation.receive([asked(lane=2, request=1, at_s=10.0), asked(lane=1, request=2, at_s=20.0)])

    assert desk.request.lane == 2
    desk.choose(1)
    assert desk.request.lane == 1


def test_the_key_of_an_action_never_resets_while_it_plays(desk):
    actions = [{"value": 0, "name": "drop", "key": "r"}]
    desk.evaluation.receive([asked(lane=1, request=4, actions=actions), said("evaluation_state", state="playing")])
    desk.press("r")

    assert desk.press("r") == []
    assert "Nobody is asked" in desk.note


def test_a_refused_action_can_be_given_again_and_the_reason_is_shown(desk):
    desk.evaluation.receive([asked(lane=1, request=4)])
    (command,) = desk.press("d")

    desk.hear(command, Answer(3, "act", False, "not \x1b[31mnow"))

    assert desk.note == "not now"
    assert desk.request.lane == 1


def test_a_script_takes_only_the_keys_of_people(desk):
    desk.is_manual = False
    desk.evaluation.receive([asked(lane=1, request=4)])

    assert not desk.takes("s")
    assert desk.takes("a")
    assert desk.press("s") == []


def test_the_rate_changes_at_once_while_it_plays(desk):
    assert desk.press("+") == []
    desk.evaluation.state = "playing"

    assert desk.press(" ") == [{"cmd": "pause"}]
    assert desk.press("-") == [{"cmd": "play", "rate": 5.0}]
