"""What a reader of a comparison must know: runs that do not count, unequal lengths, too few seeds."""

import math
from collections import Counter
from collections.abc import Callable, Sequence
from typing import NamedTuple

from mosaic_sdk.results.cautions import FEW

from mosaic.model.errors import MosaicError
from mosaic.present.compared_samples import Sample, SampleGroup
from mosaic.present.compared_value import AREA, NEWEST, Reading
from mosaic.present.text import printable

UNEQUAL = 0.02  # lengths that differ by less than this share count as equal
MOST_NAMED = 8  # runs in a warning


class Note(NamedTuple):
    """What a reader must know, and the option of the command line that changes it."""

    text: str
    hint: str = ""

    def __str__(self) -> str:
        return f"{self.text} {self.hint}".rstrip()


NOTHING = Note("")


def refuse_mixed_steps(axes: set[str], reading: Reading) -> None:
    """Step 1,000 of one run is not that of another if they count different things."""
    if len(axes) > 1 and (reading.kind == AREA or reading.at_step is not None):
        what = "their areas cannot be compared" if reading.kind == AREA else "they cannot be compared at one step"
        raise MosaicError(f"{mixed_words(axes)}, so {what}. Compare their ends: leave out --auc and --at-step.")


def mixed_words(axes: set[str]) -> str:
    return f"The steps of some runs count {' and those of others '.join(sorted(axes))}"


def _ends(groups: Sequence[SampleGroup]) -> list[tuple[float, str]]:
    """The last step of each run, and its name."""
    return [(float(s.trace.step[-1]), f"{g.label}, {s.title}") for g in groups for s in g.counted if s.trace]


def _are_unequal(ends: Sequence[tuple[float, str]]) -> bool:
    return bool(ends) and max(ends)[0] - min(ends)[0] > UNEQUAL * abs(max(ends)[0])


def end_note(groups: Sequence[SampleGroup], shared: tuple[float, float], is_longest: bool) -> Note:
    ends = _ends(groups)
    if not _are_unequal(ends):
        return NOTHING
    (first, who), (last, _) = min(ends), max(ends)
    if is_longest:
        return Note(f"The runs end at different steps: from {first:,.0f} on there are fewer of them in the curves.")
    return Note(
        f"The curves end at step {shared[1]:,.0f}, where the shortest run ({who}) ends; "
        f"the longest goes on to {last:,.0f}.",
        "To draw all of it: --longest",
    )


def unit_of(groups: Sequence[SampleGroup]) -> str:
    titles = [sample.title for group in groups for sample in group.counted]
    return "seed" if titles and all(title.startswith("seed ") for title in titles) else "run"


def warning_notes(groups: Sequence[SampleGroup], reading: Reading) -> list[Note]:
    unit = unit_of(groups)
    told = [Note(text) for group in groups for text in (*_left_out(group), *_gaps(group), *_equal_seeds(group))]
    fewest = min(len(group.counted) for group in groups)
    if 1 < fewest < FEW:
        told.append(Note(f"Only {fewest} {unit}s: intervals from fewer than {FEW} {unit}s tend to be too narrow."))
    told += _short(groups, reading)
    return [*told, *_unequal_ends(groups, reading)]


def _unequal_ends(groups: Sequence[SampleGroup], reading: Reading) -> list[Note]:
    ends = _ends(groups)
    if reading.at_step is not None or reading.kind == AREA or not _are_unequal(ends):
        return []
    if len({sample.axis for group in groups for sample in group.counted}) > 1:
        return []  # their steps cannot be compared, which the curves say
    first, last = min(ends)[0], max(ends)[0]
    text = f"The runs end at different steps, from {first:,.0f} to {last:,.0f}; each value is of the run's own end."
    begins = max(float(s.trace.step[0]) for group in groups for s in group.counted if s.trace)
    # A run that begins later has no value at that step.
    hint = f"To take all of them at the same step: --at-step {math.floor(first)}" if begins <= math.floor(first) else ""
    return [Note(text, hint)]


def _short(groups: Sequence[SampleGroup], reading: Reading) -> list[Note]:
    """Runs with so few values that the newest ones are all of them."""
    every = [sample.values for group in groups for sample in group.counted]
    few = [values for values in every if values <= reading.amount]
    if reading.kind != NEWEST or not few or reading.at_step is not None:
        return []
    covered = f"{len(few)} of {len(every)} runs have no more than {reading.amount:g} values"
    return [Note(f"{covered}, so their means cover the whole training.", "For its end: --last 10%")]


def _left_out(group: SampleGroup) -> list[str]:
    """The runs that do not count, with their names and reasons."""
    out = [sample for sample in group.samples if sample.left_out]
    if not out:
        return []
    many = "1 run is" if len(out) == 1 else f"{len(out)} runs are"
    named = _named(out, lambda sample: f" {sample.left_out}")
    return [f"{group.label}: {many} left out of {len(group.samples)}: {named}."]


def _gaps(group: SampleGroup) -> list[str]:
    """The runs that count without some of their values."""
    some = [sample for sample in group.counted if sample.has_gaps]
    if not some:
        return []
    many = "1 run has" if len(some) == 1 else f"{len(some)} runs have"
    return [f"{group.label}: {many} values that are NaN or infinite, which do not count: {_named(some)}."]


def _named(samples: Sequence[Sample], words: Callable[[Sample], str] = lambda sample: "") -> str:
    named = [f"{sample.title} ({sample.run.run_id[-4:]}){words(sample)}" for sample in samples[:MOST_NAMED]]
    more = f"; and {len(samples) - MOST_NAMED} more" if len(samples) > MOST_NAMED else ""
    return f"{'; '.join(named)}{more}"


def _equal_seeds(group: SampleGroup) -> list[str]:
    # The same seed in another environment is another random experiment.
    seeds = Counter((s.title, s.run.env_id) for s in group.counted if s.title.startswith("seed "))
    return [
        f"{group.label}: {many} runs have {title}{_in_env(group, env)}. "
        "Runs with equal seeds are not independent, so the intervals are too narrow."
        for (title, env), many in seeds.items()
        if many > 1
    ]


def _in_env(group: SampleGroup, env: str) -> str:
    return f" in {printable(env)}" if len({sample.run.env_id for sample in group.counted}) > 1 and env else ""


def nothing_counts(groups: Sequence[SampleGroup]) -> str:
    told = " ".join(text for group in groups for text in _left_out(group))
    unfinished = any("FAULTED" in text or "over yet" in text or "CANCELLED" in text for text in told.split(";"))
    hint = " To use what unfinished runs have so far: --unfinished" if unfinished else ""
    return f"No run has a value to compare. {told}{hint}"
