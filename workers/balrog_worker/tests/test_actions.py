"""What a model's answer names."""

import pytest
from balrog_worker.actions import Actions, Commands

MOVES = Actions({"north": "", "far north": "", "turn left": "", "turn right": "", "pick up": "", "do": "", "0": ""})


@pytest.mark.parametrize(
    ("answer", "action"),
    [
        ("turn left", "turn left"),
        ("  Turn_Left.\n", "turn left"),
        ("**turn left**", "turn left"),
        ('"far north"', "far north"),
        ("I see a wall.\n\nACTION: far north", "far north"),
        ("ACTION: north\nNo, better:\nAction: turn right", "turn right"),
        ("Final answer: `pick up`", "pick up"),
        ("I will turn left now.", "turn left"),
        ("ACTION: go far north", "far north"),
        ('{"thought": "a wall", "action": "do"}', "do"),
        ('```json\n{"action": "0"}\n```', "0"),
        ("<think>turn right? no</think>turn left", "turn left"),
        ("I could turn right.\nACTION: turn left", "turn left"),
    ],
)
def test_an_answer_that_names_one_action_is_understood(answer, action):
    assert MOVES.find(answer) == action


@pytest.mark.parametrize(
    "answer",
    [
        "",
        "jump",
        "turn left or turn right",
        "ACTION: swim",
        "<think>turn left",
        '{"action": 3}',
        "northern lights",
        "I look at the room for a long time and then, if nothing moves, I might turn left at last",
        '{"action": "fly"}',
    ],
)
def test_an_answer_that_names_no_action_or_several_is_not(answer):
    assert MOVES.find(answer) is None


@pytest.mark.parametrize(
    ("answer", "command"),
    [
        ("take key from table", "take key from table"),
        ("> go north", "go north"),
        ("Let me think.\nACTION: open the door.", "open the door"),
        ('{"action": "look"}', "look"),
        ("", None),
        ("ACTION: \x07", None),
        ("ACTION: " + "x" * 500, None),
    ],
)
def test_a_text_adventure_takes_any_line(answer, command):
    assert Commands(["look"]).find(answer) == command
