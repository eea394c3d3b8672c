"""Vector envs whose envs this process does not step itself: their rows of rewards and ends are read instead."""

import sys
import weakref
from typing import Any, List, Mapping, Optional, Sequence, Tuple

from mosaic_sdk.observe.episodes import Episodes, is_stepped_for_the_parent
from mosaic_sdk.observe.seam import call_after_on
from mosaic_sdk.observe.tally import Count
from mosaic_sdk.observe.words import note


def hear_vector(envs: Any, method: str, episodes: Episodes, by: str) -> Any:
    """`envs`, whose `method` returns the outcome of a step, observed from now on. Never raises."""
    try:
        if not is_stepped_for_the_parent():
            _hear(envs, method, episodes, by)
    except Exception as error:  # noqa: BLE001  # an env is third-party code and may raise anything
        note("no episodes of {}: {}: {}".format(type(envs).__name__, type(error).__name__, error))
    return envs


def _hear(envs: Any, method: str, episodes: Episodes, by: str) -> None:
    count = episodes.new_count(envs, int(envs.num_envs))
    rows = Rows(int(envs.num_envs), episodes, count, _resets_late(envs))
    resets = [name for name in ("reset", "reset_wait") if hasattr(envs, name)]

    itself = weakref.ref(envs)

    def fail(error: Exception) -> None:
        note("no more episodes of {}: {}: {}".format(type(itself()).__name__, type(error).__name__, error))
        for name in (method, *resets):
            vars(itself()).pop(name, None)

    def note_reset(_: Any, *args: Any, **kwargs: Any) -> None:
        rows.note_reset(by, (kwargs.get("options") or {}).get("reset_mask"))

    call_after_on(envs, method, lambda outcome, *args, **kwargs: rows.note_step(outcome), fail)
    for name in resets:
        call_after_on(envs, name, note_reset, fail)
    call_after_on(envs, "close", lambda *args, **kwargs: count.forget(), fail)


def _resets_late(envs: Any) -> bool:
    """Whether the step after an episode's end only resets: since Gymnasium 1.0, unless the script says otherwise."""
    mode = (getattr(envs, "metadata", None) or {}).get("autoreset_mode")
    if mode is not None:
        return "NEXT" in str(mode).upper()
    library = sys.modules.get("gymnasium")
    is_gymnasium = type(envs).__module__.startswith("gymnasium.")
    return is_gymnasium and library is not None and not library.__version__.startswith("0.")


class Rows:
    """The current episode of each env."""

    def __init__(self, size: int, episodes: Episodes, count: Count, resets_late: bool) -> None:
        self.steps = [0] * size
        self.totals: List[Any] = [0.0] * size
        self._is_reset_next = [False] * size
        self._resets_late = resets_late
        self._episodes = episodes
        self._count = count
        count.read = lambda: sum(self.steps)

    def note_reset(self, by: str, mask: Optional[Sequence[bool]] = None) -> None:
        """All envs were reset, or those in the mask."""
        reset = [n for n in range(len(self.steps)) if mask is None or mask[n]]
        if not self._count.is_evaluation:
            self._count.counted += sum(self.steps[n] for n in reset)
        for n in reset:
            self.steps[n], self.totals[n], self._is_reset_next[n] = 0, 0.0, False
        self._episodes.begin(self._count, by)

    def note_step(self, outcome: Any) -> None:
        rewards, ends, cuts = _columns(outcome)
        for n, reward in enumerate(rewards):
            if self._is_reset_next[n]:
                self._is_reset_next[n] = False
                continue
            self.steps[n] += 1
            self.totals[n] += reward
            if ends[n] or cuts[n]:
                self._end(n, bool(ends[n]), bool(cuts[n]), outcome[-1])

    def _end(self, n: int, terminated: bool, truncated: bool, infos: Any) -> None:
        steps, total = self.steps[n], self.totals[n]
        self.steps[n], self.totals[n] = 0, 0.0
        self._is_reset_next[n] = self._resets_late
        counted = _episode_info(infos, n)
        if counted is not None:  # counted below wrappers that change rewards
            total = counted
        self._episodes.tell(self._count, total, steps, number=n, terminated=terminated, truncated=truncated)


def _columns(outcome: Any) -> Tuple[Sequence[float], Sequence[bool], Sequence[bool]]:
    """Rewards, terminated and truncated of each env."""
    rewards = _listed(outcome[1])
    if len(outcome) == 5:
        return rewards, _listed(outcome[2]), _listed(outcome[3])
    cuts = [bool(_info(outcome[3], n).get("TimeLimit.truncated", False)) for n in range(len(rewards))]
    dones = _listed(outcome[2])
    return rewards, [done and not cut for done, cut in zip(dones, cuts)], [d and c for d, c in zip(dones, cuts)]


def _listed(column: Any) -> Any:
    return column.tolist() if hasattr(column, "tolist") else list(column)


def _info(infos: Any, n: int) -> Mapping[str, Any]:
    if isinstance(infos, Mapping):
        return {}
    found: Mapping[str, Any] = infos[n]
    return found


def _episode_info(infos: Any, n: int) -> Optional[float]:
    """The return that RecordEpisodeStatistics or Monitor counted in env n."""
    try:
        if not isinstance(infos, Mapping):
            return float(infos[n]["episode"]["r"])
        late = infos.get("final_info")
        if isinstance(late, Mapping):  # Gymnasium 1.1 and newer, if an env is reset in the same step
            return float(late["episode"]["r"][n])
        if late is not None:  # before 1.0
            return float(late[n]["episode"]["r"])
        return float(infos["episode"]["r"][n])
    except (KeyError, IndexError, TypeError, ValueError):
        return None
