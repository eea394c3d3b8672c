"""Where a frame is drawn in a view: its aspect ratio is kept, and pixel art is enlarged by whole factors only."""

from dataclasses import dataclass

PIXEL_ART = 160  # frames with no longer side than this are drawn as sharp squares


@dataclass(frozen=True)
class Fit:
    """A rectangle in the device's pixels, and whether the frame is interpolated."""

    left: int
    top: int
    width: int
    height: int
    is_smooth: bool


def fit(width: int, height: int, room_width: int, room_height: int) -> Fit:
    """The place of a frame in a room of the device's pixels. It always has at least one pixel."""
    scale = min(room_width / width, room_height / height)
    if max(width, height) <= PIXEL_ART and scale >= 1:
        scale = int(scale)
    wide, high = max(1, round(width * scale)), max(1, round(height * scale))
    is_smooth = scale != int(scale)
    return Fit((room_width - wide) // 2, (room_height - high) // 2, wide, high, is_smooth)
