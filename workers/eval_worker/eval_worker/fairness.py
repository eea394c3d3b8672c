"""Whether lanes that play the same seed began with the same observation."""

from collections import Counter
from collections.abc import Iterable

from mosaic_sdk.operators.lane_plan import Lane as LanePlan


class Fairness:
    """Collects the digests of first observations. A seed is judged once, when every lane that plays it has begun it."""

    def __init__(self, lanes: Iterable[LanePlan]) -> None:
        self._awaited = Counter(seed for lane in lanes for seed in dict.fromkeys(seed for _, seed in lane.episodes))
        self._met: dict[int, dict[str, str]] = {}
        self._judged: set[int] = set()

    def note(self, seed: int, lane: str, digest: str) -> None:
        """`digest`: empty if the lane could not begin, or does not tell it."""
        if seed not in self._judged:
            self._met.setdefault(seed, {}).setdefault(lane, digest)

    def differences(self, at_end: bool = False) -> list[tuple[int, dict[str, str]]]:
        """The seeds that can be judged now and on which lanes differ: (seed, digest of each lane)."""
        due = [seed for seed, digests in self._met.items() if at_end or len(digests) >= self._awaited[seed]]
        self._judged.update(due)
        known = [(seed, {lane: one for lane, one in self._met.pop(seed).items() if one}) for seed in due]
        return [(seed, digests) for seed, digests in known if len(set(digests.values())) > 1]
