"""A lane: its episodes one after the other, and the thread in which its game waits for answers."""

import queue
import sys
import threading
import traceback
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from mosaic_sdk.operators.lane_plan import Lane as LanePlan

from eval_worker.game import Forfeit, Game, Hopeless, Interrupted, LaneFailed, Opening, Turn
from eval_worker.replay import ReplayGame
from eval_worker.resume import Agenda
from eval_worker.tally import Tally

MOST_FAILED_STARTS = 3


@dataclass(frozen=True)
class Outcome:
    """What a lane's thread has done: a value, or the reason why there is none."""

    lane: "Lane"
    value: Any = None
    reason: str = ""
    is_hopeless: bool = False
    is_forfeit: bool = False
    is_interrupted: bool = False


class Lane:
    """1. One episode at a time, in the order of its agenda.
    2. An episode that fails ends the game's processes; the next one starts them again.
    3. After three episodes in a row that could not begin, or one that says that no other can, the lane is given up.

    All methods belong to the conductor's thread; only the jobs that they return run in the lane's.
    """

    def __init__(self, plan: LanePlan, game: Game, agenda: Agenda, waits: bool) -> None:
        """`waits`: after each episode the lane waits for a command."""
        self.plan = plan
        self.game = game
        self.episode: Tally | None = None
        self.is_waiting = False
        self.given_up = ""  # the reason
        self.has_succeeded = False  # an episode was played to its end
        self._waits = waits
        self._past = {episode.index: episode for episode in agenda.finished}
        self._agenda = deque(agenda.episodes)
        self._last_seed: int | None = None
        self._next_extra = agenda.next_extra
        self._playing: Game = game
        self._failed_starts = 0
        self._is_closed = False
        self._jobs: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        threading.Thread(target=self._work, name=f"lane-{plan.name}", daemon=True).start()

    @property
    def index(self) -> int:
        return self.plan.index

    @property
    def name(self) -> str:
        return self.plan.name

    @property
    def can_begin(self) -> bool:
        """Whether it begins its next episode by itself."""
        return self.episode is None and bool(self._agenda) and not self.is_waiting and not self.given_up

    @property
    def can_play(self) -> bool:
        return self.episode is not None or self.can_begin

    @property
    def has_more(self) -> bool:
        return bool(self._agenda) and not self.given_up

    @property
    def is_replaying(self) -> bool:
        return isinstance(self._playing, ReplayGame) and self.episode is not None

    @property
    def has_past(self) -> bool:
        """Whether its current or next episode is one of the journal."""
        return self.is_replaying or bool(self._agenda and self._agenda[0][0] in self._past)

    def next_episode(self) -> Callable[[], Opening]:
        """Take the next episode from the agenda; the job that begins it."""
        index, seed = self._agenda.popleft()
        past = self._past.pop(index, None)
        self._playing = self.game if past is None else ReplayGame(past)
        self.episode = Tally(index, seed, Opening(self._operators()))
        self._last_seed = seed
        return lambda: self._playing.begin(seed, index)

    def step(self) -> Callable[[], Turn]:
        """The job that takes a step."""
        return self._playing.step

    def opened(self, opening: Opening) -> Tally:
        assert self.episode is not None
        self.episode = Tally(self.episode.index, self.episode.seed, opening)
        self._failed_starts = 0
        return self.episode

    def end(self, failed: bool = False, began: bool = True) -> None:
        """The episode is over."""
        self.episode = None
        self.has_succeeded = self.has_succeeded or not failed
        self.is_waiting = self._waits
        if failed:
            self._failed_starts += not began
            self.game.close()

    def give_up(self, reason: str, is_hopeless: bool) -> bool:
        """Give the lane up if it does not seem able to begin an episode; whether it is given up."""
        if is_hopeless or self._failed_starts >= MOST_FAILED_STARTS:
            self.given_up = reason
        return bool(self.given_up)

    def restart(self, seed: int | None) -> None:
        """Choose the next episode: on this seed, else on the unfinished episode's, else the next of the agenda."""
        was_playing, self.episode = self.episode, None
        self.is_waiting, self.given_up, self._failed_starts = False, "", 0
        if seed is None and was_playing is None and self._agenda:
            return
        chosen = seed if seed is not None else self._last_seed
        if chosen is not None:
            self._agenda.appendleft((self._next_extra, chosen))
            self._next_extra += 1

    def wake(self) -> None:
        """Go on with the next episode after waiting."""
        self.is_waiting = False

    def run(self, job: Callable[[], Any], report: Callable[[Outcome], None]) -> None:
        """Run a job in the lane's thread; `report` is called there."""
        self._jobs.put(lambda: report(self._outcome(job)))

    def close(self) -> None:
        """End its processes for good."""
        self._is_closed = True
        self.game.close(for_good=True)

    def _operators(self) -> dict[str, str]:
        return dict(self.plan.agents) if self.plan.operator is None else {self.plan.operator: self.plan.operator}

    def _outcome(self, job: Callable[[], Any]) -> Outcome:
        try:
            return Outcome(self, job())
        except LaneFailed as error:
            return Outcome(
                self, reason=str(error), is_hopeless=isinstance(error, Hopeless), is_forfeit=isinstance(error, Forfeit)
            )
        except Interrupted:
            return Outcome(self, is_interrupted=True)
        except Exception as error:  # noqa: BLE001  # the edge of a lane: whatever a child sends must not end the others
            if not self._is_closed:  # else its pipes were closed under it
                traceback.print_exc(file=sys.stderr)
            return Outcome(self, reason=f"{type(error).__name__}: {error}")

    def _work(self) -> None:
        while True:
            self._jobs.get()()
