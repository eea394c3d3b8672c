"""The lanes of an evaluation: each a tile of its own process, and the picture of all of them."""

import gc
import os
import signal

import numpy as np
import pytest
from lanes import segments, wait_until
from mosaic_sdk.fastlane import FastLaneReader, LaneGrid, LaneRecorder, maybe_wrap_env
from mosaic_sdk.fastlane.control import LEASE, ControlPage, lane_name, remove_dead


class Counter:
    """An env whose picture shows the number of its steps, from 1 on, times ten."""

    render_mode = "rgb_array"

    def __init__(self, size=(2, 3)):
        self.steps, self.renders, self.size = 0, 0, size

    def reset(self):
        self.steps = 0
        return None, {}

    def step(self, action):
        self.steps += 1
        return None, 1.0, False, False, {}

    def render(self):
        self.renders += 1
        return np.full((*self.size, 3), 10 * (1 + self.steps), np.uint8)

    def close(self):
        pass


@pytest.fixture
def lane(run_id, monkeypatch):
    """Makes the env of a lane, as its process does."""
    made = []

    def make(index, size=(2, 3)):
        monkeypatch.setenv("MOSAIC_RUN_ID", run_id)
        monkeypatch.setenv("GYM_GUI_FASTLANE_ONLY", "1")
        monkeypatch.setenv("GYM_GUI_FASTLANE_VIDEO_MODE", "grid")
        monkeypatch.setenv("GYM_GUI_FASTLANE_GRID_LIMIT", "4")
        monkeypatch.setenv("CLEANRL_FASTLANE_INTERVAL_MS", "0")
        monkeypatch.setenv("GYM_GUI_FASTLANE_TILE", str(index + 1))
        # Numbers of envs are per process, and here all lanes are in one.
        monkeypatch.setattr("mosaic_sdk.fastlane.wrapper._slots.take", lambda: 0)
        made.append(maybe_wrap_env(Counter(size)))
        return made[-1]

    yield make
    for env in made:
        env.close()
    gc.collect()


@pytest.fixture
def grid(run_id):
    made = []

    def make(count, **options):
        made.append(LaneGrid(run_id, count, **options))
        return made[-1]

    yield make
    for grid in made:
        grid.close()


def test_a_lane_is_the_tile_that_its_slot_names_and_no_other(lane, run_id):
    env = lane(4)

    reader = FastLaneReader.attach(run_id, 1000, lane=4)
    env.reset()

    assert segments(run_id) == [f"mosaic.fastlane.{run_id}.t5", f"mosaic.fastlane.{run_id}.t5.1"]
    assert reader.latest_frame().pixels.max() == 10
    with pytest.raises(FileNotFoundError):
        FastLaneReader.attach(run_id, lane=0)


def test_a_second_env_of_the_process_has_no_tile(lane, run_id, monkeypatch):
    lane(0)
    monkeypatch.setattr("mosaic_sdk.fastlane.wrapper._slots.take", lambda: 1)

    assert isinstance(maybe_wrap_env(Counter()), Counter)
    assert segments(run_id) == [f"mosaic.fastlane.{run_id}.t1"]


def test_two_processes_cannot_have_one_tile(lane, run_id, capfd):
    first = lane(0)
    second = lane(0)

    assert not isinstance(first, Counter)
    assert isinstance(second, Counter)
    assert "tile 1 is in use" in capfd.readouterr().err


def test_the_recorder_gets_every_frame_and_the_first_too(lane, run_id):
    recorder = LaneRecorder(run_id, lane=0)
    env = lane(0)

    env.reset()
    seen = [recorder.frame().max()]
    for _ in range(20):
        env.step(0)
        seen.append(recorder.frame().max())

    assert seen == [10 * (1 + step) for step in range(21)]
    assert recorder.frame() is None
    recorder.close()


def test_after_the_recorder_the_lane_soon_stops_rendering(lane, run_id):
    recorder = LaneRecorder(run_id, lane=0)
    env = lane(0)
    env.reset()

    recorder.close()

    page = ControlPage.open(lane_name(run_id, 0))
    page.words[LEASE] = 1  # as two seconds later
    page.forget()
    before = env.env.renders
    for _ in range(50):
        env.step(0)
    assert env.env.renders == before


def test_the_grid_composes_nothing_without_a_viewer(lane, grid, run_id):
    picture = grid(2)
    envs = [lane(0), lane(1)]
    for env in envs:
        env.reset()
        env.step(0)

    assert not picture.refresh()
    assert [env.env.renders for env in envs] == [0, 0]


def test_the_grid_shows_every_lane_in_its_cell(lane, grid, run_id):
    picture = grid(3)
    viewer = FastLaneReader.attach(run_id, 1000)
    picture.refresh()  # makes the lanes render
    first, third = lane(0), lane(2)
    first.reset()
    third.reset()
    third.step(0)
    picture._next_ns = 0

    assert picture.refresh()

    pixels = viewer.latest_frame().pixels[:, :, 0]
    assert pixels.shape == (4, 6)
    cells = [pixels[:2, :3], pixels[:2, 3:], pixels[2:, :3], pixels[2:, 3:]]
    assert [set(cell.ravel()) for cell in cells] == [{10}, {0}, {20}, {0}]


def test_lanes_of_different_sizes_are_shown_whole(lane, grid, run_id):
    picture = grid(2)
    viewer = FastLaneReader.attach(run_id, 1000)
    picture.refresh()
    lane(0, (2, 3)).reset()
    lane(1, (4, 2)).reset()
    picture._next_ns = 0

    picture.refresh()

    pixels = viewer.latest_frame().pixels[:, :, 0]
    assert pixels.shape == (4, 6)
    assert (pixels[:2, :3] == 10).all()
    assert (pixels[:4, 3:5] == 10).all()


def test_a_full_dev_shm_is_reported_once_and_nothing_is_raised(grid, run_id, capfd, monkeypatch):
    picture = grid(1)
    FastLaneReader.attach(run_id, 1000)

    def refuse(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("mosaic_sdk.fastlane.ring.Ring.create", refuse)
    for _ in range(3):
        picture._next_ns = 0
        assert not picture.refresh()

    assert capfd.readouterr().err.count("no picture of all lanes for now") == 1


def test_a_viewer_who_comes_while_the_lanes_wait_finds_their_pictures(lane, grid, run_id):
    picture = grid(1, keep_rendered=True)
    picture.refresh()
    lane(0).reset()

    viewer = FastLaneReader.attach(run_id, 1000)
    picture._next_ns = 0
    picture.refresh()

    assert viewer.latest_frame().pixels.max() == 10


LANE = """
import sys
import numpy as np
from mosaic_sdk.fastlane import maybe_wrap_env
class Env:
    render_mode = "rgb_array"
    def reset(self): return None, {}
    def step(self, action): return None, 0.0, False, False, {}
    def render(self): return np.full((8, 8, 3), 7, np.uint8)
    def close(self): pass
env = maybe_wrap_env(Env())
env.reset()
print("ready", flush=True)
sys.stdin.read()
"""


def start_lane(scripts, run_id, index):
    names = {"ONLY": "1", "VIDEO_MODE": "grid", "TILE": str(index + 1)}
    env = {f"GYM_GUI_FASTLANE_{name}": value for name, value in names.items()}
    process = scripts.start(LANE, env={"MOSAIC_RUN_ID": run_id, **env})
    assert process.stdout.readline() == "ready\n"
    return process


def test_what_a_killed_lane_leaves_is_removed_by_the_janitor(scripts, run_id):
    recorders = [LaneRecorder(run_id, index) for index in range(2)]
    killed, alive = (start_lane(scripts, run_id, index) for index in range(2))
    assert len(segments(run_id)) == 4

    killed.send_signal(signal.SIGKILL)
    killed.wait()
    removed = remove_dead(run_id)

    assert removed == [lane_name(run_id, 0)]
    assert segments(run_id) == [lane_name(run_id, 1), f"{lane_name(run_id, 1)}.1"]
    for recorder in recorders:
        recorder.close()
    assert alive.poll() is None


def test_a_lane_that_is_started_again_takes_its_tile_over(scripts, grid, run_id):
    picture = grid(1)
    viewer = FastLaneReader.attach(run_id, 1000)
    picture.refresh()
    first = start_lane(scripts, run_id, 0)
    os.kill(first.pid, signal.SIGKILL)
    first.wait()
    start_lane(scripts, run_id, 0)

    def shows_the_lane():
        picture.refresh()
        frame = viewer.latest_frame()
        return frame is not None and frame.pixels.max() == 7

    wait_until(shows_the_lane)


def test_closing_the_grid_leaves_nothing_in_shared_memory(run_id):
    picture = LaneGrid(run_id, 3)
    FastLaneReader.attach(run_id, 1000)
    picture.refresh()
    LaneRecorder(run_id, 7).close()
    assert len(segments(run_id)) > 4

    picture.close()

    assert segments(run_id) == []
