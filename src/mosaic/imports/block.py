"""Block: events of a run in columns, as they are sent to the daemon."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

FULL = 16_384  # events; a reader hands on a block that has this many


@dataclass(frozen=True)
class Episode:
    ts_ns: int
    total_reward: float
    steps: int
    global_step: int | None = None
    env_index: int = 0
    agent_id: str = ""  # "eval": an evaluation episode


@dataclass
class Block:
    """Metric events as columns, and episodes between them."""

    name_sets: list[tuple[str, ...]] = field(default_factory=list)
    ts_ns: list[int] = field(default_factory=list)
    steps: list[int] = field(default_factory=list)
    sets: list[int] = field(default_factory=list)  # index into name_sets, for each metric event
    values: list[float] = field(default_factory=list)  # of all metric events, one after the other
    episodes: list[Episode] = field(default_factory=list)
    places: list[int] = field(default_factory=list)  # for each episode: the number of metric events before it
    _numbers: dict[tuple[str, ...], int] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.sets) + len(self.episodes)

    @property
    def is_full(self) -> bool:
        return len(self) >= FULL

    def add(self, ts_ns: int, step: int, names: tuple[str, ...], values: Sequence[float]) -> None:
        number = self._numbers.get(names)
        if number is None:
            number = self._numbers[names] = len(self.name_sets)
            self.name_sets.append(names)
        self.ts_ns.append(ts_ns)
        self.steps.append(step)
        self.sets.append(number)
        self.values.extend(values)

    def add_episode(self, episode: Episode) -> None:
        self.episodes.append(episode)
        self.places.append(len(self.sets))


class Gathering:
    """Joins values of the same step that were logged one after the other into one metric event.

    A logger that writes ten values at a step takes microseconds between them; a second means that it is another event.
    """

    SPAN_NS = 10**9

    def __init__(self) -> None:
        self.block = Block()
        self._names: list[str] = []
        self._values: list[float] = []
        self._episodes: list[Episode] = []
        self._step = 0
        self._ts_ns = 0

    def extend(self, points: Iterable[tuple[int, int, str, float]]) -> None:
        """Add (ts_ns, step, name, value)."""
        for ts_ns, step, name, value in points:
            self.add(ts_ns, step, name, value)

    def add(self, ts_ns: int, step: int, name: str, value: float) -> None:
        if step != self._step or name in self._names or not 0 <= ts_ns - self._ts_ns < self.SPAN_NS:
            self.flush()
            self._step, self._ts_ns = step, ts_ns
        self._names.append(name)
        self._values.append(value)

    def add_episode(self, episode: Episode) -> None:
        """Behind the metric event that is being joined."""
        self._episodes.append(episode)

    def flush(self) -> None:
        if self._names:
            self.block.add(self._ts_ns, self._step, tuple(self._names), self._values)
            self._names, self._values = [], []
        if self._episodes:
            for episode in self._episodes:
                self.block.add_episode(episode)
            self._episodes = []

    def take(self) -> Block:
        """The block so far; the next one is empty."""
        self.flush()
        block, self.block = self.block, Block()
        return block
