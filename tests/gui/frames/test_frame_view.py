import numpy as np
import pytest

from mosaic.gui.context import Context
from mosaic.gui.frames.view import FrameView
from mosaic.gui.theme import DARK, LIGHT, Theme


@pytest.fixture
def view(qtbot):
    view = FrameView(Context(None, None, Theme(), None, "", None, None))
    qtbot.addWidget(view)
    view.resize(320, 240)
    view.show()
    return view


def colour(view, x, y):
    image = view.grab().toImage()
    ratio = image.devicePixelRatio()
    return image.pixelColor(int(x * ratio), int(y * ratio)).name().upper()


@pytest.mark.parametrize(
    ("pixels", "expected"),
    [
        (np.full((24, 32), 128, np.uint8), "#808080"),
        (np.full((24, 32, 1), 128, np.uint8), "#808080"),
        (np.full((24, 32, 3), (255, 0, 16), np.uint8), "#FF0010"),
        (np.full((24, 32, 4), (255, 0, 16, 7), np.uint8), "#FF0010"),
        (np.full((1, 1, 3), (1, 2, 3), np.uint8), "#010203"),
        (np.full((4096, 4096, 3), (1, 2, 3), np.uint8), "#010203"),
        (np.full((24, 64, 3), (1, 2, 3), np.uint8)[:, ::2], "#010203"),
    ],
)
def test_frames_of_any_size_and_number_of_channels_are_drawn(view, pixels, expected):
    view.show_frame(pixels)

    assert colour(view, 160, 120) == expected


def test_the_aspect_is_kept_and_the_rest_has_the_colour_of_the_ground(view):
    view.show_frame(np.zeros((200, 200, 3), np.uint8))

    assert colour(view, 160, 120) == "#000000"
    assert colour(view, 10, 120) == LIGHT.ground
    assert colour(view, 310, 120) == LIGHT.ground


def test_a_frame_of_another_size_leaves_nothing_of_the_one_before(view):
    view.show_frame(np.zeros((240, 320, 3), np.uint8))
    view.show_frame(np.full((240, 24, 3), 255, np.uint8))

    assert colour(view, 10, 10) == LIGHT.ground


def test_pixel_art_has_sharp_edges(view):
    pixels = np.zeros((10, 10, 3), np.uint8)
    pixels[:, 5:] = 255
    view.show_frame(pixels)

    row = [colour(view, x, 120) for x in range(45, 275)]

    assert set(row) == {"#000000", "#FFFFFF"}


@pytest.mark.parametrize("shape", [(0, 4, 3), (4, 4, 2), (4,), (2, 2, 2, 3)])
def test_what_is_not_a_frame_is_said_and_the_last_frame_stays(view, shape):
    view.show_frame(np.zeros((8, 8, 3), np.uint8))
    view.show_frame(np.zeros(shape, np.uint8))

    assert view.message == ("This frame cannot be shown", f"A frame of shape {shape} cannot be shown.")
    assert view.picture.width() == 8


def test_words_are_shown_as_they_are(view):
    view.set_message("<b>No</b>\x1b[31m frame", "text\x07")
    view.set_overlay("<i>reward</i>\n1")
    view.set_note("<u>Ended</u>")
    view.grab()

    assert view.message == ("<b>No</b> frame", "text ")
    assert view.overlay == "<i>reward</i> 1"


def test_the_theme_is_followed(view):
    view._theme.choose("dark")

    assert colour(view, 2, 2) == DARK.ground


def test_a_picture_is_copied_in_its_own_size(view, qapp):
    assert not view.copy_picture()

    view.show_frame(np.zeros((8, 12, 3), np.uint8))

    assert view.copy_picture()
    assert qapp.clipboard().image().width() == 12
