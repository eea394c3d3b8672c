"""Spaces as plain data: described, sampled, checked and compared, without Gymnasium."""

import random

import numpy as np
import pytest
from mosaic_sdk.operators import spaces
from mosaic_sdk.operators.operator import Agent
from mosaic_sdk.player import CommandError


class Discrete:
    def __init__(self, n, start=0):
        self.n, self.start = np.int64(n), np.int64(start)


class Box:
    def __init__(self, low, high, shape, dtype):
        self.low, self.high = np.full(shape, low, dtype), np.full(shape, high, dtype)
        self.shape, self.dtype = shape, np.dtype(dtype)


class MultiDiscrete:
    def __init__(self, nvec):
        self.nvec = np.asarray(nvec)


class MultiBinary:
    def __init__(self, n):
        self.n = n


class Dict:
    def __init__(self, **parts):
        self.spaces = parts


class Tuple:
    def __init__(self, *parts):
        self.spaces = parts


class MissionSpace:
    pass


class MyBox(Box):
    pass


TWO = {"type": "Discrete", "n": 2, "start": 0}
CELLS = {"type": "Box", "shape": [7, 7, 3], "dtype": "uint8", "low": 0, "high": 255}
NESTED = Dict(move=Discrete(3), arm=Tuple(Box(-1, 1, (2,), "float32"), MultiBinary(3)), keys=MultiDiscrete([2, 5]))


@pytest.mark.parametrize(
    ("space", "described"),
    [
        (Discrete(2), TWO),
        (Discrete(5, start=-2), {"type": "Discrete", "n": 5, "start": -2}),
        (Box(0, 255, (7, 7, 3), "uint8"), CELLS),
        (MyBox(0, 255, (7, 7, 3), "uint8"), CELLS),
        (MultiDiscrete([3, 2]), {"type": "MultiDiscrete", "nvec": [3, 2]}),
        (MultiBinary(4), {"type": "MultiBinary", "n": 4}),
        (Dict(a=Discrete(2), b=MissionSpace()), {"type": "Dict", "spaces": {"a": TWO, "b": {"type": "Text"}}}),
        (Tuple(Discrete(2)), {"type": "Tuple", "spaces": [TWO]}),
    ],
)
def test_a_space_is_described(space, described):
    assert spaces.describe(space) == described


def test_bounds_that_differ_are_lists():
    box = Box(0, 1, (2,), "float32")
    box.high = np.asarray([1.0, np.inf], "float32")

    described = spaces.describe(box)

    assert (described["low"], described["high"]) == (0.0, [1.0, float("inf")])


@pytest.mark.parametrize(
    "space",
    [
        Discrete(5, start=3),
        Box(-2, 2, (3, 2), "float32"),
        Box(0, 9, (4,), "int64"),
        NESTED,
        Box(-np.inf, 1, (9,), "f4"),
    ],
)
def test_samples_are_legal_and_depend_on_the_generator_alone(space):
    described = spaces.describe(space)

    samples = [[spaces.sample(described, random.Random(seed)) for _ in range(2)] for seed in range(30)]

    assert all(one == other for one, other in samples)
    assert all(spaces.illegal(described, one) == "" for one, _ in samples)
    assert len({str(one) for one, _ in samples}) > 3
    assert spaces.illegal(described, spaces.neutral(described)) == ""


def test_a_mask_is_respected():
    rng, start = random.Random(1), {"type": "Discrete", "n": 3, "start": 5}

    assert {spaces.sample(start, rng, [1, 0, 1]) for _ in range(50)} == {5, 7}
    assert {
        tuple(spaces.sample({"type": "MultiDiscrete", "nvec": [2, 2]}, rng, [[0, 1], [1, 1]])) for _ in range(50)
    } == {
        (1, 0),
        (1, 1),
    }
    assert spaces.first_allowed(start, [0, 1, 1]) == 6
    with pytest.raises(spaces.SpaceError, match="action_mask: must allow at least one of the actions"):
        spaces.sample(start, rng, [0, 0, 0])
    with pytest.raises(spaces.SpaceError, match="action_mask: must have 3 elements, not 2"):
        spaces.sample(start, rng, [1, 1])


@pytest.mark.parametrize(
    ("space", "action", "mask", "words"),
    [
        (Discrete(2), 1, None, ""),
        (Discrete(2), np.int64(1), None, ""),
        (Discrete(2), 2, None, "2 is not an integer from 0 to 1."),
        (Discrete(2), True, None, "True is not an integer from 0 to 1."),
        (Discrete(2), "left", None, "'left' is not an integer from 0 to 1."),
        (Discrete(2), None, None, "None is not an integer from 0 to 1."),
        (Discrete(2), 1, [1, 0], "1 is not allowed by action_mask."),
        (Box(-1, 1, (2,), "float32"), [0.1, 1.0], None, ""),
        (Box(-1, 1, (2,), "float32"), [0.1], None, "[0.1] must have the shape [2]."),
        (Box(-1, 1, (2,), "float32"), [[0.1], 2], None, "[[0.1], 2] must have the shape [2]."),
        (Box(-1, 1, (2,), "float32"), [0.1, 1.5], None, "1.5 is not between -1 and 1."),
        (Box(-1, 1, (2,), "float32"), [0.1, float("nan")], None, "nan is not between -1 and 1."),
        (Box(-1, 1, (2,), "float32"), [0.1, "x"], None, "'x' is not a number."),
        (Box(0, 9, (1,), "int64"), [1.5], None, "1.5 is not an integer."),
        (Box(0, 9, (1,), "int64"), [float("inf")], None, "inf is not an integer."),
        (MultiDiscrete([2, 3]), [1, 3], None, "3 is not between 0 and 2."),
        (MultiBinary(2), [0, 1], None, ""),
        (Dict(a=Discrete(2)), {"a": 5}, None, "a: 5 is not an integer from 0 to 1."),
        (Dict(a=Discrete(2)), {"b": 1}, None, "{'b': 1} must be an object with the keys a."),
        (Tuple(Discrete(2)), [1, 1], None, "[1, 1] must be a list of 1."),
        (MissionSpace(), 3, None, "3 is not a text."),
    ],
)
def test_why_an_action_is_illegal(space, action, mask, words):
    assert spaces.illegal(spaces.describe(space), action, mask) == words


def test_a_32_bit_bound_is_not_exceeded_by_rounding():
    box = spaces.describe(Box(-0.1, 0.1, (1,), "float32"))

    assert spaces.illegal(box, [0.1]) == spaces.illegal(box, [float(np.float32(0.1))]) == ""


@pytest.mark.parametrize(
    ("wanted", "given", "words"),
    [
        (Discrete(7), Discrete(7), ""),
        (Discrete(7), Discrete(2), "the policy needs Discrete(7), the environment has Discrete(2)"),
        (Discrete(7), Discrete(7, 1), "the policy needs Discrete(7), the environment has Discrete(7) from 1"),
        (Box(-1, 1, (4,), "float32"), Box(-1, 1, (4,), "float64"), ""),
        (Box(-np.inf, np.inf, (4,), "float32"), Box(-3.4e38, 3.4e38, (4,), "float32"), ""),
        (
            Box(0, 255, (7, 7, 3), "uint8"),
            Box(0, 1, (7, 7, 3), "float32"),
            "the policy needs Box(7, 7, 3) of uint8 from 0 to 255, "
            "the environment has Box(7, 7, 3) of float32 from 0 to 1",
        ),
        (Dict(a=Discrete(2)), Dict(a=Discrete(2)), ""),
        (
            Dict(a=Discrete(2)),
            Dict(a=Discrete(2), b=MissionSpace()),
            "the policy needs Dict(a: Discrete(2)), the environment has Dict(a: Discrete(2), b: Text)",
        ),
        (Tuple(MultiBinary(2)), Tuple(MultiBinary(2)), ""),
        (
            MultiDiscrete([2]),
            MultiDiscrete([3]),
            "the policy needs MultiDiscrete([2]), the environment has MultiDiscrete([3])",
        ),
    ],
)
def test_how_two_spaces_differ_in_words(wanted, given, words):
    assert spaces.difference(spaces.describe(wanted), spaces.describe(given)) == words


def test_a_space_that_was_not_given_is_not_compared():
    assert spaces.difference(TWO, None) == spaces.difference(None, TWO) == ""


def test_an_agent_with_other_spaces_is_refused():
    spaces.require(Agent(action_space=TWO), action_space=TWO, observation_space=CELLS)
    with pytest.raises(CommandError, match=r"^observation_space: the policy needs Box\(7, 7, 3\) of uint8"):
        spaces.require(Agent(observation_space=TWO), action_space=TWO, observation_space=CELLS)
