"""How the toy improves: a skill that rises with the steps, and noise from a seed."""

import math

ENV_ID = "toy"  # it has one environment, without settings


def skill(step: int, horizon: int) -> float:
    """From 0 towards 1, quickly at first and slowly later."""
    return 1.0 - math.exp(-4.0 * step / horizon)


class Noise:
    """Numbers between -1 and 1 from a seed. Not `random`, because importing it slows down the start."""

    def __init__(self, seed: int) -> None:
        self.state = seed * 2654435769 + 1

    def next(self) -> float:
        self.state = (self.state * 6364136223846793005 + 1442695040888963407) & 0xFFFFFFFFFFFFFFFF
        return (self.state >> 40) / (1 << 23) - 1.0
