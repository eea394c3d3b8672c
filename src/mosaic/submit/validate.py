"""Hop 1: checks a submitted config and returns a typed RunConfig. Writes nothing."""

import copy
import json
import os
import stat
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from mosaic_sdk.names import VideoModes

from mosaic.catalog.inspector import Verdict
from mosaic.catalog.secrets import redact
from mosaic.catalog.workers import Catalog
from mosaic.engines.cluster import LOCAL, RAY, load_cluster, split_place
from mosaic.model.errors import BadConfig
from mosaic.model.machine import Machine, format_memory
from mosaic.model.run import Lineage, Part, RunConfig, Settings, WorkerSpec
from mosaic.model.rundir import StateRoot
from mosaic.model.ulid import is_ulid, new_ulid
from mosaic.submit.config import PART, read_config, read_name, refuse_unknown, total_steps
from mosaic.submit.header import total_timesteps
from mosaic.submit.parts import place_of, resources_of
from mosaic.submit.paths import check_writes, resolve, resolve_reads
from mosaic.submit.program import check_program
from mosaic.submit.section import Section

DEFAULT_TCP_ADDRESS = "127.0.0.1:50055"
DEFAULT_WORKER_ID = "worker-001"
_INTERACTIVE = (
    "an interactive worker cannot be submitted. "
    "Play it as an operator with: mosaic eval --operator, or test it with: mosaic worker test"
)
_VIDEO_MODES = (VideoModes.SINGLE, VideoModes.GRID, VideoModes.OFF)


@dataclass(frozen=True)
class SubmitContext:
    """The state of the daemon and the machine that a config is checked against."""

    root: StateRoot
    catalog: Catalog
    run_exists: Callable[[str], bool]
    tcp_address: str  # empty: not bound yet
    gpu_count: int
    machine: Machine
    idempotency_key: str = ""
    config_hash: str = ""  # of the config as submitted, before any change
    default_on: str = ""  # where a run goes that does not say it; empty: this machine


def validate(document: dict[str, Any], context: SubmitContext) -> RunConfig:
    """A run that can be started as requested, or BadConfig with the field.

    The document is completed in place (the id, the names of run and worker, real paths) and becomes the run's `raw`.
    """
    refuse_unknown(document)
    _choose_place(document, context)
    read = read_config(document)
    metadata = Section(document, "").section("metadata")
    worker = metadata.section("worker")

    worker_name = _find_worker(read, worker, context)
    run_id = _choose_run_id(metadata, worker.section("config"), context)
    _check_grpc_target(read, worker, context.tcp_address)
    if read.requeue_as_resume and not read.on:
        raise BadConfig(
            "payload.requeue_as_resume", "only a cluster preempts runs, and this one is for this machine. Leave it out."
        )
    _check_room(read, context)
    for part in read.parts:
        _check_part(part, read, context)
    _check_parent(read, context)
    _check_worker_config(read, worker)
    check_writes(worker.section("config"), context.root.run(read.area, run_id).path)
    resolve_reads(worker.section("config"))
    _check_operators(metadata, context.root.run(read.area, run_id).path)

    metadata.values["run_id"] = run_id
    metadata.values["run_name"] = read.name or _default_name(read, worker_name)
    worker.values["worker_id"] = read.worker.worker_id or DEFAULT_WORKER_ID
    completed = replace(
        read,
        run_id=run_id,
        name=read_name(metadata),
        worker_name=worker_name,
        worker=_completed(read.worker, worker),
        idempotency_key=context.idempotency_key,
        config_hash=context.config_hash,
    )
    return _with_total(completed)


def settle(config: RunConfig, verdict: Verdict, context: SubmitContext) -> RunConfig:
    """The run with its settings as the worker expects them, in the variant that they need."""
    # Compared as text: in Python 1e5 and 100000 are equal, for a worker they are not.
    asked = json.dumps([config.worker.variant, config.worker.config])
    if json.dumps([verdict.variant, verdict.config]) != asked:
        metadata = config.raw["metadata"]
        worker = {**metadata["worker"], "config": copy.deepcopy(verdict.config)}
        worker |= {"variant": verdict.variant} if verdict.variant else {}
        # Validated again: a key that was moved may be a path, or determine the run's area.
        config = validate({**config.raw, "metadata": {**metadata, "worker": worker}}, context)
    # Secrets do not belong in the registry: only the config files contain them.
    settings = Settings(redact(verdict.settings.values), verdict.settings.note)
    total = total_steps(verdict.settings.values) or config.total_steps
    return replace(config, settings=settings, total_steps=total)


def _completed(read: WorkerSpec, worker: Section) -> WorkerSpec:
    """The spec with what this submit filled in; `config` is the document's own object and needs no copying."""
    return replace(read, name=worker.text("name"), script=worker.text("script"), worker_id=worker.text("worker_id"))


def _find_worker(read: RunConfig, worker: Section, context: SubmitContext) -> str:
    """The name that listings show. Resolves the path of a script."""
    check_program(worker, context.root.path)
    if read.worker.module and read.worker.python:
        return read.worker.module
    if read.worker.module:
        found = context.catalog.for_module(read.worker.module, read.worker.variant, read.worker.name)
        # Recorded, so that an environment installed while the run waits does not make the module ambiguous.
        worker.values["name"] = read.worker.name or found.names[0 if found.entry_point else 1]
        return found.name
    if not read.worker.python:
        context.catalog.environment(read.worker.variant)
    real = resolve(worker, "script", read.worker.script)
    if not stat.S_ISREG(os.stat(real).st_mode):
        raise worker.bad("script", f"'{read.worker.script}' is not a file.")
    worker.values["script"] = real
    return Path(real).name


def _choose_run_id(metadata: Section, config: Section, context: SubmitContext) -> str:
    """The requested id, in metadata or in the worker's config, if it is a new ULID; else a new one."""
    asked = {section.of("run_id"): section.values["run_id"] for section in (metadata, config) if _has_id(section)}
    for field, run_id in asked.items():
        if not is_ulid(run_id):
            raise BadConfig(
                field, f"'{run_id}' is not a valid ULID (26 letters and digits). Leave it out to get a new one."
            )
        if context.run_exists(run_id):
            raise BadConfig(field, f"run {run_id} already exists. Leave the id out to get a new one.")
    if len(set(asked.values())) > 1:
        raise config.bad("run_id", "differs from metadata.run_id. Leave one of them out.")
    return next(iter(asked.values()), "") or new_ulid()


def _has_id(section: Section) -> bool:
    return section.values.get("run_id") is not None


def _check_grpc_target(read: RunConfig, worker: Section, tcp_address: str) -> None:
    target = read.worker.grpc_target.replace("localhost:", "127.0.0.1:")
    real = tcp_address or DEFAULT_TCP_ADDRESS
    if target and target != real:
        raise worker.bad("grpc_target", f"the address of this daemon is {real}, not '{target}'. Leave the field out.")


def _choose_place(document: dict[str, Any], context: SubmitContext) -> None:
    """Record where the run goes: the daemon's default may be another one when the run is submitted again."""
    payload = Section(document, "").section("payload")
    if context.default_on and not payload.text("on"):
        document["payload"] = {**payload.values, "on": context.default_on}


def _check_room(read: RunConfig, context: SubmitContext) -> None:
    """Whether the place that a run is for exists, and could ever have what it asks for."""
    if read.on:
        _check_far(read, context)
    else:
        _check_gpus(read, context.gpu_count)
        _check_resources(read, context.machine)


def _check_part(part: Part, read: RunConfig, context: SubmitContext) -> None:
    """The same for each run of a part. It gets what it needs from its run, so a checkpoint may be out of its sight."""
    raw = {"payload": {"resources": resources_of(dict(read.raw), part.name)}}
    asked = replace(read, on=place_of(part, read.on), gpus=part.gpus, resources=part.resources, raw=raw)
    try:
        _check_room(replace(asked, lineage=Lineage()), context)
    except BadConfig as error:
        raise BadConfig("payload.parts", f"'{part.name}': {error}") from None


def _check_far(read: RunConfig, context: SubmitContext) -> None:
    """What a run on another machine cannot do yet, and whether its cluster is known."""
    name, _ = split_place(read.on)
    cluster = load_cluster(context.root, name)
    if cluster.engine == RAY:
        _check_apart(read)
    for refused, field, why in (
        (read.worker.use_grpc, "use_grpc", "a worker that calls the daemon itself runs on the daemon's machine"),
        (read.worker.drives, "drives", "a driver runs on the daemon's machine; the runs that it submits need not"),
    ):
        if refused:
            raise BadConfig(f"metadata.worker.{field}", f"{why}. Submit it with payload.on set to '{LOCAL}'.")


def _check_apart(read: RunConfig) -> None:
    """What a run needs from the daemon's disk, which the nodes of Ray do not see."""
    parent = read.lineage.parent_run_id if read.lineage.relation != PART else ""
    needs = {f"the checkpoint of run {parent}": parent, "its operators": read.operators}
    needs[f"the folder {read.worker.inputs}"] = read.worker.inputs
    if lacking := [words for words, is_needed in needs.items() if is_needed]:
        raise BadConfig(
            "payload.on",
            f"the nodes of '{read.on}' do not see {lacking[0]} on this machine. Submit it with payload.on set to "
            f"'{LOCAL}', or for a cluster with a shared file system.",
        )


def _check_gpus(read: RunConfig, gpu_count: int) -> None:
    if read.gpus.mandatory and read.gpus.requested > gpu_count:
        raise BadConfig(
            "payload.resources.gpus.requested",
            f"{read.gpus.requested} are mandatory but this machine has {gpu_count}, so the run would never start. "
            "Request fewer, or set mandatory to false.",
        )


def _check_resources(read: RunConfig, machine: Machine) -> None:
    asked = read.resources
    said = Section(dict(read.raw), "").section("payload").section("resources").values
    # A default is not checked: submit/needs.py reduces it to what the machine has.
    if said.get("cpus") is not None and asked.cpus > machine.cpus:
        raise BadConfig(
            "payload.resources.cpus",
            f"{asked.cpus:g} are requested but runs on this machine may use {machine.cpus:g}, so the run would never "
            f"start. Request fewer, or stop the daemon and run: mosaic daemon start --cpus {asked.cpus:g}",
        )
    if asked.memory_mb > machine.memory_mb:
        raise BadConfig(
            "payload.resources.memory_mb",
            f"{format_memory(asked.memory_mb)} are requested but runs on this machine may use "
            f"{format_memory(machine.memory_mb)}, so the run would never start. Request less, or stop the daemon and "
            f"run: mosaic daemon start --memory {asked.memory_mb}M",
        )


def _check_parent(read: RunConfig, context: SubmitContext) -> None:
    parent = read.lineage.parent_run_id
    if parent and not context.run_exists(parent):
        raise BadConfig("metadata.parent_run_id", f"there is no run {parent}. List runs with: mosaic runs")


def _check_operators(metadata: Section, folder: Path) -> None:
    """The paths in their settings: they run in the folder of this run."""
    operators = metadata.section("operators")
    for name in operators.values:
        config = operators.section(name).section("resolved").section("worker").section("config")
        check_writes(config, folder)
        resolve_reads(config)


def _check_worker_config(read: RunConfig, worker: Section) -> None:
    config = worker.section("config")
    extras = config.section("extras")
    for section in (config, extras):
        if section.values.get("mode") == "interactive":
            raise section.bad("mode", _INTERACTIVE)
    if "--interactive" in read.worker.arguments:
        field = f"arguments[{read.worker.arguments.index('--interactive')}]"
        raise worker.bad(field, _INTERACTIVE)
    _check_fastlane(extras)


def _check_fastlane(extras: Section) -> None:
    mode = extras.text("fastlane_video_mode")
    if mode and mode not in _VIDEO_MODES:
        raise extras.bad("fastlane_video_mode", f"must be one of {', '.join(_VIDEO_MODES)}, not '{mode}'.")
    extras.whole("fastlane_slot", 0, 63)
    extras.whole("fastlane_grid_limit", 1, 1024)


def _with_total(config: RunConfig) -> RunConfig:
    """The run with the total steps from the header of a custom script, unless the config has them."""
    if config.total_steps is not None or not config.worker.script:
        return config
    return replace(config, total_steps=total_timesteps(config.worker.script))


def _default_name(read: RunConfig, worker_name: str) -> str:
    env_id = read.worker.config.get("env_id") or read.worker.config.get("env")
    return f"{worker_name} {env_id}"[:120] if isinstance(env_id, str) and env_id.isprintable() else worker_name
