"""Which action an answer names."""

import math
from random import Random

import pytest
from llm_worker.actions import IllegalAnswer
from llm_worker.answer import read_answer
from llm_worker.config import LlmConfig
from llm_worker.space import actions_of
from mosaic_sdk.config import ConfigError
from mosaic_sdk.llm.reply import Reply

GRID = [{"value": number, "name": name} for number, name in enumerate(("left", "right", "forward", "turn left"))]
DISCRETE = {"type": "Discrete", "n": 4, "start": 0}


def read(content, output="text", space=DISCRETE, listed=GRID, mask=None, **reply):
    config = LlmConfig(run_id="R1", model="m", output=output)
    return read_answer(Reply(content, **reply), config, actions_of(space, listed, mask)).action


@pytest.mark.parametrize(
    ("content", "action"),
    [
        ("left", 0),
        ("  LEFT.\n", 0),
        ("I will go forward now.", 2),
        ("Turn left", 3),
        ("turn_left", 3),
        ("I could go left or right.\nAction: right", 1),
        ("**Action:** `forward`", 2),
        ("Action: left\nNo, wait.\nFinal action: right", 1),
        ('{"action": "forward"}', 2),
        ('Sure!\n```json\n{"action": "right"}\n```', 1),
        ("<think>left? right? forward?</think>forward", 2),
        ('{"action": 1}', 1),
        ('{"action": "1"}', 1),
    ],
)
def test_an_action_is_found_in_free_text(content, action):
    assert read(content) == action


@pytest.mark.parametrize(
    ("content", "kind"),
    [
        ("Left or right?", "several_actions"),
        ("jump", "no_action"),
        ("leftover", "no_action"),
        ("", "empty"),
        ("<think>left", "empty"),
        ("Action: jump", "no_action"),
        ('{"action": "jump"}', "unknown_action"),
        ('{"action": null}', "wrong_type"),
        ('{"action": true}', "wrong_type"),
    ],
)
def test_an_answer_that_names_no_action_says_why(content, kind):
    with pytest.raises(IllegalAnswer) as caught:
        read(content)

    assert caught.value.kind == kind


def test_an_action_that_the_mask_forbids_is_illegal():
    with pytest.raises(IllegalAnswer, match="right is not allowed now"):
        read("right", mask=[1, 0, 1, 0])


@pytest.mark.parametrize(("content", "kind"), [("left", "not_json"), ("[1]", "not_json"), ("{}", "no_action")])
def test_json_must_be_json(content, kind):
    with pytest.raises(IllegalAnswer) as caught:
        read(content, output="json_object")

    assert caught.value.kind == kind


def test_unnamed_actions_have_their_numbers_as_names_and_a_start_is_respected():
    space = {"type": "Discrete", "n": 3, "start": 5}
    actions = actions_of(space, None, [0, 1, 1])

    assert actions.schema() == {"type": "string", "enum": ["6", "7"]}
    assert read("6", space=space, listed=None, mask=[0, 1, 1]) == 6


def test_actions_of_one_name_are_told_apart():
    listed = [{"value": 0, "name": "go"}, {"value": 1, "name": "go"}]

    assert actions_of(DISCRETE, listed, None).schema()["enum"] == ["go (0)", "go (1)"]


def test_a_long_list_is_not_enumerated():
    actions = actions_of({"type": "Discrete", "n": 5000}, None, None)

    assert actions.schema() == {"type": "string"}
    assert actions.listed() == "5000 numbers from 0 to 4999"
    assert actions.parse("4999") == 4999


BOX = {"type": "Box", "shape": [2], "dtype": "float32", "low": -1.0, "high": [0.5, 1.0]}


@pytest.mark.parametrize(
    ("space", "content", "action"),
    [
        (BOX, '{"action": [0.5, -1]}', [0.5, -1.0]),
        (BOX, "I choose [0.25, 1e-1].", [0.25, 0.1]),
        ({"type": "MultiDiscrete", "nvec": [2, 3]}, '{"action": [1, 2]}', [1, 2]),
        ({"type": "MultiBinary", "n": 3}, '{"action": [1, 0, 1]}', [1, 0, 1]),
        ({"type": "Box", "shape": [2, 2], "dtype": "int64", "low": 0, "high": 9}, "[1,2,3,4]", [[1, 2], [3, 4]]),
        ({"type": "Box", "shape": [], "dtype": "float32", "low": 0, "high": 9}, '{"action": 4}', 4.0),
    ],
)
def test_numbers_are_read(space, content, action):
    assert read(content, space=space, listed=None) == action


@pytest.mark.parametrize(
    ("content", "kind"),
    [
        ("[0.6, 0]", "out_of_range"),
        ('{"action": [NaN, 0]}', "out_of_range"),
        ("[1]", "wrong_type"),
        ("[a, b]", "no_action"),
        ('{"action": "left"}', "wrong_type"),
        ("up", "no_action"),
    ],
)
def test_numbers_that_do_not_fit_are_illegal(content, kind):
    with pytest.raises(IllegalAnswer) as caught:
        read(content, space=BOX, listed=None)

    assert caught.value.kind == kind


def test_an_infinite_range_gets_bounds():
    space = {"type": "Box", "shape": [1], "dtype": "float32", "low": -math.inf, "high": math.inf}

    assert actions_of(space, None, None).fallback("noop", Random(0)) == ("noop", [0.0])


@pytest.mark.parametrize("space", [BOX, {"type": "MultiDiscrete", "nvec": [2, 3]}, DISCRETE])
@pytest.mark.parametrize("policy", ["random", "first"])
def test_a_fallback_is_legal_and_repeatable(space, policy):
    actions = actions_of(space, None, None)

    once, again = (actions.fallback(policy, Random("gpt:1:a:0")) for _ in range(2))

    assert once == again
    assert once[0] == policy
    assert actions.parse(once[1]) == once[1]


@pytest.mark.parametrize("space", [{"type": "Dict", "spaces": {}}, None, {"type": "Box", "shape": [9, 9, 3]}])
def test_a_space_that_a_model_cannot_choose_from_is_refused(space):
    with pytest.raises(ConfigError, match=r"^action_space: "):
        actions_of(space and {"low": 0, "high": 1, **space}, None, None)
