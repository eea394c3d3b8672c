"""The newest episodes of a run as rows of a table, newest first."""

from collections.abc import Iterable
from heapq import nlargest
from typing import TYPE_CHECKING

from mosaic.present.text import number, printable

if TYPE_CHECKING:
    from mosaic.client.events import Episode, Event

HEADINGS = ("Episode", "Return", "Length", "Env step", "End", "Agent")
NUMBERS = frozenset((0, 1, 2, 3))
MOST = 200


class NewestEpisodes:
    """Each episode once, in whichever order events and answers arrive; at most MOST are kept."""

    def __init__(self) -> None:
        self._by_seq: dict[int, Episode] = {}

    def receive(self, events: "Iterable[Event]") -> bool:
        """Take these events; returns whether there is a new episode among them."""
        oldest_kept = min(self._by_seq) if len(self._by_seq) >= MOST else 0
        new = {event.seq: event for event in events if event.type == "episode" and event.seq > oldest_kept}
        before = len(self._by_seq.keys() | new.keys()) - len(self._by_seq)
        self._by_seq.update(new)  # type: ignore[arg-type]  # only episodes have this type
        if len(self._by_seq) > MOST:
            self._by_seq = {seq: self._by_seq[seq] for seq in nlargest(MOST, self._by_seq)}
        return before > 0

    def rows(self) -> list[tuple[str, ...]]:
        return [_row(self._by_seq[seq]) for seq in sorted(self._by_seq, reverse=True)]


def _row(episode: "Episode") -> tuple[str, ...]:
    return (
        f"{episode.episode_index:,}",
        number(episode.total_reward),
        f"{episode.steps:,}" if episode.steps else "",  # 0: unknown
        "" if episode.global_step is None else f"{episode.global_step:,}",
        "terminated" if episode.terminated else "truncated" if episode.truncated else "",
        printable(episode.agent_id),
    )
