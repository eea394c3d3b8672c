"""The screen of an evaluation: what keys do, and what is drawn."""

from types import SimpleNamespace

import pytest
from evaluation_events import asked, said, started, step
from rich.console import Console, ConsoleDimensions

from mosaic.cli.eval_screen import draw
from mosaic.cli.eval_state import ScreenState
from mosaic.client.evaluation_state import Answer, EvaluationState
from mosaic.client.lanes import Choice
from mosaic.present.lane_keys import key_map, legend

WORLD = "####\n#@.#\n####"


@pytest.fixture
def state():
    evaluation = EvaluationState()
    evaluation.receive([started("ppo", "me", "gpt"), said("evaluation_state", state="paused")])
    evaluation.receive([said("lane_ready", lane=lane, episode_index=0, seed=3, text=WORLD) for lane in range(3)])
    return ScreenState(evaluation)


def lines_of(state, make_run, width=80, height=24):
    console = Console(width=width, height=height, record=True, file=open("/dev/null", "w"))  # noqa: SIM115
    console.print(draw(state, SimpleNamespace(run=make_run()), ConsoleDimensions(width, height)))
    return console.export_text().rstrip("\n").split("\n")


# ---- keys


def test_keys_are_commands(state):
    assert state.press(" ") == state.press("s") == [{"cmd": "step", "count": 1}]
    assert state.press("p") == [{"cmd": "play", "rate": 5.0}]
    assert state.press("r") == [{"cmd": "reset"}]
    assert state.press("n") == [{"cmd": "start"}]
    assert state.press("z") == []


def test_a_digit_chooses_a_lane_and_again_all(state):
    state.press("2")
    assert state.press(" ") == [{"cmd": "step", "count": 1, "lanes": [2]}]
    state.press("2")
    assert state.press("r") == [{"cmd": "reset"}]
    state.press("7")
    assert state.note == "There is no lane 7."


def test_play_becomes_pause_and_the_rate_changes_at_once(state):
    assert state.press("+") == []
    state.evaluation.state = "playing"

    assert state.press("p") == [{"cmd": "pause"}]
    assert state.press("+") == [{"cmd": "play", "rate": 20.0}]
    assert [state.press("-")[0]["rate"] for _ in range(6)] == [10.0, 5.0, 2.0, 1.0, 0.5, 0.5]


def test_the_keys_of_actions_come_first_and_act_once(state):
    state.evaluation.receive([asked(lane=1, request=7)])
    act = {"cmd": "act", "lane": 1, "agent_id": "me", "request": 7, "action": 0}

    assert state.press("a") == [act]
    assert state.press("a") == []  # the same request is not answered twice
    assert state.request is None

    state.hear(act, Answer(1, "act", False, "not now"))
    assert (state.note, state.request.request) == ("not now", 7)


def test_a_script_takes_no_commands_but_actions(state):
    state.is_manual = False
    state.evaluation.receive([asked(lane=1)])

    assert state.press(" ") == []
    assert state.press("d")[0]["action"] == 1


def test_only_the_requests_to_this_name_are_answered(state):
    state.evaluation.receive([asked(lane=1, request=1), asked(lane=2, agent="b", operator="bob", request=2)])
    other = ScreenState(state.evaluation, name="bob")

    assert other.request.request == 2
    assert ScreenState(state.evaluation, name="nobody").request is None


def test_a_command_is_typed(state):
    assert state.press(":") == []
    for key in "step 5 lane=me,2x":
        state.press(key)
    state.press("back")

    assert state.press("enter") == [{"cmd": "step", "count": 5, "lanes": [1, 2]}]
    assert state.typed is None


def test_an_action_without_a_list_is_typed(state):
    state.evaluation.receive([asked(lane=1, request=4, actions=None)])
    for key in ":act [0.5,-1]":
        state.press(key)

    assert state.press("enter")[0]["action"] == [0.5, -1]


@pytest.mark.parametrize(
    ("line", "lane", "action"),
    [
        ("act column 3", 1, 2),
        ("act 3", 1, 2),
        ("act 2 column 1", 2, 0),
        ("act 2 bob column 3", 2, 2),
        ("act gpt 6", 2, 6),
    ],
)
def test_an_action_is_named_in_many_ways(state, line, lane, action):
    columns = [{"value": value, "name": f"column {value + 1}", "key": str(value + 1)} for value in range(5)]
    columns.append({"value": 6, "name": "pass"})
    state.evaluation.receive([asked(lane=1, request=4, actions=columns, at_s=1.0)])
    state.evaluation.receive([asked(lane=2, agent="b", operator="bob", request=5, actions=columns, at_s=2.0)])
    for key in f":{line}":
        state.press(key)

    (command,) = state.press("enter")

    assert (command["lane"], command["action"]) == (lane, action)


@pytest.mark.parametrize(
    ("is_manual", "key", "way"), [(True, "l", "leave"), (True, "f", "finish"), (False, "c", "cancel")]
)
def test_leaving_asks_how(state, is_manual, key, way):
    state.is_manual = is_manual
    state.press("q")
    assert (state.is_asked, state.leaves) == (True, "")

    state.press(key)

    assert state.leaves == way


def test_any_other_key_stays(state):
    state.press("escape")
    state.press("escape")

    assert (state.is_asked, state.leaves) == (False, "")


def test_a_terminal_that_is_gone_leaves(state):
    state.press("closed")

    assert state.leaves == "leave"


def test_actions_without_keys_get_free_ones():
    choices = [
        Choice(0, "noop"),
        Choice(1, "left", ("a", "ArrowLeft")),
        Choice(2, "fire", ("SPACE",)),
        Choice(3, "two", ("a",)),
    ]

    keys = key_map(choices)

    assert {key: choice.name for key, choice in keys.items()} == {
        "a": "left",
        "left": "left",
        " ": "fire",
        "1": "noop",
        "2": "two",
    }
    assert legend(keys) == ["a ← left", "space fire", "1 noop", "2 two"]


def test_escape_is_never_an_action():
    assert key_map([Choice(0, "die", ("escape",)), Choice(1, "say", (":",))]).keys() == {"1", "2"}


def test_more_actions_than_keys_can_still_be_typed():
    assert len(key_map([Choice(value, str(value)) for value in range(100)])) == 36


# ---- drawing


def test_lanes_are_side_by_side_at_80_by_24(state, make_run):
    state.evaluation.receive([step(index=4, action=2, action_name="forward", episode_return=0.25)])
    state.evaluation.receive([step(lane=2, index=4, agent="gpt", action=1, text="I turn right.")])

    lines = lines_of(state, make_run)

    assert len(lines) == 24
    assert max(map(len, lines)) <= 80
    assert lines[0].startswith("Corridor  paused · 5 steps/s · all lanes")
    assert [part.strip() for part in lines[1].split("│")] == ["0 ppo  playing", "1 me  playing", "2 gpt  playing"]
    assert lines[2].startswith("seed 3  step 5")
    assert lines[3].startswith("forward  reward 0.5")
    assert lines[4].startswith("return 0.25  done 0/2")
    assert any("#@.#" in line for line in lines)
    assert any("I turn right." in line for line in lines)
    assert "? help  q quit" in lines[-1]


def test_narrow_terminals_stack_the_lanes(state, make_run):
    lines = lines_of(state, make_run, width=40, height=24)

    heads = [line for line in lines if line.startswith(("0 ppo", "1 me", "2 gpt"))]
    assert len(heads) == 3


def test_the_numbers_of_a_lane_fit_into_a_third_of_80_columns(state, make_run):
    state.evaluation.receive([said("lane_ready", lane=0, episode_index=0, seed=1_000_000, text=WORLD)])
    state.evaluation.receive([step(index=122, action_name="forward", reward=0.955, episode_return=0.955)])

    lines = lines_of(state, make_run)

    assert lines[2].startswith("seed 1000000  step 123")
    assert not any("…" in line for line in lines)


def test_four_lanes_are_two_and_two_and_the_person_who_is_asked_has_the_room(make_run):
    evaluation = EvaluationState()
    evaluation.receive([started("me", "ppo", "chance", "gpt")])
    world = "\n".join(["Mission: reach the goal"] + ["#.....#"] * 7)
    evaluation.receive([said("lane_ready", lane=lane, episode_index=0, seed=3, text=WORLD) for lane in range(4)])
    evaluation.receive([asked(lane=0, text=world)])

    lines = lines_of(ScreenState(evaluation), make_run)

    assert [line.count("│") for line in lines if "playing" in line or "asking" in line] == [1, 1]
    assert any("Mission" in line for line in lines)
    assert sum("#@.#" in line for line in lines) >= 2  # the others are still shown
    assert "? help" in lines[-1]


def test_a_key_that_is_no_action_is_explained(state):
    state.is_manual = False
    state.evaluation.receive([asked(lane=1)])

    assert state.press("x") == []
    assert state.note == "'x' is not the key of an action."


def test_sentences_are_wrapped_and_the_end_of_a_long_view_is_shown(state, make_run):
    words = "\n".join(f"You see a wall number {number} at the end of the room." for number in range(9))
    state.evaluation.receive(
        [said("lane_ready", lane=0, episode_index=0, seed=1, text=f"{words}\n{'.' * 90}\n{WORLD}")]
    )

    lines = [line.split("│")[0].strip() for line in lines_of(state, make_run)]

    assert "#@.#" in lines
    assert "You see a wall number 8" in " ".join(lines)
    assert "You see a wall number 0" not in " ".join(lines)
    assert sum(line.startswith("....") for line in lines) == 1


def test_what_does_not_fit_is_said_and_the_lane_that_asks_is_shown(state, make_run):
    state.evaluation.receive([asked(lane=2, agent="gpt", operator="me", deadline_s=None)])

    lines = lines_of(state, make_run, width=40, height=14)

    assert any(line.startswith("2 gpt  asking") for line in lines)
    assert any(line.startswith("lanes 2 to 2 of 3") for line in lines)
    assert any("a left   d right" in line for line in lines)


@pytest.mark.parametrize("size", [(1, 1), (10, 3), (20, 5), (300, 80)])
@pytest.mark.parametrize("is_help", [False, True])
def test_every_size_can_be_drawn(state, make_run, size, is_help):
    state.evaluation.receive([asked(lane=1, text=WORLD, deadline_s=5)])
    state.is_help = is_help

    lines = lines_of(state, make_run, *size)

    assert len(lines) <= size[1]
    assert max(map(len, lines)) <= size[0]


def test_a_worker_cannot_move_the_cursor(state, make_run):
    evil = "\x1b[2J\x1b]0;title\x07\x1b[31mred\x1b[0m\r\x08"
    state.evaluation.receive([said("lane_ready", lane=0, episode_index=0, seed=1, text=evil)])
    state.evaluation.receive([said("lane_failed", lane=1, reason=evil)])
    console = Console(width=80, height=24, force_terminal=True, file=None)

    with console.capture() as captured:
        console.print(draw(state, SimpleNamespace(run=make_run()), ConsoleDimensions(80, 24)))

    assert "\x1b[31mred" in captured.get()  # colours mark the player in Gymnasium's text worlds
    for code in ("\x1b[2J", "\x1b]0", "\x07", "\x08"):
        assert code not in captured.get()
