"""The groups into which a list of runs can be divided."""

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from mosaic.present.run_order import STATES
from mosaic.present.state_marks import GLYPH, KIND, WORD
from mosaic.present.text import printable

if TYPE_CHECKING:
    from mosaic.client import Run

Runs = Mapping[str, "Run"]


@dataclass(frozen=True)
class Grouping:
    """A way to divide runs."""

    title: str  # in the menu
    key: "Callable[[Run, Runs], Any]"  # equal for the runs of a group; sorts the groups
    label: "Callable[[Run, Runs], str]"  # of the group of this run
    is_descending: bool = False  # the groups, highest key first


@dataclass
class Group:
    key: Any
    label: str
    runs: "list[Run]" = field(default_factory=list)


def divide(runs: "Iterable[Run]", grouping: Grouping, known: "Runs") -> list[Group]:
    """The groups in their order; within a group the runs keep theirs. `known`: all runs, for the parents."""
    groups: dict[Any, Group] = {}
    for run in runs:
        key = grouping.key(run, known)
        group = groups.get(key)
        if group is None:
            group = groups[key] = Group(key, printable(grouping.label(run, known)))
        group.runs.append(run)
    return sorted(groups.values(), key=lambda group: group.key, reverse=grouping.is_descending)


def _by_text(title: str, text: "Callable[[Run], str]", nothing: str) -> Grouping:
    """Groups in alphabetical order, those without the text last."""
    return Grouping(
        title,
        lambda run, _: (not text(run), text(run).lower()),
        lambda run, _: text(run) or nothing,
    )


def _day(run: "Run") -> tuple[int, ...]:
    return tuple(time.localtime(run.created_at)[:3])


def _day_label(run: "Run") -> str:
    day = time.strftime("%A, %Y-%m-%d", time.localtime(run.created_at))
    return f"Today, {day}" if _day(run) == tuple(time.localtime()[:3]) else day


def first_ancestor(run: "Run", known: "Runs") -> str:
    """The id of the run from which this one descends by resuming and evaluating; its own if it has no parent.

    A deleted parent still holds its children together: its id is the result.
    """
    seen = {run.run_id}
    ancestor = run.run_id
    parent = run.parent_run_id
    while parent and parent not in seen:
        seen.add(parent)
        ancestor = parent
        parent = known[parent].parent_run_id if parent in known else ""
    return ancestor


def _family(run: "Run", known: "Runs") -> str:
    ancestor = first_ancestor(run, known)
    found = known.get(ancestor)
    return (found.name or found.worker_name) if found else f"{ancestor} (deleted)"


GROUPINGS: dict[str, Grouping] = {
    "worker": _by_text("Worker", lambda run: run.worker_name, "no worker"),
    "env": _by_text("Environment", lambda run: run.env_id, "no environment"),
    "algo": _by_text("Algorithm", lambda run: run.algo, "no algorithm"),
    "state": Grouping(
        "State",
        lambda run, _: STATES.index(run.state),
        lambda run, _: f"{GLYPH[KIND[run.state]]} {WORD[run.state]}",
    ),
    "day": Grouping("Day", lambda run, _: _day(run), lambda run, _: _day_label(run), is_descending=True),
    "tag": _by_text("Tags", lambda run: ", ".join(sorted(run.tags)), "no tag"),
    "parent": Grouping("Parent run", first_ancestor, _family, is_descending=True),
}
