"""WorkerAnalyticsManifest: analytics.json with one class for each part."""

import dataclasses
import json
import os
from dataclasses import dataclass, field
from typing import Any, Dict, List, Mapping, Optional, Type, TypeVar, Union

from mosaic_sdk.files import write_json
from mosaic_sdk.names import CONTRACT_VERSION

Part = TypeVar("Part")


@dataclass(frozen=True)
class TensorBoardMetadata:
    log_dir: str
    enabled: bool = True
    port: Optional[int] = None
    url: Optional[str] = None


@dataclass(frozen=True)
class WandBMetadata:
    project: str
    entity: Optional[str] = None
    run_id: str = ""
    run_name: str = ""
    url: str = ""
    enabled: bool = True


@dataclass(frozen=True)
class CheckpointMetadata:
    directory: str
    format: str = ""
    files: List[str] = field(default_factory=list)
    best_checkpoint: Optional[str] = None
    final_checkpoint: Optional[str] = None


@dataclass(frozen=True)
class ArtifactsMetadata:
    tensorboard: Optional[TensorBoardMetadata] = None
    wandb: Optional[WandBMetadata] = None
    checkpoints: Optional[CheckpointMetadata] = None
    logs_dir: Optional[str] = None
    videos_dir: Optional[str] = None


@dataclass(frozen=True)
class WorkerAnalyticsManifest:
    """What a run left behind. Paths are relative to the run's folder."""

    run_id: str
    worker_type: str
    artifacts: ArtifactsMetadata = field(default_factory=ArtifactsMetadata)
    metadata: Mapping[str, Any] = field(default_factory=dict)

    def to_dict(self) -> Dict[str, Any]:
        artifacts = {name: part for name, part in dataclasses.asdict(self.artifacts).items() if part}
        return {
            "version": CONTRACT_VERSION,
            "run_id": self.run_id,
            "worker_type": self.worker_type,
            "artifacts": artifacts,
            "metadata": dict(self.metadata),
        }

    def save(self, path: "Union[str, os.PathLike[str]]") -> None:
        """Write it atomically."""
        write_json(os.fspath(path), self.to_dict(), indent=1)

    @classmethod
    def load(cls, path: "Union[str, os.PathLike[str]]") -> "WorkerAnalyticsManifest":
        with open(path, encoding="utf-8") as file:
            return cls.from_dict(json.load(file))

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> "WorkerAnalyticsManifest":
        found = data.get("artifacts") or {}
        artifacts = ArtifactsMetadata(
            tensorboard=_part(TensorBoardMetadata, found.get("tensorboard")),
            wandb=_part(WandBMetadata, found.get("wandb")),
            checkpoints=_part(CheckpointMetadata, found.get("checkpoints")),
            logs_dir=found.get("logs_dir"),
            videos_dir=found.get("videos_dir"),
        )
        return cls(data["run_id"], data["worker_type"], artifacts, data.get("metadata") or {})


def _part(kind: Type[Part], data: Optional[Mapping[str, Any]]) -> Optional[Part]:
    """The part, from the members that it knows: other versions write more."""
    if not data:
        return None
    known = {each.name for each in dataclasses.fields(kind)}  # type: ignore[arg-type]
    return kind(**{name: value for name, value in data.items() if name in known})
