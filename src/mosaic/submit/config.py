"""A trainer config as a typed object: shapes and ranges, nothing that depends on this machine.

metadata   run_id run_name tags[] notes parent_run_id relation parent_checkpoint operators{} role
  experiment       name axes{}
  worker   module|script name variant arguments[] config{} environment{} use_grpc grpc_target worker_id commands
           python cwd inputs observe drives
payload    on requeue_as_resume parts[]
  resources        cpus memory_mb
    gpus           requested mandatory
  limits           time_s heartbeat_s spin_s no_progress_s quiet_s grace_s
"""

import json
import re
from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from mosaic.engines.cluster import LOCAL, split_place
from mosaic.model.labels import MAX_NAME, MAX_TAG, MAX_TAGS, is_label
from mosaic.model.names import VALID, is_worker_name
from mosaic.model.run import GpuRequest, Limits, Lineage, Membership, ResourceRequest, RunConfig, WorkerSpec
from mosaic.model.ulid import is_ulid
from mosaic.submit.operators import read_operators
from mosaic.submit.parts import read_parts, read_role
from mosaic.submit.resources import read_gpus, read_resources
from mosaic.submit.route import area_of
from mosaic.submit.section import Section
from mosaic.submit.variables import check_for_kernel, read_variables

METADATA = {  # keys and their meaning
    "run_id": "a ULID that no run has; without it, the run gets a new one",
    "run_name": "how listings show the run",
    "tags": "a list of labels to select runs by",
    "worker": "what to start: `metadata.worker`, below",
    "notes": "any JSON; stored with the config and not used",
    "parent_run_id": "the run that this one is derived from; any run reference",
    "relation": "`resume` or `eval`; without a module or script, the parent's config completes this one",
    "parent_checkpoint": "written by the daemon: `path` and `step` of the checkpoint that was used",
    "experiment": "the experiment that the run belongs to: `name`, and in `axes` the settings that vary in it",
    "role": "written by the daemon, in a part of a run: which one it is",
    "operators": "policies, LLMs and other workers that this run's worker asks for actions, by their names",
}
FIELDS: dict[
    str, tuple[str, ...]
] = {  # of each object in a config, by its path; metadata.worker.config is the worker's
    "": ("metadata", "payload"),
    "metadata": tuple(METADATA),
    "metadata.experiment": ("name", "axes"),
    "metadata.worker": tuple(field.name for field in fields(WorkerSpec)),
    "payload": ("on", "requeue_as_resume", "parts", "resources", "limits"),
    "payload.resources": ("gpus", *(field.name for field in fields(ResourceRequest))),
    "payload.resources.gpus": tuple(field.name for field in fields(GpuRequest)),
    "payload.limits": tuple(field.name for field in fields(Limits)),
}
RELATIONS = ("resume", "eval")
PART = "part"  # a relation that only the daemon submits

MAX_REQUEUES = 1000
MAX_STEP = 2**63 - 1  # the wire and the databases have 64 bits for it
MAX_AXES = 4096  # bytes, as JSON: every listing contains them
TOTAL_NAMES = ("total_timesteps", "total_steps", "steps")  # names that workers use for their number of steps
_MODULE = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*")
_WORKER_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


def read_config(document: dict[str, Any], worker_name: str = "", idempotency_key: str = "") -> RunConfig:
    """The typed config, or BadConfig with the path of the field. Unknown fields are ignored: see refuse_unknown."""
    top = Section(document, "")
    metadata, payload = top.section("metadata"), top.section("payload")
    worker = read_worker(metadata.section("worker"))
    operators = read_operators(metadata)
    _check_driver(metadata, worker)
    return RunConfig(
        run_id=metadata.text("run_id"),
        name=read_name(metadata),
        on=_read_place(payload),
        requeue_as_resume=payload.whole("requeue_as_resume", 0, MAX_REQUEUES),
        area=area_of(worker, bool(operators)),
        worker_name=worker_name or worker.script.rpartition("/")[2] or worker.module.partition(".")[0],
        worker=worker,
        gpus=read_gpus(payload.section("resources").section("gpus")),
        resources=read_resources(payload.section("resources")),
        limits=_read_limits(payload.section("limits")),
        tags=read_tags(metadata),
        total_steps=total_steps(worker.config),
        idempotency_key=idempotency_key,
        lineage=_read_lineage(metadata),
        membership=read_membership(metadata.section("experiment")),
        operators=operators,
        parts=read_parts(payload),
        role=read_role(metadata),
        raw=document,
    )


def refuse_unknown(document: dict[str, Any]) -> None:
    """BadConfig for the first unknown field, with a suggestion."""
    elsewhere = {name: f"{path}.{name}" if path else name for path, names in FIELDS.items() for name in names}
    for path, names in FIELDS.items():
        section = Section(document, "")
        for name in path.split(".") if path else ():
            section = section.section(name)
        section.refuse_unknown(names, elsewhere)


def _read_place(payload: Section) -> str:
    on = payload.text("on")
    if not on or on == LOCAL:
        return ""
    return ":".join(filter(None, split_place(on)))


def read_worker(section: Section) -> WorkerSpec:
    return WorkerSpec(
        **_read_program(section),
        name=_read_worker_name(section),
        variant=section.text("variant"),
        arguments=_read_arguments(section),
        config=section.section("config").values,
        environment=read_variables(section.section("environment")),
        use_grpc=section.flag("use_grpc"),
        grpc_target=section.text("grpc_target"),
        worker_id=_read_worker_id(section),
        commands=section.flag("commands"),
        python=_read_python(section),
        cwd=section.text("cwd"),
        inputs=_read_inputs(section),
        drives=section.flag("drives"),
        observe=section.flag("observe") if section.values.get("observe") is not None else None,
    )


def _read_program(section: Section) -> dict[str, str]:
    module, script = section.text("module"), section.text("script")
    if not module and not script:
        raise section.bad("module", "missing. Set a module (toy_worker.cli) or a script.")
    if module and script:
        raise section.bad("script", "metadata.worker.module is set as well. Keep one of the two.")
    if module and not _MODULE.fullmatch(module):
        raise section.bad("module", f"'{module}' is not a valid module name such as toy_worker.cli.")
    return {"module": module, "script": script}


def _read_worker_name(section: Section) -> str:
    name = section.text("name")
    if name and section.values.get("script"):
        raise section.bad("name", "not allowed with a script. Choose its environment with metadata.worker.variant.")
    return name


def _read_python(section: Section) -> str:
    python = section.text("python")
    for other in ("name", "variant"):
        if python and section.values.get(other):
            raise section.bad("python", f"metadata.worker.{other} names an environment as well. Keep one of the two.")
    return python


def _read_inputs(section: Section) -> str:
    inputs = section.text("inputs")
    if inputs and section.values.get("cwd"):
        raise section.bad("inputs", "only the run's own folder gets links, and metadata.worker.cwd names another one.")
    return inputs


def _read_arguments(section: Section) -> tuple[str, ...]:
    arguments = section.texts("arguments")
    for number, argument in enumerate(arguments):
        check_for_kernel(section.of(f"arguments[{number}]"), argument)
    return arguments


def _read_worker_id(section: Section) -> str:
    worker_id = section.text("worker_id")
    if worker_id and not _WORKER_ID.fullmatch(worker_id):
        raise section.bad(
            "worker_id",
            "must have 1 to 64 letters, digits, dots, dashes or underscores, and start with a letter or digit.",
        )
    return worker_id


def read_name(metadata: Section) -> str:
    name = metadata.text("run_name")
    if metadata.values.get("run_name") is not None and not is_label(name, MAX_NAME):
        raise metadata.bad("run_name", f"must have 1 to {MAX_NAME} printable characters.")
    return name


def read_tags(metadata: Section) -> tuple[str, ...]:
    tags = metadata.texts("tags")
    if len(tags) > MAX_TAGS:
        raise metadata.bad("tags", f"has {len(tags)} tags; the maximum is {MAX_TAGS}.")
    for number, tag in enumerate(tags):
        if not is_label(tag, MAX_TAG):
            raise metadata.bad(f"tags[{number}]", f"must have 1 to {MAX_TAG} printable characters.")
    return tags


def _read_lineage(metadata: Section) -> Lineage:
    parent, relation = metadata.text("parent_run_id"), metadata.text("relation")
    if parent and not is_ulid(parent):
        raise metadata.bad("parent_run_id", f"'{parent}' is not a valid run id (26 letters and digits).")
    if relation and relation not in (*RELATIONS, PART):
        raise metadata.bad("relation", f"must be one of {', '.join(RELATIONS)}, not '{relation}'.")
    if bool(parent) != bool(relation):
        raise metadata.bad("relation", "set both metadata.parent_run_id and metadata.relation, or neither.")
    _check_parent_checkpoint(metadata, parent)
    return Lineage(parent, relation)


def read_membership(section: Section) -> Membership:
    name, axes = section.text("name"), section.section("axes").values
    if section.values and not is_worker_name(name):
        raise section.bad("name", f"'{name}' is not a valid name. {VALID}")
    if len(json.dumps(axes)) > MAX_AXES:
        raise section.bad("axes", f"takes more than {MAX_AXES} bytes.")
    return Membership(name, axes)


def _check_driver(metadata: Section, worker: WorkerSpec) -> None:
    if worker.drives and not metadata.section("experiment").values:
        raise metadata.section("worker").bad(
            "drives", "a driver drives the runs of its experiment. Set metadata.experiment as well."
        )


def _check_parent_checkpoint(metadata: Section, parent: str) -> None:
    """The daemon writes this field; a config that is submitted again contains it."""
    checkpoint = metadata.section("parent_checkpoint")
    checkpoint.refuse_unknown(("path", "step"))
    checkpoint.text("path")
    checkpoint.whole("step", 0, MAX_STEP)
    if checkpoint.values and not parent:
        raise metadata.bad("parent_checkpoint", "needs the run that saved it in metadata.parent_run_id.")


def _read_limits(section: Section) -> Limits:
    return Limits(
        time_s=section.seconds("time_s"),
        heartbeat_s=section.seconds("heartbeat_s") or Limits.heartbeat_s,
        spin_s=_read_spin(section),
        no_progress_s=section.seconds("no_progress_s"),
        quiet_s=section.seconds("quiet_s"),
        grace_s=section.seconds("grace_s") or Limits.grace_s,
    )


def _read_spin(section: Section) -> float:
    """0 means never. If the config leaves it out, the worker may set it (submit/needs.py)."""
    value = section.seconds("spin_s", zero_allowed=True)
    return Limits.spin_s if value is None else value


def total_steps(settings: Mapping[str, Any]) -> int | None:
    """The total number of steps of a run, under one of the names that workers use; None if it is not set."""
    for name in TOTAL_NAMES:
        value = settings.get(name)
        if isinstance(value, float) and value.is_integer():
            value = int(value)
        if isinstance(value, int) and not isinstance(value, bool) and 0 < value < 2**63:
            return value
    return None
