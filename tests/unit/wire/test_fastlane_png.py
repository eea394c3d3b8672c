import io

import numpy as np
import pytest
from PIL import Image

from mosaic.wire import png


def picture(height, width, channels):
    return np.random.default_rng(height * width * channels).integers(0, 256, (height, width, channels), np.uint8)


@pytest.mark.parametrize("shape", [(1, 1, 3), (5, 7, 1), (48, 64, 3), (3, 200, 4), (200, 3, 3)])
def test_an_encoded_frame_decodes_to_the_same_pixels_here_and_elsewhere(shape):
    pixels = picture(*shape)

    packed = png.encode(pixels)

    assert np.array_equal(png.decode(packed), pixels)
    assert np.array_equal(np.asarray(Image.open(io.BytesIO(packed))).reshape(shape), pixels)


def test_a_view_of_a_larger_array_is_encoded_correctly():
    pixels = picture(40, 60, 3)[::2, 10:30]

    assert np.array_equal(png.decode(png.encode(pixels)), pixels)


@pytest.mark.parametrize("spoil", [lambda data: b"", lambda data: data[:60], lambda data: b"x" * 100])
def test_anything_else_is_refused(spoil):
    with pytest.raises(ValueError, match="not a PNG written by MOSAIC"):
        png.decode(spoil(png.encode(picture(20, 30, 3))))


def test_a_png_from_another_program_is_refused():
    other = io.BytesIO()
    Image.fromarray(picture(20, 30, 3)).save(other, format="PNG")

    with pytest.raises(ValueError, match="not a PNG written by MOSAIC"):
        png.decode(other.getvalue())
