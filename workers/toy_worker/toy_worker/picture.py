"""A moving test picture, painted with bytes: colour bars and a white ball that moves one pixel with each step.

The first and the last pixel hold the number of the step (red is its lowest byte), so that a viewer can check that the
picture is whole.
"""

from typing import Any, Dict, Tuple

_BARS = ((192, 192, 192), (192, 192, 0), (0, 192, 192), (0, 192, 0), (192, 0, 192), (192, 0, 0), (0, 0, 192))
Outcome = Tuple[None, float, bool, bool, Dict[str, Any]]


class TestPicture:
    """What the SDK's wrapper needs of an environment: steps to count, and a picture when there is a viewer."""

    render_mode = "rgb_array"
    __test__ = False  # pytest would collect a class of this name

    def __init__(self, width: int, height: int) -> None:
        self.width, self.height = width, height
        self._bars = _paint_bars(width) * height
        self._step = 0

    def reset(self) -> Tuple[None, Dict[str, Any]]:
        return None, {}

    def step(self, action: Tuple[float, bool]) -> Outcome:
        reward, ended = action
        self._step += 1
        return None, reward, ended, False, {}

    def render(self) -> "memoryview[Any]":
        pixels = bytearray(self._bars)
        self._paint_ball(pixels)
        pixels[:3] = pixels[-3:] = (self._step & 0xFFFFFF).to_bytes(3, "little")
        return memoryview(pixels).cast("B", (self.height, self.width, 3))

    def close(self) -> None:
        pass

    def _paint_ball(self, pixels: bytearray) -> None:
        radius = max(1, min(self.width, self.height) // 8)
        left, top = (_bounce(self._step, side - 2 * radius) for side in (self.width, self.height))
        for row in range(min(2 * radius, self.height)):
            half = int((radius**2 - (row - radius) ** 2) ** 0.5)
            start = 3 * ((top + row) * self.width + left + radius - half)
            pixels[start : start + 6 * half] = b"\xff" * (6 * half)


def _paint_bars(width: int) -> bytes:
    return b"".join(bytes(_BARS[column * len(_BARS) // width]) for column in range(width))


def _bounce(step: int, room: int) -> int:
    """Where a ball is after `step` pixels between two walls."""
    if room <= 0:
        return 0
    return room - abs(step % (2 * room) - room)
