"""Which runs are compared: those of an experiment, those that share a name, or single ones."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from mosaic.model.errors import MosaicError, UnknownRun
from mosaic.model.nearest import did_you_mean
from mosaic.model.states import RunState
from mosaic.present.experiments import current
from mosaic.present.text import printable

if TYPE_CHECKING:
    from mosaic.client import Run, TrainerClient

EXPERIMENT, NAME, RUN = "experiment", "name", "run"


@dataclass(frozen=True)
class Chosen:
    """What one reference of the user means."""

    reference: str
    kind: str  # EXPERIMENT, NAME (several runs have it) or RUN
    runs: "tuple[Run, ...]"


@dataclass
class Details:
    """Runs with their settings, which a listing does not have; each is read once."""

    client: "TrainerClient"
    _known: "dict[str, Run]" = field(default_factory=dict)

    def of(self, run: "Run") -> "Run":
        if run.settings is not None:
            return run
        if run.run_id not in self._known:
            self._known[run.run_id] = self.client.get_run(run.run_id)
        return self._known[run.run_id]


def choose_runs(
    client: "TrainerClient", references: Sequence[str], only_experiments: bool = False, where: str = ""
) -> list[Chosen]:
    """The runs of each reference, oldest first; a run that two references mean belongs to the first of them.

    `where`: only runs that meet this condition, as in a listing.
    """
    meeting = {run.run_id for run in client.list_runs(where=where).runs} if where else None
    listed = sorted(client.list_runs().runs, key=lambda run: (run.created_at, run.run_id))
    seen: set[str] = set()
    chosen = []
    for reference in dict.fromkeys(references):
        found = _experiment(reference, listed) or (None if only_experiments else _runs(client, reference, listed))
        if found is None:
            raise _unknown_experiment(reference, listed)
        mine = tuple(run for run in found.runs if run.run_id not in seen)
        if mine and meeting is not None:
            mine = tuple(run for run in mine if run.run_id in meeting)
            if not mine:
                raise MosaicError(f"No run of '{printable(reference)}' meets the condition {printable(where)}.")
        seen |= {run.run_id for run in mine}
        if mine:
            chosen.append(Chosen(reference, found.kind, mine))
    return chosen


def _experiment(name: str, runs: "Iterable[Run]") -> Chosen | None:
    members = [run for run in runs if run.experiment and run.experiment == name]
    return Chosen(name, EXPERIMENT, tuple(_without_replaced(members))) if members else None


def _without_replaced(members: "Sequence[Run]") -> "list[Run]":
    """Without the driver of a search, and without runs that were retried or resumed: their successors count."""
    newest = {run.run_id for run in current(members)}
    resumed = {run.parent_run_id for run in members}
    kept = [run for run in members if run.run_id in newest or (run.axes and run.state is RunState.TERMINATED)]
    return [run for run in kept if run.run_id not in resumed] or list(members)


def _runs(client: "TrainerClient", reference: str, runs: "Sequence[Run]") -> Chosen:
    named = tuple(run for run in runs if run.name == reference)
    if len(named) > 1:
        return Chosen(reference, NAME, named)
    try:
        return Chosen(reference, RUN, (client.get_run(reference),))
    except UnknownRun as error:
        if hint := did_you_mean(reference, sorted({run.experiment for run in runs if run.experiment})):
            raise MosaicError(f"There is no run and no experiment '{reference}'. {hint}") from None
        raise error


def _unknown_experiment(name: str, runs: "Iterable[Run]") -> MosaicError:
    known = sorted({run.experiment for run in runs if run.experiment})
    hint = did_you_mean(name, known) or (f"Known: {', '.join(known[:20])}." if known else "No run belongs to one yet.")
    return MosaicError(f"There is no experiment '{name}' with runs. {hint}")
