"""Pictures in a terminal: half-block characters that show two pixels each, one above the other, in 24-bit colour."""

from typing import Any

HALF = "▀"
RESET = "\x1b[0m"


def draw(pixels: Any, columns: int, rows: int) -> list[str]:
    """At most `rows` lines of at most `columns` characters that show a uint8 array of height × width × channels."""
    small = fit(_rgb(pixels), columns, 2 * rows)
    return [_line(small[top], small[top + 1]) for top in range(0, len(small) - 1, 2)]


def fit(pixels: Any, width: int, height: int) -> Any:
    """The picture, scaled down until it fits, with its aspect ratio; never enlarged."""
    from mosaic_sdk.fastlane.scale import shrink

    high, wide = pixels.shape[:2]
    scale = min(1.0, width / wide, height / high)
    return shrink(pixels, max(1, int(max(high, wide) * scale)))


def _rgb(pixels: Any) -> Any:
    return pixels.repeat(3, axis=2) if pixels.shape[2] == 1 else pixels[:, :, :3]


def _line(upper: Any, lower: Any) -> str:
    text, before = [], None
    for above, below in zip(upper.tolist(), lower.tolist(), strict=True):
        # A colour stays in effect until it changes, so pictures with large areas of one colour take few bytes.
        if (above, below) != before:
            text.append("\x1b[38;2;{};{};{};48;2;{};{};{}m".format(*above, *below))
            before = (above, below)
        text.append(HALF)
    return "".join(text) + RESET
