"""An episode of the journal, played again without an environment and without operators."""

from collections.abc import Iterator

from eval_worker.game import Forfeit, LaneFailed, Opening, Turn
from eval_worker.journal import PastEpisode


class ReplayGame:
    """Gives the recorded turns, and fails where the episode failed."""

    def __init__(self, episode: PastEpisode) -> None:
        self._episode = episode
        self._turns: Iterator[Turn] = iter(episode.turns)

    def begin(self, seed: int, episode_index: int) -> Opening:
        if self._episode.opening is None:
            raise LaneFailed(self._episode.reason)
        return self._episode.opening

    def step(self) -> Turn:
        for turn in self._turns:
            return turn
        raise LaneFailed(self._episode.reason) if self._episode.failed else Forfeit(self._episode.reason)

    def close(self, for_good: bool = False) -> None:
        pass
