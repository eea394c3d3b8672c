import copy
import errno
import gc
import os
import pickle
import time

import numpy as np
import pytest
from lanes import segments
from mosaic_sdk.fastlane import FastLaneReader, is_fastlane_enabled, maybe_wrap_env
from mosaic_sdk.fastlane.scale import shrink


class Duck:
    """An env without a library: it counts its steps, and its picture shows the count."""

    render_mode = "rgb_array"
    special = "its own"

    def __init__(self, value=0, length=10, reward=1.0, size=(4, 6)):
        self.value, self.length, self.reward, self.size = value, length, reward, size
        self.steps = self.renders = self.closed = 0

    def reset(self, seed=None, options=None):
        self.steps = 0
        return "first", {"seed": seed}

    def step(self, action):
        self.steps += 1
        return action, self.reward, self.steps >= self.length, False, {}

    def render(self):
        self.renders += 1
        return np.full((*self.size, 3), (self.value + self.steps) % 256, np.uint8)

    def close(self):
        self.closed += 1


@pytest.fixture
def fastlane(run_id, monkeypatch):
    """Sets the variables for frames; every frame is shown by default."""

    def set_variables(mode="single", slot=0, limit=4, interval_ms=0, max_dim=0):
        monkeypatch.setenv("MOSAIC_RUN_ID", run_id)
        monkeypatch.setenv("GYM_GUI_FASTLANE_ONLY", "1")
        monkeypatch.setenv("GYM_GUI_FASTLANE_VIDEO_MODE", mode)
        monkeypatch.setenv("GYM_GUI_FASTLANE_SLOT", str(slot))
        monkeypatch.setenv("GYM_GUI_FASTLANE_GRID_LIMIT", str(limit))
        monkeypatch.setenv("CLEANRL_FASTLANE_INTERVAL_MS", str(interval_ms))
        monkeypatch.setenv("CLEANRL_FASTLANE_MAX_DIM", str(max_dim))

    set_variables()
    yield set_variables
    gc.collect()  # free the slots of this test's envs for the next test


@pytest.fixture
def shown(fastlane):
    env = maybe_wrap_env(Duck())
    yield env
    env.close()


def watch(run_id, **options):
    return FastLaneReader.attach(run_id, **{"lease_s": 1000, **options})


def test_every_step_that_is_watched_is_shown(shown, run_id):
    reader = watch(run_id)
    for step in range(1, 6):
        assert shown.step("left") == ("left", 1.0, False, False, {})

        frame = reader.latest_frame()
        assert set(frame.pixels.ravel()) == {step}
        assert frame.metrics.last_reward == 1.0


@pytest.mark.parametrize(
    ("size", "seen"),
    [
        ((8, 12, 3), (8, 12, 3)),
        ((3, 6, 3), (3, 6, 3)),
        ((6, 4, 3), (6, 4, 3)),
        ((4, 6, 4), (4, 6, 4)),
        ((4, 6), (4, 6, 1)),
        ((4, 6, 1), (4, 6, 3)),  # gray spread over the colours, which looks the same
    ],
    ids=str,
)
def test_a_picture_that_changes_its_shape_is_shown_in_the_new_one(shown, run_id, size, seen):
    reader = watch(run_id)
    shown.step(0)
    shown.step(0)

    shown.env.render = lambda: np.full(size, 77, np.uint8)
    shown.step(0)

    pixels = reader.latest_frame().pixels
    assert (set(pixels.ravel()), pixels.shape) == ({77}, seen)


@pytest.mark.parametrize("size", [(1, 6, 3), (4, 1, 3), (6, 3)], ids=str)
def test_a_picture_that_numpy_would_broadcast_is_found_by_the_next_close_look(shown, run_id, monkeypatch, size):
    now = [time.monotonic_ns()]
    monkeypatch.setattr("mosaic_sdk.fastlane.lane._monotonic_ns", lambda: now[0])
    reader = watch(run_id)
    shown.step(0)

    shown.env.render = lambda: np.full(size, 77, np.uint8)
    now[0] += 250_000_000
    shown.step(0)

    assert reader.latest_frame().pixels.shape[:2] == size[:2]


@pytest.mark.parametrize("kind", [np.float64, np.bool_, np.int64], ids=lambda kind: kind.__name__)
def test_a_picture_of_other_numbers_is_shown_as_bytes(shown, run_id, kind):
    reader = watch(run_id)
    shown.step(0)

    for _ in range(2):
        shown.env.render = lambda: np.full((4, 6, 3), 1, kind)
        shown.step(0)
        assert set(reader.latest_frame().pixels.ravel()) == {1}


def test_the_first_picture_comes_with_the_reset(shown, run_id):
    reader = watch(run_id)

    assert shown.reset(seed=3) == ("first", {"seed": 3})

    assert set(reader.latest_frame().pixels.ravel()) == {0}


def test_without_a_viewer_nothing_is_rendered(shown, run_id):
    shown.reset()
    for _ in range(100):
        shown.step(0)

    assert shown.env.renders == 0
    assert segments(run_id) == [f"mosaic.fastlane.{run_id}"]


def test_the_throttle_is_checked_before_the_env_is_rendered(fastlane, run_id):
    fastlane(interval_ms=1e6)
    env = maybe_wrap_env(Duck())
    watch(run_id)

    for _ in range(50):
        env.step(0)

    assert env.env.renders == 1
    env.close()


@pytest.mark.parametrize(("step_s", "stride"), [(1e-6, 16), (1e-5, 16), (2.4e-4, 4), (1e-2, 1), (10.0, 1)])
@pytest.mark.parametrize("before_s", [1e-6, 1.0], ids=["quick", "slow"])
def test_the_faster_the_steps_the_fewer_check_for_a_viewer(fastlane, run_id, monkeypatch, before_s, step_s, stride):
    now_s = [1.0]
    monkeypatch.setattr("mosaic_sdk.fastlane.lane._monotonic", lambda: now_s[0])
    fastlane(interval_ms=32)
    env = maybe_wrap_env(Duck(length=10**9))

    def play(steps, each_s):
        """How many of the steps checked for a viewer."""
        planned = set()
        for _ in range(steps):
            now_s[0] += each_s
            env.step(0)
            planned.add(env._lane.next_look)
        return len(planned)

    play(40_000, before_s)
    play(int(0.1 / step_s) + 32, step_s)
    assert play(160, step_s) in (160 / stride, 160 / stride + 1)
    env.close()


def test_frames_that_were_removed_are_recreated_within_a_second(shown, run_id, monkeypatch):
    watch(run_id)
    shown.step(0)
    os.unlink(f"/dev/shm/mosaic.fastlane.{run_id}.1")

    monkeypatch.setattr("mosaic_sdk.fastlane.lane._monotonic", lambda: time.monotonic() + 1.0)
    shown.step(0)

    assert segments(run_id) == [f"mosaic.fastlane.{run_id}", f"mosaic.fastlane.{run_id}.2"]
    assert set(watch(run_id).latest_frame().pixels.ravel()) == {2}


def test_the_script_sees_its_env(shown):
    assert (shown.special, shown.render_mode) == ("its own", "rgb_array")
    with pytest.raises(AttributeError, match="no_such_thing"):
        shown.no_such_thing  # noqa: B018
    shown.env.step = lambda action: 1 / 0
    with pytest.raises(ZeroDivisionError):
        shown.step(0)


@pytest.mark.parametrize("again", [copy.deepcopy, lambda env: pickle.loads(pickle.dumps(env))], ids=["copy", "pickle"])
def test_a_copy_is_the_env_without_frames(shown, run_id, again):
    shown.step(0)

    copied = again(shown)

    copied.step(0)
    assert (type(copied), copied.steps, shown.env.steps) == (Duck, 2, 1)


def test_the_rolling_return_is_smoothed_over_episodes(fastlane, run_id):
    env = maybe_wrap_env(Duck(length=10, reward=2.0))
    reader = watch(run_id)

    def play():
        for _ in range(10):
            env.step(0)
        env.reset()
        return reader.latest_frame().metrics.rolling_return

    first = play()
    env.env.reward = 12.0
    second = play()

    assert (first, second) == (20.0, 20.0 + 0.1 * (120.0 - 20.0))
    env.close()


def test_the_step_rate_counts_the_steps_that_were_not_shown(fastlane, run_id, monkeypatch):
    now = [time.monotonic_ns()]  # the lease is on the same clock
    monkeypatch.setattr("mosaic_sdk.fastlane.lane._monotonic_ns", lambda: now[0])
    env = maybe_wrap_env(Duck(length=10**9))
    for _ in range(499):
        env.step(0)
    now[0] += 2 * 10**9
    reader = watch(run_id)

    env.step(0)

    assert reader.latest_frame().metrics.step_rate_hz == 250.0
    env.close()


def test_closing_the_env_removes_its_lane_and_frees_its_slot(fastlane, run_id):
    for _ in range(3):
        env = maybe_wrap_env(Duck())
        watch(run_id)
        env.step(0)
        assert len(segments(run_id)) == 2

        env.close()

        assert (env.env.closed, segments(run_id)) == (1, [])


def test_the_lane_of_an_env_that_is_dropped_is_removed(fastlane, run_id):
    env = maybe_wrap_env(Duck())
    assert segments(run_id)

    del env
    gc.collect()

    assert segments(run_id) == []


class Blind(Duck):
    def render(self):
        raise RuntimeError("no display")


class Empty(Duck):
    def render(self):
        return None


@pytest.mark.parametrize(("kind", "word"), [(Blind, "no display"), (Empty, "no picture")])
def test_an_env_that_cannot_render_continues_with_a_note(fastlane, run_id, capfd, kind, word):
    env = maybe_wrap_env(kind())
    watch(run_id)

    outcomes = [env.step(7) for _ in range(5)]

    assert outcomes == [(7, 1.0, False, False, {})] * 5
    assert capfd.readouterr().err.count(word) == 1
    assert segments(run_id) == []
    env.close()


@pytest.mark.parametrize("reward", [None, "much", np.zeros(2)], ids=["none", "text", "vector"])
def test_a_reward_of_any_kind_reaches_the_script(fastlane, run_id, reward):
    env = maybe_wrap_env(Duck(reward=reward, length=3))
    watch(run_id)

    assert all(env.step(0)[1] is reward for _ in range(5))
    env.close()


def test_a_full_dev_shm_is_a_note_and_the_frames_come_back(fastlane, run_id, monkeypatch, capfd):
    monkeypatch.setattr("mosaic_sdk.fastlane.lane._RETRY_NS", 0)
    env = maybe_wrap_env(Duck())
    reader = watch(run_id)

    def full(*_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr(os, "posix_fallocate", full)
        env.step(0)
        env.step(0)
    assert capfd.readouterr().err.count("No space left") == 1
    env.step(0)

    assert set(reader.latest_frame().pixels.ravel()) == {3}
    env.close()


@pytest.mark.parametrize("mode", [None, "human", "rgb_array_list"])
def test_only_rgb_array_is_rendered_for_viewers(fastlane, run_id, mode, capfd):
    env = Duck()
    env.render_mode = mode

    assert maybe_wrap_env(env) is env

    assert segments(run_id) == []
    assert f"{mode!r}" in capfd.readouterr().err


@pytest.mark.parametrize(("name", "value"), [("ONLY", "0"), ("VIDEO_MODE", "off")])
def test_an_env_is_not_wrapped_when_frames_are_off(fastlane, run_id, monkeypatch, name, value):
    monkeypatch.setenv(f"GYM_GUI_FASTLANE_{name}", value)
    env = Duck()

    assert maybe_wrap_env(env) is env
    assert not is_fastlane_enabled()


def test_single_shows_the_env_of_its_slot(fastlane, run_id):
    fastlane(slot=1)
    envs = [maybe_wrap_env(Duck(value=100 * n)) for n in range(3)]
    reader = watch(run_id)

    for env in envs:
        env.step(0)

    assert [type(env) is Duck for env in envs] == [True, False, True]
    assert set(reader.latest_frame().pixels.ravel()) == {101}
    envs[1].close()


def test_two_runs_do_not_change_each_others_lanes(fastlane, run_id, monkeypatch):
    first = maybe_wrap_env(Duck())
    monkeypatch.setenv("MOSAIC_RUN_ID", f"{run_id}-b")
    monkeypatch.setenv("GYM_GUI_FASTLANE_SLOT", "1")
    second = maybe_wrap_env(Duck())
    readers = watch(run_id), watch(f"{run_id}-b")

    first.step(0)
    second.close()

    assert readers[0].latest_frame().number == 1
    assert segments(run_id) == [f"mosaic.fastlane.{run_id}", f"mosaic.fastlane.{run_id}.1"]
    first.close()


def test_a_grid_shows_the_newest_frame_of_every_env(fastlane, run_id):
    fastlane(mode="grid", limit=3)
    envs = [maybe_wrap_env(Duck(value=50 * n, length=99)) for n in range(4)]
    reader = watch(run_id)

    for _ in range(3):  # slot 0 finds the tiles, the tiles are watched and paint, slot 0 shows them
        for env in envs:
            env.step(0)

    pixels = reader.latest_frame().pixels
    assert pixels.shape == (8, 12, 3)
    corners = [set(pixels[y : y + 4, x : x + 6].ravel()) for y in (0, 4) for x in (0, 6)]
    assert corners == [{3}, {52}, {102}, {0}]
    assert type(envs[3]) is Duck
    for env in envs:
        env.close()
    assert segments(run_id) == []


def test_the_tiles_of_an_unwatched_grid_are_not_rendered(fastlane, run_id):
    fastlane(mode="grid")
    envs = [maybe_wrap_env(Duck()) for _ in range(2)]

    for env in envs:
        env.step(0)

    assert [env.env.renders for env in envs] == [0, 0]
    for env in envs:
        env.close()


def test_a_large_picture_is_shrunk_to_the_means_of_its_areas(fastlane, run_id):
    fastlane(max_dim=3)
    env = maybe_wrap_env(Duck(size=(4, 6)))
    reader = watch(run_id)

    env.step(0)

    assert reader.latest_frame().pixels.shape == (2, 3, 3)
    env.close()


@pytest.mark.parametrize(("size", "max_dim"), [((90, 60), 30), ((600, 400), 512), ((31, 47), 13)])
def test_shrinking_keeps_the_mean_and_the_shape(size, max_dim):
    image = np.random.default_rng(1).integers(0, 256, (*size, 3), np.uint8)

    small = shrink(image, max_dim)

    assert max(small.shape[:2]) == max_dim
    assert abs(small.shape[0] / small.shape[1] - size[0] / size[1]) < 0.06
    assert np.allclose(small.mean((0, 1)), image.mean((0, 1)), atol=0.6)
    assert small.std() < image.std()


def test_shrinking_by_a_whole_number_is_the_mean_of_the_blocks():
    image = np.random.default_rng(2).integers(0, 256, (8, 12, 3), np.uint8)

    blocks = image.reshape(4, 2, 6, 2, 3).mean((1, 3))

    assert np.abs(shrink(image, 6) - blocks).max() <= 0.5
