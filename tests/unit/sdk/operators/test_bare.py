"""The environment below its wrappers."""

import enum

import pytest
from mosaic_sdk.operators.bare import Bare


class Env:
    """Counts its resets; the third step ends an episode."""

    observation_space, action_space = "seen", "done"

    def __init__(self):
        self.info = {}
        self.resets = self.steps = 0

    @property
    def unwrapped(self):
        return self

    def reset(self, seed=None, options=None):
        self.resets, self.steps = self.resets + 1, 0
        return self.resets, {}

    def step(self, action):
        self.steps += 1
        return None, float(action), self.steps == 3, False, self.info


class Grid(Env):
    pass


Grid.__module__ = "minigrid.envs.empty"


def play(env, bare, actions):
    bare.forget()
    env.reset(seed=1)
    for action in actions:
        env.step(action)
    return bare.success


def test_the_first_observation_is_that_of_the_first_reset():
    env = Env()
    bare = Bare(env)
    env.reset()
    env.reset()
    assert bare.first == 1

    bare.forget()
    env.reset()

    assert bare.first == 3
    assert (bare.observation_space, bare.action_space) == ("seen", "done")


@pytest.mark.parametrize(
    ("info", "success"), [({}, None), ({"success": 1}, True), ({"is_success": False}, False), (None, None)]
)
def test_success_is_what_the_info_says(info, success):
    env = Env()
    env.info = info

    assert play(env, Bare(env), [0]) is success


def test_in_a_grid_success_is_the_reward_at_the_end():
    env = Grid()
    bare = Bare(env)

    assert [play(env, bare, actions) for actions in ([0, 0, 1], [0, 0, 0], [0])] == [True, False, False]


def test_the_names_of_actions_are_those_of_the_environment():
    class Atari(Env):
        def get_action_meanings(self):
            return ["NOOP", "FIRE"]

    class Enumerated(Env):
        actions = enum.IntEnum("actions", ["left", "right"], start=0)

    class Listed(Env):
        actions = (1, 2)  # nothing that names them

    assert Bare(Atari()).actions == [{"value": 0, "name": "noop"}, {"value": 1, "name": "fire"}]
    assert Bare(Enumerated()).actions == [{"value": 0, "name": "left"}, {"value": 1, "name": "right"}]
    assert Bare(Listed()).actions is None
