"""A run reference: how people and programs name a run. The first rule that applies decides:

1. a complete run id, in upper or lower case;
2. `last`, the newest run, and `last~N`, the one submitted N runs before it;
3. the exact name of a run, if only one run has it;
4. the first characters of a run id, if only one run id starts with them.

If several runs match rule 3 or 4, the reference is refused with a list of them: a guess could cancel or delete the
wrong run.
"""

import re
from typing import Protocol

from mosaic.model.errors import AmbiguousRun, UnknownRun
from mosaic.model.nearest import did_you_mean
from mosaic.model.run import RunRecord

LAST = re.compile(r"last(?:~(\d{1,9}))?")
SHOWN = 8  # candidates in the error message, which is sent in a gRPC header of 2,000 bytes
LONGEST_NAME = 24  # in the error message


class Runs(Protocol):
    """The queries that `resolve` makes; the registry implements them."""

    def with_id(self, run_id: str) -> RunRecord | None: ...

    def submitted_before(self, n: int, trainings_only: bool = False) -> RunRecord | None: ...

    def named(self, name: str, limit: int) -> list[RunRecord]: ...

    def starting_with(self, start: str, limit: int) -> list[RunRecord]: ...

    def newest_names(self) -> list[str]: ...

    def count(self) -> int: ...

    def now(self) -> float: ...


def resolve(runs: Runs, reference: str, trainings_only: bool = False) -> RunRecord:
    """The run that `reference` means. Raises UnknownRun or AmbiguousRun, which suggest what to write instead.

    `trainings_only`: `last` does not count evaluations.
    """
    if found := runs.with_id(reference.upper()):
        return found
    if last := LAST.fullmatch(reference):
        return _last(runs, int(last[1] or 0), reference, trainings_only)
    # One more than is shown, to know whether there are more.
    named = runs.named(reference, SHOWN + 1) if reference else []
    if named:
        return _only(runs, named, f"Several runs have the name '{reference}'")
    starting = runs.starting_with(reference.upper(), SHOWN + 1) if reference else []
    if starting:
        return _only(runs, starting, f"Several runs have ids that start with '{reference}'")
    raise UnknownRun(reference, did_you_mean(reference, runs.newest_names()))


def _last(runs: Runs, n: int, reference: str, trainings_only: bool) -> RunRecord:
    found = runs.submitted_before(n, trainings_only)
    if found:
        return found
    if trainings_only:
        raise UnknownRun(reference, "Evaluations do not count here.")
    known = runs.count()
    if not known:
        raise UnknownRun(reference, "No run has been submitted yet.", "Start one with: mosaic run toy steps=500")
    raise UnknownRun(reference, f"There are {known} runs: the oldest is last~{known - 1}.")


def _only(runs: Runs, found: list[RunRecord], why: str) -> RunRecord:
    if len(found) == 1:
        return found[0]
    lines = [_line(run, runs.now()) for run in found[:SHOWN]]
    raise AmbiguousRun(why, lines, is_cut=len(found) > SHOWN)


def _line(run: RunRecord, now: float) -> str:
    name = run.name or f"({run.worker_name})"
    name = name if len(name) <= LONGEST_NAME else f"{name[: LONGEST_NAME - 1]}…"
    return f"{run.run_id}  {name:<{LONGEST_NAME}}  {run.state!s:<10}  {_ago(now - run.created_at)}"


def _ago(seconds: float) -> str:
    for size, unit in ((86400, "d"), (3600, "h"), (60, "min")):
        if seconds >= size:
            return f"{seconds // size:.0f} {unit} ago"
    return f"{max(0.0, seconds):.0f} s ago"
