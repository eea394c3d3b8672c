"""One trial of the search: its settings, its runs (one for each seed), and what has become of them."""

from dataclasses import dataclass, field
from typing import Any

from optuna.trial import Trial

from search_worker import driver_pb2 as pb
from search_worker.config import SearchConfig
from search_worker.curve import Progress

OVER = (pb.TERMINATED, pb.FAULTED, pb.CANCELLED)
PRUNED = "pruned at step"  # how the reason of a pruned run begins


@dataclass
class TrialRun:
    """A run of a trial."""

    key: str
    config: dict[str, Any]
    run_id: str = ""  # empty: not submitted yet
    state: int = pb.STATE_UNSPECIFIED
    reason: str = ""
    progress: Progress | None = None  # None until the length of its windows is known

    @property
    def is_over(self) -> bool:
        return self.state in OVER

    @property
    def is_live(self) -> bool:
        return bool(self.run_id) and not self.is_over

    def take(self, info: Any) -> None:
        self.run_id, self.state, self.reason = info.run_id, info.state, info.reason


@dataclass
class LiveTrial:
    """A trial that is not over."""

    trial: Trial
    settings: dict[str, Any]
    runs: list[TrialRun]
    reported: set[int] = field(default_factory=set)  # steps that Optuna knows
    problem: str = ""  # why it has failed; its other runs are being cancelled

    @property
    def number(self) -> int:
        return int(self.trial.number)

    @property
    def is_over(self) -> bool:
        return all(run.is_over or (self.problem and not run.run_id) for run in self.runs)

    @property
    def was_pruned(self) -> bool:
        return any(run.state == pb.CANCELLED and run.reason.startswith(PRUNED) for run in self.runs)

    @property
    def failure(self) -> str:
        """Why one of its runs has failed; empty if none has."""
        for run in self.runs:
            if run.state == pb.FAULTED or (run.state == pb.CANCELLED and not run.reason.startswith(PRUNED)):
                return f"run {run.run_id} is {pb.State.Name(run.state)}: {run.reason.partition(chr(10))[0]}"
        return ""

    def news(self) -> list[tuple[int, float]]:
        """The steps that all its runs have reached and that Optuna does not know, with their mean values."""
        known = [run.progress.means if run.progress else {} for run in self.runs]
        common = set(known[0]).intersection(*known[1:]) - self.reported
        return [(step, sum(means[step] for means in known) / len(known)) for step in sorted(common)]


def plan_runs(config: SearchConfig, number: int, settings: dict[str, Any]) -> list[TrialRun]:
    """The runs of a trial. Equal arguments give equal configs: a key stands for one config."""
    seeds: list[int | None] = [*config.seeds] or [None]
    return [_plan(config, number, settings, seed) for seed in seeds]


def _plan(config: SearchConfig, number: int, settings: dict[str, Any], seed: int | None) -> TrialRun:
    axes = {config.places.get(name, name): value for name, value in settings.items()}
    axes |= {} if seed is None else {"seed": seed}
    own = _nested(config.worker.get("config") or {}, axes)
    name = f"{config.experiment} trial {number}{'' if seed is None else f' seed {seed}'}"
    metadata = {
        "run_name": name,
        "worker": {**config.worker, "config": own},
        "experiment": {"name": config.experiment, "axes": axes},
        **({"tags": config.tags} if config.tags else {}),
    }
    document = {"metadata": metadata, **({"payload": config.payload} if config.payload else {})}
    key = f"experiment/{config.experiment}/trial-{number}"
    return TrialRun(key if seed is None else f"{key}/seed-{seed}", document)


def _nested(base: dict[str, Any], axes: dict[str, Any]) -> dict[str, Any]:
    """A copy of `base` with each value at its dotted key."""
    whole = dict(base)
    for key, value in axes.items():
        name, _, rest = key.partition(".")
        whole[name] = _nested(whole.get(name) or {}, {rest: value}) if rest else value
    return whole
