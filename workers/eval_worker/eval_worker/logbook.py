"""What happened in the lanes, written down: journal, telemetry, results and clips."""

from collections.abc import Mapping
from typing import Any, Protocol

from eval_worker.clips import Clips
from eval_worker.fairness import Fairness
from eval_worker.game import Opening, Turn
from eval_worker.journal import RESET, Journal
from eval_worker.lane import Lane, Outcome
from eval_worker.progress import Progress
from eval_worker.tally import Tally
from eval_worker.telemetry import Telemetry


class Results(Protocol):
    """What this module needs of EvalResults."""

    def add(self, fields: Mapping[str, Any]) -> Any: ...

    def warn(self, text: str) -> None: ...


class Logbook:
    """Each method is called in the conductor's thread, in the order of the lanes. The journal comes first: what was
    printed can be resumed."""

    def __init__(
        self,
        journal: Journal,
        telemetry: Telemetry,
        results: Results,
        fairness: Fairness,
        clips: Clips,
        progress: Progress,
    ) -> None:
        self._journal = journal
        self._telemetry = telemetry
        self._results = results
        self._fairness = fairness
        self._clips = clips
        self._progress = progress
        self.last_failure = ""

    def beginning(self, lane: Lane) -> None:
        """The lane is about to begin an episode."""
        if not lane.is_replaying:
            self._clips.begin(lane.index, lane.name, lane.plan.operator or "", _current(lane).seed)

    def opened(self, lane: Lane, opening: Opening) -> None:
        episode = lane.opened(opening)
        self._journal.opening(lane.name, episode.index, episode.seed, opening)
        self._telemetry.ready(lane, episode)
        self._fairness.note(episode.seed, lane.name, opening.first_observation)
        self._clips.take(lane.index)

    def turned(self, lane: Lane, turn: Turn) -> None:
        episode = _current(lane)
        episode.add(turn)
        self._journal.turn(lane.name, episode.index, turn)
        self._telemetry.turn(lane, episode, turn)
        self._clips.take(lane.index)
        self._progress.step()
        if episode.is_over:
            self._report(lane, episode)
            self._telemetry.lane_done(lane, episode)
            self._clips.end(lane.index)
            lane.end()

    def forfeited(self, outcome: Outcome) -> None:
        """An operator lost the episode by itself: it counts."""
        lane, episode = outcome.lane, _current(outcome.lane)
        self._report(lane, episode, outcome.reason)
        self._telemetry.lane_done(lane, episode)
        self._clips.end(lane.index)
        lane.end()

    def failed(self, outcome: Outcome, began: bool) -> None:
        """The lane's episode cannot go on, or could not begin."""
        lane, reason, episode = outcome.lane, outcome.reason, _current(outcome.lane)
        self.last_failure = reason
        self._clips.drop(lane.index)
        self._report(lane, episode, reason, failed=True)
        lane.end(failed=True, began=began)
        is_given_up = lane.give_up(reason, outcome.is_hopeless)
        self._telemetry.lane_failed(lane, episode, reason, is_given_up)
        if not began:
            self._fairness.note(episode.seed, lane.name, "")
        if is_given_up:
            self._results.warn(f"The lane {lane.name} was given up, because it could not begin: {reason}")

    def reset(self, lane: Lane) -> None:
        """A command ended the lane's episode: it is reported, and not counted."""
        episode = _current(lane)
        self._clips.drop(lane.index)
        self._journal.end(lane.name, episode.index, episode.seed, RESET, failed=False)
        for row in episode.rows(RESET, failed=True):
            self._telemetry.episode(lane, row)

    def acted(self, lane: Lane, step: int, agent: str, action: Any) -> None:
        """A person has chosen an action."""
        self._journal.act(lane.name, _current(lane).index, step, agent, action)

    def compare(self, at_end: bool = False) -> None:
        """Report the seeds on which lanes began with different observations."""
        for seed, digests in self._fairness.differences(at_end):
            self._telemetry.differs(seed, digests)
            self._results.warn(
                f"Seed {seed}: the first observations differ between the lanes {', '.join(digests)}, so that their "
                "returns on it are not comparable."
            )

    def _report(self, lane: Lane, episode: Tally, reason: str = "", failed: bool = False) -> None:
        self._journal.end(lane.name, episode.index, episode.seed, reason, failed)
        self._progress.end(episode.steps)
        for row in episode.rows(reason, failed):
            self._results.add({**row, "lane": lane.name, "env_index": lane.index})
            self._telemetry.episode(lane, row)


def _current(lane: Lane) -> Tally:
    assert lane.episode is not None
    return lane.episode
