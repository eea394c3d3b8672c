"""Whether and how an evaluation continues an earlier one."""

from dataclasses import dataclass, field

from mosaic_sdk.checkpoints import CheckpointError
from mosaic_sdk.operators.lane_plan import Lane as LanePlan
from mosaic_sdk.operators.script import EvalScript

from eval_worker.journal import Past, PastEpisode, read_journal

Episode = tuple[int, int]  # index and seed
_MUST_AGREE = ("env", "operators", "lanes", "groups", "rotate", "max_steps")  # seeds may be added


@dataclass(frozen=True)
class Agenda:
    """What a lane has to play, in this order."""

    episodes: list[Episode]
    finished: list[PastEpisode] = field(default_factory=list)  # those of them that the journal holds
    next_extra: int = 0  # the index of the first episode that a command adds


def read_past(path: str, script: EvalScript) -> Past | None:
    """The earlier run; None if there is none. CheckpointError if it was another evaluation."""
    if not path:
        return None
    past, now = read_journal(path), script.to_dict()
    for key in _MUST_AGREE:
        if past.script.get(key) != now[key]:
            raise CheckpointError(
                f"resume_from: {path} is of an evaluation with other {key}. Resume it with its own script."
            )
    return past


def episodes_of(past: Past | None, lane: LanePlan, is_manual: bool) -> list[PastEpisode]:
    """The finished episodes of a lane that the evaluation still contains, in their order."""
    found = past.finished(lane.name) if past is not None else []
    return [one for one in found if is_manual or (one.index, one.seed) in lane.episodes]


def agenda_of(past: Past | None, lane: LanePlan, is_manual: bool) -> Agenda:
    """First what is finished, then what was interrupted, then what was not begun."""
    finished = episodes_of(past, lane, is_manual)
    journal = {} if past is None else past.lanes.get(lane.name, {})
    episodes = [(one.index, one.seed) for one in finished]
    gone = {one.index for one in finished}
    if is_manual and past is not None:
        # Commands have added episodes that no plan has, and ended some that are not played again.
        episodes += [(one.index, one.seed) for one in past.interrupted(lane.name)]
        gone |= {one.index for one in journal.values() if one.was_reset or not one.is_over}
    episodes += [one for one in lane.episodes if one[0] not in gone]
    return Agenda(episodes, finished, 1 + max((*journal, *(index for index, _ in lane.episodes)), default=-1))
