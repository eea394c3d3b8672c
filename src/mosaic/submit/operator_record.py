"""What the daemon found for an operator, as the run's config records it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from mosaic.model.run import RunRecord, WorkerSpec
from mosaic.submit.checkpoints import Checkpoint
from mosaic.submit.operators import RL, Asked
from mosaic.submit.policy import Policy
from mosaic.submit.section import Section


@dataclass(frozen=True)
class Origin:
    """The checkpoint that a policy is from, and the run that saved it."""

    checkpoint: Checkpoint
    record: RunRecord | None  # None: the checkpoint is not in a run's folder


@dataclass(frozen=True)
class Resolved:
    """One operator: what to start, and what is known about it."""

    asked: Asked
    spec: WorkerSpec
    worker: str  # NAME or NAME@VARIANT
    policy: Policy
    capabilities: Mapping[str, Any] = field(default_factory=dict)  # of its worker
    origin: Origin | None = None
    gpus: Mapping[str, Any] = field(default_factory=dict)  # that the run of its policy requested
    notes: Sequence[str] = ()  # for the history of the run

    def record(self) -> None:
        """Write it into the entry of the config: a run reference becomes an id, a checkpoint a path."""
        entry = self.asked.section.values
        if self.asked.kind == RL and self.origin and self.origin.record:
            entry["run"], entry["checkpoint"] = self.origin.record.run_id, self.origin.checkpoint.path
        if self.asked.settings:
            entry["settings"] = dict(self.asked.settings)
        entry["resolved"] = {"worker": self._program(), "about": self.about()}

    def about(self) -> dict[str, Any]:
        """What `mosaic show`, the results and the provenance say about it."""
        found: dict[str, Any] = {"worker": self.worker}
        if self.origin and self.origin.record:
            found |= {"run_id": self.origin.record.run_id, "run_name": self.origin.record.name}
        if self.origin:
            found |= {"checkpoint": self.origin.checkpoint.path, "step": self.origin.checkpoint.step}
        found |= {"env_id": self.policy.env_id or self.asked.env_id, "algo": self.policy.algo}
        found["model"] = self.asked.settings.get("model")
        return {name: value for name, value in found.items() if value not in (None, "")}

    def _program(self) -> dict[str, Any]:
        names = ("module", "name", "variant", "arguments", "config", "environment")
        values = {name: getattr(self.spec, name) for name in names}
        values["arguments"] = list(self.spec.arguments)
        return {name: value for name, value in values.items() if value}


def only_origin(operators: Sequence[Resolved]) -> tuple[RunRecord, Checkpoint] | None:
    """The run and the checkpoint of an evaluation with one policy of a run."""
    origins = [operator.origin for operator in operators if operator.origin]
    saved = [(origin.record, origin.checkpoint) for origin in origins if origin.record]
    return saved[0] if len(saved) == 1 else None


def request_gpus(document: dict[str, Any], operators: Sequence[Resolved]) -> None:
    """Request the GPUs that the trainings of the policies had, unless the config says how many.

    The operators share them: as many as the largest request, not the sum.
    """
    asked = [operator.gpus for operator in operators if operator.gpus.get("requested")]
    resources = Section(document, "").section("payload").section("resources")
    if not asked or resources.values.get("gpus") is not None:
        return
    requested = max(int(gpus["requested"]) for gpus in asked)
    gpus = {"requested": requested, "mandatory": any(gpus.get("mandatory") for gpus in asked)}
    payload = document.get("payload") or {}
    document["payload"] = {**payload, "resources": {**resources.values, "gpus": gpus}}
