"""The screen, the numbers and the files of `mosaic frames`, without a run."""

import io
import os
import re
import shutil
import sys
import time

import numpy as np
import pytest
from PIL import Image

from mosaic.cli.frame_files import check_target
from mosaic.cli.frames import Screen
from mosaic.cli.halfblocks import draw
from mosaic.client import Frame
from mosaic.model.errors import MosaicError
from mosaic.present.frame_facts import Rate, describe
from mosaic.present.frame_files import Clip, save_png


def frame(number=1, when_s=0.0, cost_ns=0, shape=(40, 60, 3)):
    pixels = np.full(shape, number % 256, np.uint8)
    return Frame(pixels, number, 1.0, 21.5, 12_345.0, int(when_s * 1e9), cost_ns, is_shared=True)


def test_a_picture_is_drawn_with_two_pixels_per_character():
    pixels = np.zeros((4, 2, 3), np.uint8)
    pixels[0] = (255, 0, 0)
    pixels[3, 1] = (0, 0, 255)

    lines = draw(pixels, columns=10, rows=10)

    assert lines == [
        "\x1b[38;2;255;0;0;48;2;0;0;0m▀▀\x1b[0m",
        "\x1b[38;2;0;0;0;48;2;0;0;0m▀\x1b[38;2;0;0;0;48;2;0;0;255m▀\x1b[0m",
    ]


@pytest.mark.parametrize("shape", [(400, 600, 3), (10, 1000, 1), (1000, 10, 4), (210, 160, 3)])
def test_a_picture_fits_its_terminal(shape):
    lines = draw(np.zeros(shape, np.uint8), columns=80, rows=22)

    assert len(lines) <= 22
    assert all(len(re.sub("\x1b[^m]*m", "", line)) <= 80 for line in lines)


def test_the_rate_counts_frames_that_were_not_shown():
    rate = Rate()
    for number, when_s in ((10, 0.0), (25, 0.5), (40, 1.0)):
        rate.count(frame(number, when_s))

    assert rate.fps == 30.0


def test_the_rate_ignores_old_frames_and_those_of_a_replaced_env():
    rate = Rate()
    for number, when_s in ((0, 0.0), (1, 10.0), (21, 11.0)):
        rate.count(frame(number, when_s))
    assert rate.fps == 20.0

    rate.count(frame(1, 11.1))

    assert rate.fps == 0.0


def test_the_line_shows_the_cost_of_watching_if_it_is_known():
    rate = Rate()
    rate.count(frame(1, 0.0))
    rate.count(frame(31, 1.0))

    assert describe(frame(31, 1.0, cost_ns=2_900_000), rate) == (
        "60×40  30.0 fps  reward 1  return 21.5  12.3k steps/s  watching costs 2.9 ms per frame, 8.7% of a core"
    )
    assert describe(frame(31, 1.0), rate).endswith("cost of watching unknown")


class Clock:
    """A clock in nanoseconds that only the test advances."""

    def __init__(self):
        self.now_s = 100.0

    def __call__(self):
        return round(self.now_s * 1e9)


@pytest.fixture
def film():
    """Records frames that come at these times (seconds after the first) and ends the clip at `until`."""

    def make(seconds, times, until):
        clock = Clock()
        clip = Clip(seconds, clock)
        for number, after in enumerate(times):
            clock.now_s = 100.0 + after
            clip.add(frame(number * 40, clock.now_s))
        clock.now_s = 100.0 + until
        clip.end()
        return clip

    return make


def durations_of(path):
    saved = Image.open(path)
    durations = []
    for number in range(saved.n_frames):
        saved.seek(number)
        durations.append(saved.info["duration"])
    return durations


@pytest.mark.parametrize("width", [20, 40, 60, 79, 200])
def test_the_line_fits_and_omits_whole_parts(width):
    rate = Rate()
    rate.count(frame(31, 1.0))

    output = describe(frame(31, 1.0, cost_ns=2_900_000), rate, width)

    assert len(output) <= width
    assert set(output.split("  ")) <= set(describe(frame(31, 1.0, cost_ns=2_900_000), rate).split("  "))


@pytest.fixture
def terminal(monkeypatch):
    """What is written to screens of these sizes."""

    def of(*sizes):
        written = io.StringIO()
        rate, screen, left = Rate(), Screen(is_plain=False), list(sizes)
        monkeypatch.setattr(sys, "stdout", written)
        monkeypatch.setattr(shutil, "get_terminal_size", lambda: os.terminal_size(left.pop(0)))
        for number in range(len(sizes)):
            rate.count(frame(number, number))
            screen.show(frame(number, number), rate)
        return written.getvalue()

    return of


@pytest.mark.parametrize("size", [(1, 1), (10, 2), (40, 10), (80, 24), (200, 60)])
def test_the_picture_and_its_line_never_wrap(terminal, size):
    output = re.sub("\x1b[^A-Za-z]*[A-Za-z]", "", terminal(size)).replace("\r", "")

    assert len(output.splitlines() or [""]) < max(size[1], 2)
    assert all(len(line) <= size[0] for line in output.splitlines())


def test_a_resized_screen_is_cleared(terminal):
    assert "\x1b[2J" not in terminal((80, 24), (80, 24))
    assert "\x1b[2J" in terminal((80, 24), (40, 24))


def test_a_clip_keeps_its_pace_and_the_size_of_its_first_frame(tmp_path):
    clock = Clock()
    clip = Clip(0.8, clock)
    for number, when_s, shape in ((1, 100.0, (40, 60, 3)), (100, 100.5, (40, 60, 3)), (200, 100.6, (20, 30, 3))):
        clip.add(frame(number, when_s, shape=shape))
    clock.now_s = 103.0
    clip.end()

    clip.save(tmp_path / "run.gif")

    assert (Image.open(tmp_path / "run.gif").size, len(clip), clip.seconds) == ((60, 40), 3, 0.8)
    assert durations_of(tmp_path / "run.gif") == [500, 100, 200]


@pytest.mark.parametrize(
    ("seconds", "times"),
    [
        (5.0, [0.0, 3.0, 6.0]),  # slow frames: the last one comes too late
        (5.0, [0.0]),  # the env pauses
        (2.0, [number / 15 for number in range(31)]),  # 66.7 ms each, and a GIF counts in 10 ms
        (1.0, [number / 120 for number in range(121)]),  # more than a viewer shows
        (2.0, [0.0, 1.0, 1.99]),  # the last one comes too late to be shown for 20 ms
    ],
)
def test_a_clip_has_the_requested_duration(film, tmp_path, seconds, times):
    clip = film(seconds, times, until=max(seconds, times[-1]))

    clip.save(tmp_path / "run.gif")

    if len(clip) > 1:
        assert sum(durations_of(tmp_path / "run.gif")) == seconds * 1000
        assert min(durations_of(tmp_path / "run.gif")) >= 20
    assert clip.seconds == seconds


def test_a_clip_of_a_run_that_ended_lasts_until_it_ended(film):
    assert film(5.0, [0.0, 1.0], until=1.5).seconds == 1.5


@pytest.mark.parametrize("channels", [1, 3, 4])
def test_frames_of_every_kind_can_be_saved(tmp_path, channels):
    clip = Clip(500)
    for number in (1, 200):
        clip.add(frame(number, time.monotonic() + number, shape=(10, 12, channels)))
    clip.save(tmp_path / "run.gif")
    save_png(tmp_path / "now.png", frame(7, shape=(10, 12, channels)).pixels)

    assert Image.open(tmp_path / "run.gif").n_frames == 2
    assert np.asarray(Image.open(tmp_path / "now.png")).ravel()[0] == 7


def test_a_failed_write_leaves_no_file(tmp_path):
    path = check_target(str(tmp_path / "now.png"), ".png", force=False)
    (tmp_path / "now.png").mkdir()

    with pytest.raises(MosaicError, match="Cannot write"):
        save_png(path, frame().pixels)

    assert [name.name for name in tmp_path.iterdir()] == ["now.png"]
