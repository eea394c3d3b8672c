"""A lane as a card."""

import pytest
from evaluation_events import asked, episode, said, started, step

from mosaic.client.evaluation_state import EvaluationState
from mosaic.present.lane_cards import card_of, describe_operator, progress_line, question_line, time_left
from mosaic.present.lane_layout import columns_for
from mosaic.present.lane_view import pieces_of


@pytest.fixture
def evaluation():
    state = EvaluationState()
    state.receive([started("ppo", "me"), said("evaluation_state", state="paused")])
    state.receive([said("lane_ready", lane=0, episode_index=0, seed=3, text="@..")])
    return state


def test_a_card_says_who_plays_what(evaluation):
    evaluation.receive([step(index=4, action=2, action_name="forward", episode_return=1.5, episode_seed=3)])
    operators = {"ppo": {"kind": "rl", "run": "grid", "checkpoint": "best"}}

    card = card_of(evaluation.lanes[0], evaluation, operators)

    assert (card.name, card.kind, card.place) == ("ppo", "policy of grid, best", "seed 3 · episode 1 of 2 · step 5")
    assert (card.action, card.reward, card.episode_return, card.mean) == ("forward", "0.5", "1.5", "-")
    assert (card.glyph, card.word) == ("◌", "ready")


def test_a_playing_evaluation_has_playing_lanes(evaluation):
    evaluation.state = "playing"

    assert card_of(evaluation.lanes[0], evaluation).word == "playing"
    assert card_of(evaluation.lanes[1], evaluation).word == "starting"


def test_a_failure_stays_in_words_and_is_not_in_the_mean(evaluation):
    evaluation.receive([episode(total=2.0), episode(index=1, total=9.0, failed=True, reason="it crashed\nbadly\x07")])
    evaluation.receive([said("lane_failed", lane=0, reason="it crashed")])

    card = card_of(evaluation.lanes[0], evaluation)

    assert (card.word, card.problem, card.mean) == ("failed", "it crashed", "2 (1)")
    assert progress_line(evaluation) == "2 of 4 episodes"


def test_words_keep_their_lines_and_lose_their_control_characters(evaluation):
    evaluation.receive([step(text="<b>I go</b>\n\x1b[31mleft\x00")])

    assert card_of(evaluation.lanes[0], evaluation).words == "<b>I go</b>\nleft"


def test_a_question_names_the_person_the_lane_and_the_time(evaluation):
    evaluation.receive([asked(lane=1, request=1, deadline_s=30.0, at_s=1000.0)])
    request = evaluation.lanes[1].request

    assert question_line(request, evaluation.lanes[1]) == "me, lane 1: choose an action"
    assert time_left(request, 1018.0) == "12 s left"


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ({"kind": "random"}, "random"),
        ({"kind": "human", "time_limit_s": 30.0}, "person, 30 s per action"),
        ({"kind": "llm", "settings": {"model": "qwen3-8b"}}, "LLM qwen3-8b"),
        ({"kind": "worker", "worker": "toy"}, "worker toy"),
        ({"kind": "rl", "run": "a", "checkpoint": "/x/y/step_5.pt"}, "policy of a, step_5.pt"),
        ({}, ""),
    ],
)
def test_operators_are_described(spec, words):
    assert describe_operator(spec) == words


def test_the_players_mark_stays_in_the_text():
    assert pieces_of("S\x1b[41mF\x1b[0mFF\nG\x1b[2J") == [("S", False), ("F", True), ("FF\nG", False)]


@pytest.mark.parametrize(
    ("lanes", "width", "columns"),
    [(0, 800, 1), (1, 800, 1), (2, 800, 2), (3, 860, 3), (4, 860, 2), (4, 2400, 4), (6, 860, 3), (6, 300, 1)],
)
def test_lanes_stand_in_rows_of_about_the_same_length(lanes, width, columns):
    assert columns_for(lanes, width) == columns
