"""What `mosaic frames` draws and counts, without a run."""

import re

import numpy as np
import pytest
from PIL import Image

from mosaic.cli.clip import Clip, check_target, save_png
from mosaic.cli.frames import Rate, describe
from mosaic.cli.halfblocks import draw
from mosaic.client import Frame
from mosaic.model.errors import MosaicError


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


def test_the_rate_counts_frames_that_were_not_seen():
    rate = Rate()
    for number, when_s in ((10, 0.0), (25, 0.5), (40, 1.0)):
        rate.count(frame(number, when_s))

    assert rate.fps == 30.0


def test_the_rate_forgets_what_is_long_ago_and_an_env_that_was_replaced():
    rate = Rate()
    for number, when_s in ((0, 0.0), (1, 10.0), (21, 11.0)):
        rate.count(frame(number, when_s))
    assert rate.fps == 20.0

    rate.count(frame(1, 11.1))

    assert rate.fps == 0.0


def test_the_line_tells_what_watching_costs_or_that_nobody_knows():
    rate = Rate()
    rate.count(frame(1, 0.0))
    rate.count(frame(31, 1.0))

    assert describe(frame(31, 1.0, cost_ns=2_900_000), rate) == (
        "60×40  30.0 fps  reward 1  return 21.5  12.3k steps/s  watching costs 2.9 ms per frame, 8.7% of a core"
    )
    assert describe(frame(31, 1.0), rate).endswith("what watching costs is not known")


def test_a_clip_keeps_its_pace_and_the_size_of_its_first_frame(tmp_path):
    clip = Clip()
    clip.add(frame(1, 0.0))
    clip.add(frame(100, 0.5))
    clip.add(frame(200, 0.6, shape=(20, 30, 3)))

    clip.save(tmp_path / "run.gif")

    saved = Image.open(tmp_path / "run.gif")
    assert (saved.size, saved.n_frames, clip.seconds) == ((60, 40), 3, 0.6)
    durations = []
    for number in range(3):
        saved.seek(number)
        durations.append(saved.info["duration"])
    assert durations == [500, 100, 100]


@pytest.mark.parametrize("channels", [1, 3, 4])
def test_frames_of_every_kind_can_be_saved(tmp_path, channels):
    clip = Clip()
    for number in (1, 200):
        clip.add(frame(number, number, shape=(10, 12, channels)))
    clip.save(tmp_path / "run.gif")
    save_png(tmp_path / "now.png", frame(7, shape=(10, 12, channels)).pixels)

    assert Image.open(tmp_path / "run.gif").n_frames == 2
    assert np.asarray(Image.open(tmp_path / "now.png")).ravel()[0] == 7


def test_a_file_that_cannot_be_written_leaves_nothing(tmp_path):
    path = check_target(str(tmp_path / "now.png"), ".png", force=False)
    (tmp_path / "now.png").mkdir()

    with pytest.raises(MosaicError, match="cannot be written"):
        save_png(path, frame().pixels)

    assert [name.name for name in tmp_path.iterdir()] == ["now.png"]
