"""How the toy gets better: a skill that rises with the steps, and noise from a seed."""

import math


def skill(step: int, horizon: int) -> float:
    """From 0 towards 1, quickly first and slowly later, as learning goes."""
    return 1.0 - math.exp(-4.0 * step / horizon)


class Noise:
    """Numbers between -1 and 1 from a seed. Not `random`, whose import the worker's start would feel."""

    def __init__(self, seed: int) -> None:
        self.state = seed * 2654435769 + 1

    def next(self) -> float:
        self.state = (self.state * 6364136223846793005 + 1442695040888963407) & 0xFFFFFFFFFFFFFFFF
        return (self.state >> 40) / (1 << 23) - 1.0
