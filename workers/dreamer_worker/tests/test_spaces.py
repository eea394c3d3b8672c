"""Spaces of Gymnasium envs become flat named spaces for the agent, and actions are converted back."""

import gymnasium
import numpy as np
import pytest
import zoo
from dreamer_worker.agent.spaces import Space
from dreamer_worker.envs import make_env, resize, stretch
from dreamer_worker.envs.controls import Controls
from dreamer_worker.envs.gymnasium import Gymnasium
from dreamer_worker.envs.library import BadEnv
from dreamer_worker.envs.sensors import Sensors
from gymnasium import spaces

INF = np.inf
F32 = np.finfo(np.float32).max
ACTIONS = {
    "choice": spaces.Discrete(3),
    "choice from -1": spaces.Discrete(3, start=-1),
    "only choice": spaces.Discrete(1),
    "choices": spaces.MultiDiscrete([3, 3]),
    "unequal choices": spaces.MultiDiscrete([3, 2, 4, 2]),
    "choices in rows": spaces.MultiDiscrete([[2, 3], [3, 2]], start=[[5, 0], [-2, 1]]),
    "small integers": spaces.MultiDiscrete([2, 2], dtype=np.int8),
    "switches": spaces.MultiBinary(4),
    "switches in rows": spaces.MultiBinary((2, 3)),
    "numbers": spaces.Box(-1, 1, (2,)),
    "lopsided": spaces.Box(np.float32([-0.1, 0.3, 5]), np.float32([0.7, 8, 5])),
    "in rows": spaces.Box(-2, 3, (2, 3)),
    "one number": spaces.Box(0.1, 0.7, ()),
    "precise": spaces.Box(-1e-3, 1e3, (2,), np.float64),
    "boundless": spaces.Box(-INF, INF, (2,)),
    "as large as can be": spaces.Box(-F32, F32, (2,)),
    "half bounded": spaces.Box(np.float32([4, -INF, 0, -INF]), np.float32([INF, -3, INF, 0.5])),
    "integers": spaces.Box(-2, 3, (2,), np.int64),
    "all integers": spaces.Box(np.iinfo(np.int64).min, np.iinfo(np.int64).max, (2,), np.int64),
    "bytes": spaces.Box(0, 255, (2,), np.uint8),
    "yes or no": spaces.Box(0, 1, (2,), bool),
    "dict": spaces.Dict({"b": spaces.Discrete(2), "a": spaces.Box(0, 1, (1,))}),
    "tuple": spaces.Tuple((spaces.Discrete(2), spaces.MultiDiscrete([2, 3]))),
    "nest": spaces.Dict(
        {"x": spaces.Tuple((spaces.Dict({"y": spaces.Discrete(2)}), spaces.Tuple((spaces.Discrete(3),))))}
    ),
    "with empty parts": spaces.Dict(
        {"a": spaces.Discrete(2), "no": spaces.Box(0, 1, (0, 2)), "none": spaces.Tuple(()), "nil": spaces.Dict({})}
    ),
}
OBSERVATIONS = {
    **ACTIONS,
    "an image": spaces.Box(0, 255, (48, 80, 3), np.uint8),
    "a small board": spaces.Box(0, 10, (7, 7, 3), np.uint8),
    "a history": spaces.Box(0, 255, (4, 128), np.uint8),
}


def alike(one, other):
    """The same nesting, types, shapes and dtypes."""
    if isinstance(one, dict | tuple):
        keys = list(one) if isinstance(one, dict) else range(len(one))
        return type(one) is type(other) and len(one) == len(other) and all(alike(one[key], other[key]) for key in keys)
    return type(one) is type(other) and (one.shape, one.dtype) == (other.shape, other.dtype)


def drawn(found, rng):
    return {key: space.sample(rng) for key, space in found.items()}


class Shown(gymnasium.Env):
    """An env that shows one given thing."""

    action_space = spaces.Discrete(2)

    def __init__(self, space, value=None, reward=0.0):
        self.observation_space, self.value, self.reward = space, value, reward

    def reset(self, seed=None, options=None):
        return self.observation_space.sample() if self.value is None else self.value, {}

    def step(self, action):
        return self.reset()[0], self.reward, False, False, {}


def read(space, value, size=(64, 64)):
    return Sensors(space, size)(value)


# Actions


@pytest.mark.parametrize("kind", ACTIONS)
def test_every_action_the_agent_may_choose_is_one_of_the_envs_own(kind):
    space, rng = ACTIONS[kind], np.random.default_rng(0)
    controls = Controls(space)

    for _ in range(100):
        action = controls(drawn(controls.spaces, rng))
        assert space.contains(action), action
        assert alike(action, space.sample())


def test_the_largest_action_is_not_rounded_out_of_its_bounds():
    low, high = np.sort(np.random.default_rng(0).uniform(-3, 3, (2, 500)), 0)
    space = spaces.Box(low, high, dtype=np.float64)

    for given in (-1, 1):
        action = Controls(space)({"action": np.full(500, given, np.float32)})
        assert space.contains(action)


@pytest.mark.parametrize("kind", ["choices in rows", "unequal choices", "choice from -1", "switches", "nest", "tuple"])
def test_every_choice_of_the_env_can_be_made(kind):
    space, rng = ACTIONS[kind], np.random.default_rng(0)
    controls = Controls(space)

    found = {str(controls(drawn(controls.spaces, rng))) for _ in range(1000)}

    assert found == {str(space.sample()) for _ in range(1000)}


def test_an_action_is_assembled_from_its_named_parts():
    controls = Controls(zoo.Zoo.action_space)
    assert controls.spaces == {
        "action/walk": Space("int32", (), 0, 3),
        "action/arms/0": Space("int32", (2,), 0, 3),
        "action/arms/1/of2": Space("int32", (2,), 0, 2),
        "action/arms/1/of4": Space("int32", (1,), 0, 4),
        "action/hold": Space("bool", (4,)),
        "action/turn/wheel": Space("float32", (2,), -1, 1),
        "action/gear": Space("float32", (1,), -1, 1),
    }

    action = controls(
        {
            "action/walk": np.int32(2),
            "action/arms/0": np.int32([0, 2]),
            "action/arms/1/of2": np.int32([0, 1]),
            "action/arms/1/of4": np.int32([3]),
            "action/hold": np.asarray([True, False, False, True]),
            "action/turn/wheel": np.float32([1, -9]),
            "action/gear": np.float32([0.1]),
        }
    )

    assert action["walk"] == 7
    assert [part.tolist() for part in action["arms"]] == [[0, 2], [1, 3, 0]]
    assert action["hold"].tolist() == [[1, 0], [0, 1]]
    np.testing.assert_allclose(action["turn"]["wheel"], [0.7, 0.3], rtol=1e-6)
    assert action["gear"] == [4]  # 3.75, not cut off to 3
    assert action["none"].shape == (0,)


def test_a_single_part_keeps_the_name_that_checkpoints_use():
    for space in (spaces.Discrete(2), spaces.Box(-1, 1, (2, 2)), spaces.MultiDiscrete([3, 3]), spaces.MultiBinary(2)):
        assert list(Controls(space).spaces) == ["action"]
    assert list(Sensors(spaces.Discrete(2), (64, 64)).spaces) == ["vector"]
    assert list(Sensors(spaces.Box(0, 255, (16, 16, 3), np.uint8), (64, 64)).spaces) == ["image"]


@pytest.mark.parametrize(
    ("low", "high", "found"),
    [
        (-INF, INF, [-1, 0, 1]),
        (4, INF, [4, 5, 6]),
        (-INF, -3, [-5, -4, -3]),
        (-9, INF, [-1, 0, 1]),
        (0, 9, [0, 4.5, 9]),
    ],
)
def test_where_a_bound_is_missing_two_units_next_to_the_middle_are_played(low, high, found):
    bounds = np.full(3, low, np.float32), np.full(3, high, np.float32)

    assert stretch([-1, 0, 1], *bounds).tolist() == found


# Observations


@pytest.mark.parametrize("kind", OBSERVATIONS)
def test_every_observation_of_the_env_is_read_as_the_spaces_say(kind):
    env = Gymnasium(Shown(OBSERVATIONS[kind]))

    for obs in [env.reset()] + [env.step({"action": 1}) for _ in range(20)]:
        for key, space in env.obs_space.items():
            assert (obs[key].shape, obs[key].dtype.name) == (space.shape, space.dtype)
            assert np.isfinite(obs[key]).all()
            assert not space.discrete or space.is_image or 0 <= obs[key].min() <= obs[key].max() < space.classes


def test_an_observation_is_taken_apart_into_its_named_parts():
    sensors = Sensors(zoo.Zoo.observation_space, (64, 64))
    assert sensors.spaces == {
        "camera": Space("uint8", (64, 64, 3)),
        "arm/speed": Space("float32", (2,)),
        "arm/held": Space("bool", (3,)),
        "dice/of2": Space("int32", (1,), 0, 2),
        "dice/of6": Space("int32", (2,), 0, 6),
        "mode": Space("int32", (), 0, 4),
        "pair/0": Space("float32", ()),
        "pair/1": Space("int32", (), 0, 2),
        "obs/action": Space("float32", (2,)),
    }
    seen = zoo.Zoo.observation_space.sample() | {
        "arm": {"speed": np.asarray([1e300, -2.5]), "held": np.int8([1, 0, 1])},
        "dice": np.asarray([5, 1, 0]),
        "mode": np.int64(-2),
        "pair": (np.int32(7), np.int64(1)),
    }

    obs = sensors(seen)

    assert obs["arm/speed"].tolist() == [F32, -2.5]
    assert obs["arm/held"].tolist() == [True, False, True]
    assert (obs["dice/of6"].tolist(), obs["dice/of2"].tolist()) == ([5, 0], [1])
    assert (obs["mode"], obs["pair/0"], obs["pair/1"]) == (0, 7, 1)
    np.testing.assert_array_equal(obs["obs/action"], seen["action"])


@pytest.mark.parametrize("name", ["reward", "is_first", "action", "policy", "continue", "stepid", "total"])
def test_a_part_whose_name_means_something_else_gets_another(name):
    assert list(Sensors(spaces.Dict({name: spaces.Discrete(2)}), (64, 64)).spaces) == [f"obs/{name}"]


def test_a_part_is_never_taken_for_the_logs_or_the_agents_own():
    inner = spaces.Dict({"speed": spaces.Discrete(2)})

    found = Sensors(spaces.Dict({"log": inner, "dyn": inner, "action": inner}), (64, 64)).spaces

    assert set(found) == {"obs/log/speed", "obs/dyn/speed", "obs/action/speed"}


def test_names_that_would_be_the_same_are_refused():
    twice = spaces.Dict({"a/b": spaces.Discrete(2), "a": spaces.Dict({"b": spaces.Discrete(2)})})

    with pytest.raises(ValueError, match="both be called 'a/b'"):
        Sensors(twice, (64, 64))
    with pytest.raises(ValueError, match="both be called 'action/a/b'"):
        Controls(twice)


# Pictures


@pytest.mark.parametrize(
    ("shape", "channels"),
    [
        ((64, 64, 3), 3),
        ((210, 160, 3), 3),
        ((3, 96, 72), 3),
        ((84, 84), 1),
        ((84, 84, 1), 1),
        ((1, 84, 84), 1),
        ((20, 30, 2), 2),
        ((4, 84, 84), 4),
        ((64, 64, 4), 4),
        ((84, 84, 9), 9),
        ((4, 84, 84, 3), 12),
        ((4, 3, 84, 84), 12),
    ],
)
def test_a_picture_of_any_shape_becomes_height_width_and_channels(shape, channels):
    space = spaces.Box(0, 255, shape, np.uint8)
    sensors = Sensors(space, (64, 80))

    found = sensors(space.sample())["image"]

    assert sensors.spaces == {"image": Space("uint8", (64, 80, channels))}
    assert (found.shape, found.dtype) == ((64, 80, channels), np.uint8)


def test_the_axes_of_a_picture_are_put_in_order_pixel_by_pixel():
    picture = np.random.default_rng(0).integers(0, 256, (64, 64, 3), np.uint8)
    first = picture.transpose(2, 0, 1)
    stack = np.stack([picture, 255 - picture])

    assert np.array_equal(read(spaces.Box(0, 255, picture.shape, np.uint8), picture)["image"], picture)
    assert np.array_equal(read(spaces.Box(0, 255, first.shape, np.uint8), first)["image"], picture)
    for frames in (stack, stack.transpose(0, 3, 1, 2)):
        found = read(spaces.Box(0, 255, frames.shape, np.uint8), frames)["image"]
        assert np.array_equal(found, np.concatenate([*stack], -1))


@pytest.mark.parametrize("channels", [2, 4, 6])
def test_channels_that_are_not_colours_are_scaled_separately(channels):
    picture = np.random.default_rng(0).integers(0, 256, (40, 40, channels), np.uint8)

    found = resize(picture, (64, 64))

    for index in range(channels):
        assert np.array_equal(found[..., index], resize(picture[..., index, None], (64, 64))[..., 0])


@pytest.mark.parametrize(
    ("dtype", "low", "high"), [(np.float32, 0, 1), (np.float64, -1, 1), (np.float32, 0, 255), (np.int32, 0, 255)]
)
def test_a_picture_of_other_numbers_is_scaled_to_bytes(dtype, low, high):
    wanted = np.random.default_rng(0).integers(0, 256, (64, 64, 3), np.uint8)
    picture = (low + wanted / 255 * (high - low)).astype(dtype)
    if dtype == np.int32:
        picture = wanted.astype(dtype)

    assert np.array_equal(read(spaces.Box(low, high, picture.shape, dtype), picture)["image"], wanted)


@pytest.mark.parametrize(
    "space",
    [
        spaces.Box(0, 255, (7, 7, 3), np.uint8),
        spaces.Box(0, 1, (8, 20, 20), bool),
        spaces.Box(-INF, INF, (64, 64, 3)),
        spaces.Box(0, 1, (64, 64)),
        spaces.Box(0, 9, (20, 20, 2), np.int32),
    ],
    ids=str,
)
def test_boards_and_matrices_stay_numbers(space):
    found = Sensors(space, (64, 64)).spaces["vector"]

    assert found.shape == space.shape
    assert found.dtype == ("bool" if space.dtype == bool else "float32")


# Refusals


@pytest.mark.parametrize(
    "space",
    [
        spaces.Sequence(spaces.Discrete(2)),
        spaces.Graph(spaces.Box(0, 1), spaces.Discrete(2)),
        spaces.OneOf((spaces.Discrete(2), spaces.Box(0, 1))),
        spaces.Text(5),
    ],
    ids=lambda space: type(space).__name__,
)
def test_what_has_no_fixed_size_is_refused_with_what_to_do(space):
    with pytest.raises(ValueError, match=r"'vector' is .*TransformObservation makes a Box"):
        Sensors(space, (64, 64))
    with pytest.raises(ValueError, match=r"'action/deep' is .*TransformAction"):
        Controls(spaces.Dict({"deep": space}))


def test_a_text_beside_other_observations_is_left_out():
    found = Sensors(spaces.Dict({"words": spaces.Text(9), "speed": spaces.Box(0, 1, (2,))}), (64, 64))

    assert set(found.spaces) == {"speed"}


@pytest.mark.parametrize(
    "space", [spaces.Dict({}), spaces.Tuple(()), spaces.Box(0, 1, (0,)), spaces.MultiDiscrete([])], ids=str
)
def test_an_env_without_observations_or_actions_is_refused(space):
    with pytest.raises(ValueError, match="contains no observation"):
        Sensors(space, (64, 64))
    with pytest.raises(ValueError, match="has no action to choose"):
        Controls(space)


@pytest.mark.parametrize(
    ("seen", "words"),
    [
        ({"speed": [0.0, np.nan]}, "'speed' .* NaN or infinity"),
        ({"speed": [0.0, INF]}, "'speed' .* NaN or infinity"),
        ({"speed": [0.0, 1.0, 2.0]}, "'speed' does not match the env's space.*size 3 into shape"),
        ({}, "'speed' does not match the env's space: 'speed'"),
    ],
)
def test_an_observation_that_is_not_what_the_space_says_is_named(seen, words):
    env = Gymnasium(Shown(spaces.Dict({"speed": spaces.Box(-INF, INF, (2,))}), seen))

    with pytest.raises(ValueError, match=words):
        env.reset()


def test_a_reward_may_be_an_array_of_one_and_must_be_a_number():
    space = spaces.Discrete(2)
    env = Gymnasium(Shown(space, reward=np.full((1, 1), 2.5)))
    assert env.step({"action": 0})["reward"].shape == ()
    assert env.step({"action": 0})["reward"] == 2.5

    for wrong in (np.nan, INF, [1.0, 2.0]):
        with pytest.raises(ValueError, match="which is not a number"):
            Gymnasium(Shown(space, reward=wrong)).step({"action": 0})


# Envs of other packages, with frames or without


def test_an_env_of_another_package_is_named_by_both():
    for task in ("gym_zoo:Zoo-v0", "zoo:Zoo-v0"):
        env = make_env(task, seed=1)
        assert "action/walk" in env.act_space
        env.close()


def test_a_missing_package_is_named():
    with pytest.raises(ValueError, match="package 'dummy_pkg', which is not installed"):
        make_env("dummy_pkg:Env-v0")


@pytest.mark.parametrize(
    ("task", "words"),
    [
        ("CartPol-v1", "Did you mean: `CartPole`"),
        ("CartPole-v77", "version"),
        ("zoo:Nobody-v0", "`Nobody` doesn't exist"),
    ],
)
def test_an_env_that_gymnasium_does_not_know_is_a_config_error(task, words):
    with pytest.raises(BadEnv, match=f"^env: .*{words}"):
        make_env(task)


@pytest.mark.parametrize("name", ["Zoo-v0", "Blind-v0", "Lambda-v0"])
def test_an_env_that_cannot_render_is_played_without_frames(name):
    env = make_env(f"zoo:{name}")

    env.reset()

    assert env.render() is None


def test_an_env_renders_by_default():
    for options, shape in (({}, (4, 4, 3)), ({"render_mode": None}, ())):
        env = make_env("zoo:Painted-v0", **options)
        env.reset()
        assert np.shape(env.render()) == shape
