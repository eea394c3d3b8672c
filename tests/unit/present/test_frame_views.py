"""Where a frame is drawn, what is said without one, and how a clip is recorded."""

import numpy as np
import pytest

from mosaic.client import Frame
from mosaic.present.frame_facts import Rate, metrics_of, watching
from mosaic.present.frame_files import file_name, picture_folder
from mosaic.present.frame_fit import Fit, fit
from mosaic.present.frame_recorder import ClipRecorder


def frame(number=1, when_s=1.0, cost_ns=0):
    pixels = np.full((4, 6, 3), number % 256, np.uint8)
    return Frame(pixels, number, 1.0, 21.5, 12_345.0, int(when_s * 1e9), cost_ns, is_shared=True)


@pytest.mark.parametrize(
    ("source", "room", "expected"),
    [
        ((84, 84), (500, 300), Fit(124, 24, 252, 252, False)),  # pixel art: three times, not 3.57 times
        ((600, 400), (900, 900), Fit(0, 150, 900, 600, True)),
        ((320, 240), (640, 480), Fit(0, 0, 640, 480, False)),  # a whole factor needs no interpolation
        ((160, 210), (80, 105), Fit(0, 0, 80, 105, True)),
        ((100, 100), (50, 50), Fit(0, 0, 50, 50, True)),
        ((4096, 1), (10, 10), Fit(0, 4, 10, 1, True)),
        ((1, 1), (7, 5), Fit(1, 0, 5, 5, False)),
    ],
)
def test_a_frame_is_drawn_as_large_as_it_fits(source, room, expected):
    assert fit(*source, *room) == expected


def test_the_numbers_of_a_frame_are_short():
    rate = Rate()
    for number in range(31):
        rate.count(frame(number, 1 + number / 30, cost_ns=2_900_000))

    assert watching(frame(cost_ns=2_900_000), rate) == "30.0 fps · watching costs 8.7 % of a core"
    assert watching(frame(), rate) == "30.0 fps · cost of watching unknown"
    assert metrics_of(frame()) == "reward 1 · return 21.5 · 12.3k steps/s"


def test_a_clip_lasts_as_long_as_its_recording_however_late_it_is_reduced():
    recorder = ClipRecorder(seconds=2.0)
    for number in range(40):
        recorder.add(frame(number, 1 + number / 30))

    recorder._ended_ns, recorder._is_ended = int(2.5e9), True
    recorder._waiting.put(None)
    clip = recorder.reduce()

    assert clip.seconds == pytest.approx(1.5)
    assert 15 <= len(clip) <= 22


def test_a_full_recording_says_so_and_takes_no_more_after_its_end():
    recorder = ClipRecorder(seconds=1.0)
    recorder.add(frame(1, 1.0))
    recorder.add(frame(2, 2.1))

    recorder.end()
    recorder.end()
    recorder.add(frame(3, 2.5))

    assert recorder.is_full
    assert len(recorder.reduce()) == 1  # the second frame came after the last second


def test_a_slow_machine_drops_frames_and_keeps_its_memory():
    recorder = ClipRecorder(seconds=60.0)

    for number in range(500):
        recorder.add(frame(number, 1 + number))

    assert recorder._waiting.qsize() == 60


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("cartpole s1", "cartpole-s1-now.png"),
        ("../../etc/passwd", "etc-passwd-now.png"),
        ("<b>\x1b[31m", "b---31m-now.png"),
        ("", "01RUN-now.png"),
        ("///", "01RUN-now.png"),
    ],
)
def test_a_file_name_has_nothing_that_a_file_system_refuses(name, expected):
    assert file_name(name, "01RUN", "now", ".png") == expected


def test_a_folder_that_is_gone_is_replaced(tmp_path):
    assert picture_folder(str(tmp_path)) == tmp_path
    assert picture_folder(str(tmp_path / "gone")).is_dir()
