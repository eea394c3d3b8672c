"""How far an evaluation is, as its heartbeats tell it."""


class Progress:
    """Counts environment steps. How many there will be is estimated from the episodes that are over, because `mosaic
    runs` compares steps with steps."""

    def __init__(self, max_steps: int | None) -> None:
        self._max_steps = max_steps
        self.episodes = 0  # planned
        self.steps = 0
        self._over_episodes = 0
        self._over_steps = 0

    def step(self) -> None:
        self.steps += 1

    def end(self, steps: int) -> None:
        """An episode of so many steps is over."""
        self._over_episodes += 1
        self._over_steps += steps

    @property
    def total(self) -> int:
        """Estimated; 0 while nothing is known."""
        if self._over_episodes >= self.episodes:
            return self.steps
        if not self._over_episodes:
            return max(self.steps, self.episodes * (self._max_steps or 0))
        return max(self.steps + 1, round(self._over_steps * self.episodes / self._over_episodes))
