"""The episodes of all observed envs of this process."""

import itertools
import sys
import time
import weakref
from contextlib import contextmanager
from typing import Any, Callable, Dict, Iterator

from mosaic_sdk import names
from mosaic_sdk.observe.batch import BatchEmitter
from mosaic_sdk.observe.numbers import number_or_none
from mosaic_sdk.observe.progress import Progress, is_child
from mosaic_sdk.observe.tally import Count, Tally, count_steps, stand_down, tally_of
from mosaic_sdk.observe.words import EPISODES, PROGRESS, note

# Functions of processes that step an env for a vector env of the parent, which observes them all.
_WORKERS = (
    "gymnasium.vector.async_vector_env",
    "gym.vector.async_vector_env",
    "stable_baselines3.common.vec_env.subproc_vec_env",
)


_FEW = 8
_LOOK_S = 0.01
_time_ns = time.time_ns  # a name of this module is found faster


class Episodes:
    """1. Each end of an episode of an observed env is one line. An env is observed once, at whichever hook came first.
    2. Episodes of an evaluation have the agent id "eval", and their steps are not progress.
    """

    def __init__(self, emitter: BatchEmitter, progress: Progress, announce: Callable[[str, str], None]) -> None:
        self.emitter = emitter
        self._progress = progress
        self._announce = announce
        self._evaluations = 0  # that run now: more than one if they are nested
        self._counts: Dict[int, Count] = {}  # of the envs that exist, by their numbers
        self._gone = 0  # training steps of envs that no longer exist
        self._recent, self._next_look = 0, 0.0
        self.next_index = itertools.count().__next__  # of the episodes that are no evaluations
        self._next_eval_index = itertools.count().__next__
        progress.env_steps = self.steps
        progress.before_follow = self._forget_what_is_plain

    def hear(self, env: Any, by: str) -> Any:
        """`env`, observed from now on unless it or an env inside it is already. Never raises."""
        try:
            if tally_of(env) is None and not is_stepped_for_the_parent():
                tally = Tally(env, self.new_count(env))
                count_steps(tally, _Ear(self, tally.count, by, env))
        except Exception as error:  # noqa: BLE001  # an env is third-party code and may raise anything
            note("no episodes of {}: {}: {}".format(type(env).__name__, type(error).__name__, error))
        return env

    @contextmanager
    def evaluating(self) -> Iterator[None]:
        """Episodes in here are evaluations, and their steps are not progress."""
        self._evaluations += 1
        try:
            yield
        finally:
            self._evaluations -= 1

    def new_count(self, env: Any, numbers: int = 1) -> Count:
        """The count of an env that has the next free number, or for a vector env the next free ones."""
        first = 0
        while any(first + n in self._counts for n in range(numbers)):
            first += 1
        count = Count(first)
        self._forget_what_is_plain()
        for n in range(first, first + numbers):
            self._counts[n] = count
        count.forget = weakref.finalize(env, self._forget, count)  # called once, by whoever comes first
        return count

    def steps(self) -> int:
        """Training steps of all envs together."""
        if len(self._counts) == 1:
            return self._gone + next(iter(self._counts.values())).training_steps
        return self._gone + sum([count.training_steps for count in set(self._counts.values())])

    def begin(self, count: Count, by: str) -> None:
        """An episode begins, maybe the env's first."""
        count.is_evaluation = self._evaluations > 0
        count.is_plain = len(self._counts) == 1 and not count.is_evaluation and not self._progress.is_followed
        count.before = self._gone
        if not count.is_used:
            count.is_used = True
            self._announce(EPISODES, by)
            if not is_child():
                self._announce(PROGRESS, by)
                self._progress.start()

    def tell(self, count: Count, total: Any, steps: int, *, number: int = 0, **more: Any) -> None:
        """One episode has ended; `number` says in which of a vector env's envs."""
        if not count.is_evaluation:
            count.counted += steps
        reward = number_or_none(total)
        if reward is None:
            return  # a vector of rewards has no sum that would be certain
        agent = names.EVAL_AGENT if count.is_evaluation else None
        more["env_index"] = _first_number() + count.number + number
        if not is_child():
            more["global_step"] = self._global_step()
        index = self._next_eval_index() if count.is_evaluation else self.next_index()
        self.emitter.episode(index, reward, steps, agent_id=agent, **more)

    def _global_step(self) -> int:
        """The library's counter, which counts this step only after it, unless ours is the same but for that."""
        ours = self.steps() if len(self._counts) <= _FEW else self._recent_steps()
        library = self._progress.library_steps()
        return ours if library is None or library <= ours <= library + len(self._counts) else library

    def _recent_steps(self) -> int:
        """The steps of a moment ago: adding up those of many envs at the end of each episode would take too long."""
        now = time.monotonic()
        if now >= self._next_look:
            self._recent, self._next_look = self.steps(), now + _LOOK_S
        return self._recent

    def _forget_what_is_plain(self) -> None:
        for count in self._counts.values():
            count.is_plain = False  # until its next episode begins

    def _forget(self, count: Count) -> None:
        self._gone += count.training_steps
        for number in [number for number, one in self._counts.items() if one is count]:
            del self._counts[number]


class _Ear:
    """Hears the tally of one env."""

    def __init__(self, episodes: Episodes, count: Count, by: str, env: Any) -> None:
        self._episodes = episodes
        self._emitter = episodes.emitter
        self._next_index = episodes.next_index
        self._count = count
        self._by = by
        self._env = weakref.ref(env)

    def note_reset(self, total: Any, steps: int) -> None:
        count = self._count
        if steps:
            if steps == count.limit:
                self._episodes.tell(count, total, steps, terminated=False, truncated=True)
            elif not count.is_evaluation:
                count.counted += steps
        self._episodes.begin(count, self._by)

    def end(self, outcome: Any, total: Any, steps: int) -> None:
        count, emitter = self._count, self._emitter
        if not (count.is_plain and emitter.is_flushed and type(total) is float and len(outcome) == 5):
            self._tell(outcome, total, steps)
            return
        # A fast env ends thousands of episodes in a second, and waits for this. It is far slower than in a loop of its
        # own: what it uses is no longer in the processor's caches when an episode ends. So it uses little.
        count.counted += steps
        how = bool(outcome[2]), bool(outcome[3])
        emitter.ended((self._next_index(), total, steps, count.number, *how, count.before + count.counted, _time_ns()))

    def _tell(self, outcome: Any, total: Any, steps: int) -> None:
        if len(outcome) == 5:
            terminated, truncated = bool(outcome[2]), bool(outcome[3])
        else:  # gym before 0.26
            truncated = bool(outcome[3].get("TimeLimit.truncated", False))
            terminated = not truncated
        self._episodes.tell(self._count, total, steps, terminated=terminated, truncated=truncated)

    def fail(self, error: Exception) -> None:
        env = self._env()
        note("no more episodes of {}: {}: {}".format(type(env).__name__, type(error).__name__, error))
        stand_down(env)


def is_stepped_for_the_parent() -> bool:
    processes = sys.modules.get("multiprocessing.process")
    target = getattr(processes.current_process(), "_target", None) if processes is not None else None
    return getattr(target, "__module__", None) in _WORKERS


def _first_number() -> int:
    """Envs of several processes have different numbers."""
    processes = sys.modules.get("multiprocessing.process")
    identity = getattr(processes.current_process(), "_identity", ()) if processes is not None else ()
    return max(0, int(identity[0]) - 1) if identity else 0
