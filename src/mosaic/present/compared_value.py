"""The one number that stands for a run: the mean of its newest values, of its last steps, or of its whole curve."""

import re
from dataclasses import dataclass

from mosaic.model.errors import MosaicError
from mosaic.present.axes import is_per_episode

NEWEST, SHARE, AREA, EVALUATION = "newest", "last", "area", "evaluation"
EPISODES = 100  # as `mosaic runs` shows them
PERCENT = 10.0
EVAL_RETURN, RETURN = "eval/return", "episode/return"
HIGHER_IS_BETTER = re.compile(r"return|score|reward|success|win_rate|ep_rew", re.IGNORECASE)


@dataclass(frozen=True)
class Reading:
    """How a curve becomes a number."""

    kind: str
    amount: float = 0.0  # NEWEST: how many values; SHARE: how many percent of the steps
    at_step: int | None = None  # only values up to this step

    def words(self, metric: str, axis: str = "steps") -> str:
        until = "" if self.at_step is None else f" up to step {self.at_step:,}"
        if self.kind == EVALUATION:
            return "mean return of the newest evaluation"
        if self.kind == AREA:
            return f"area under the curve of {metric}, divided by the {axis}{until}"
        if self.kind == SHARE:
            return f"mean of {metric} over the last {self.amount:g} % of the {axis}{until}"
        values = "episodes" if is_per_episode(metric) else "values"
        return f"mean of {metric} over the newest {self.amount:g} {values}{until}"


def reading_for(metric: str, last: str = "", is_area: bool = False, at_step: int | None = None) -> Reading:
    """`last`: "100" or "10%". Without any wish: the newest evaluation, the newest 100 episodes, the last 10 %."""
    if is_area:
        return Reading(AREA, at_step=at_step)
    if last:
        return parse_last(last, at_step)
    if metric == EVAL_RETURN and at_step is None:
        return Reading(EVALUATION)
    if is_per_episode(metric):
        return Reading(NEWEST, EPISODES, at_step)
    return Reading(SHARE, PERCENT, at_step)


def parse_last(text: str, at_step: int | None = None) -> Reading:
    number, percent = text.strip().removesuffix("%").strip(), text.strip().endswith("%")
    if percent and re.fullmatch(r"\d+(\.\d+)?", number) and 0 < float(number) <= 100:
        return Reading(SHARE, float(number), at_step)
    if not percent and number.isdecimal() and int(number) > 0:
        return Reading(NEWEST, int(number), at_step)
    raise MosaicError(f"'{text}' is not a number of values, such as 100, or a share of the steps, such as 10%.")


def better_for(metric: str) -> str:
    """Which values are better: "higher", or "" if that is not known."""
    return "higher" if HIGHER_IS_BETTER.search(metric) else ""
