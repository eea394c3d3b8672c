"""The config of a run that another program recorded. It is stored like any run's, but names nothing to start.

metadata   run_id run_name tags[]
  experiment       name axes{}
imported   format path worker state reason created_at updated_at total_steps settings{} notes[]
"""

import json
from typing import Any

from mosaic.model.run import Ending, GpuRequest, ResourceRequest, RunConfig, Settings, WorkerSpec
from mosaic.model.states import RunState
from mosaic.submit.config import MAX_STEP, read_membership, read_name, read_tags
from mosaic.submit.section import Section

FORMATS = ("tensorboard", "wandb", "ray", "sb3", "dreamer", "mlflow")
ENDS = ("TERMINATED", "FAULTED", "CANCELLED")
NOTE = "it was recorded by another program"
MOST_SETTINGS = 1 << 20  # bytes, as JSON
LONGEST_PATH = 4096
LATEST = 4e9  # unix seconds
FIELDS = {
    "": ("metadata", "imported"),
    "metadata": ("run_id", "run_name", "tags", "experiment"),
    "metadata.experiment": ("name", "axes"),
    "imported": (
        *("format", "path", "worker", "state", "reason", "created_at", "updated_at", "total_steps", "settings"),
        "notes",
    ),
}


def origin_of(format: str, path: str) -> str:
    """What the registry records as the origin of a run, or BadConfig."""
    head = Section({"format": format, "path": path}, "")
    if format not in FORMATS:
        raise head.bad("format", f"must be one of {', '.join(FORMATS)}, not '{format[:40]}'.")
    if not path.startswith("/") or len(path) > LONGEST_PATH or "\0" in path:
        raise head.bad("path", "must be an absolute path.")
    return f"{format}:{path}"


def key_of(origin: str) -> str:
    """The idempotency key that makes two imports of one origin one run."""
    return f"import/{origin}"


def is_imported(document: dict[str, Any]) -> bool:
    return isinstance(document.get("imported"), dict)


def read_imported(document: dict[str, Any]) -> tuple[RunConfig, Ending]:
    """The typed config and the end of a run, or BadConfig with the path of the field."""
    top = Section(document, "")
    metadata, about = top.section("metadata"), top.section("imported")
    for path, section in (("", top), ("metadata", metadata), ("imported", about)):
        section.refuse_unknown(FIELDS[path])
    metadata.section("experiment").refuse_unknown(FIELDS["metadata.experiment"])
    origin = origin_of(about.text("format"), about.text("path"))
    config = RunConfig(
        run_id=metadata.text("run_id"),
        name=read_name(metadata),
        area="runs",
        worker_name=about.text("worker") or about.text("format"),
        worker=WorkerSpec(),
        gpus=GpuRequest(),
        resources=ResourceRequest(cpus=0.0),
        tags=read_tags(metadata),
        total_steps=about.whole("total_steps", 0, MAX_STEP) or None,
        idempotency_key=key_of(origin),
        membership=read_membership(metadata.section("experiment")),
        origin=origin,
        settings=_read_settings(about),
        raw=document,
    )
    return config, _read_ending(about)


def _read_settings(about: Section) -> Settings:
    values = about.section("settings").values
    if len(json.dumps(values)) > MOST_SETTINGS:
        raise about.bad("settings", f"takes more than {MOST_SETTINGS:,} bytes.")
    return Settings(values, NOTE)


def _read_ending(about: Section) -> Ending:
    state = about.text("state") or ENDS[0]
    if state not in ENDS:
        raise about.bad("state", f"must be one of {', '.join(ENDS)}, not '{state[:40]}'.")
    began, ended = about.number("created_at", LATEST) or 0.0, about.number("updated_at", LATEST) or 0.0
    return Ending(RunState(state), about.text("reason"), began, max(began, ended))
