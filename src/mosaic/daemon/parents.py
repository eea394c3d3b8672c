"""Parents: completes a config that refers to another run or to one of its checkpoints.

1. `metadata.parent_run_id` and `policy_path=last` take any run reference; the id and a resolved path are recorded.
2. A config with a parent and without a module gets the parent's module and settings (submit/derive.py).
3. A run that loads a checkpoint of another run has that run as its parent, even if the config does not say so.
"""

import asyncio
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mosaic_sdk.keywords import PARTS

from mosaic.catalog.descriptor import Descriptor
from mosaic.catalog.inspector import Inspector
from mosaic.catalog.schema import CHECKPOINT_KEY, Schema, parameters
from mosaic.daemon.saved_checkpoints import SavedCheckpoints, spelled
from mosaic.ingest.receive import Ingest
from mosaic.model.durable import read_json
from mosaic.model.errors import AmbiguousRun, BadConfig, RunIsLive, UnknownRun
from mosaic.model.run import RunConfig, RunRecord, WorkerSpec
from mosaic.model.rundir import AREAS, EVALS, RunDir, StateRoot
from mosaic.model.states import RunState
from mosaic.registry.thread import RegistryThread
from mosaic.submit.checkpoints import Checkpoint
from mosaic.submit.config import RELATIONS, read_worker
from mosaic.submit.derive import (
    EVAL,
    KEYWORDS,
    RESUME,
    Parent,
    derive,
    read_evaluation,
    refuse_finished,
    schema_settings,
    total_of,
)
from mosaic.submit.paths import resolve
from mosaic.submit.route import area_of
from mosaic.submit.section import Section

BEST = ":best"  # `policy_path=RUN:best`
_NAMES = ("env_id", "env", "algo")  # strings in nearly every config that are never a checkpoint
_VERBS = {RESUME: "continues", EVAL: "evaluates"}


@dataclass(frozen=True)
class Traced:
    """A config with all references resolved, and a note for the history of the run."""

    document: dict[str, Any]
    note: str = ""


class Parents:
    """Used by the daemon's loop alone."""

    def __init__(self, root: StateRoot, registry: RegistryThread, ingest: Ingest, inspector: Inspector) -> None:
        self._root = root
        self._registry = registry
        self._ingest = ingest
        self._inspector = inspector
        self._saved = SavedCheckpoints(root, ingest)

    async def trace(self, document: dict[str, Any]) -> Traced:
        """Resolve the references in a submitted config, or raise an error that says what is missing.

        References are replaced in `document` itself.
        """
        metadata = Section(document, "").section("metadata")
        notes: list[str] = []
        if metadata.text("parent_run_id"):
            document = await self._with_parent(document, metadata, notes)
        elif metadata.text("relation"):
            raise metadata.bad("relation", "needs a parent. Set metadata.parent_run_id.")
        await self._resolve_checkpoints(document, notes)
        return Traced(document, "; ".join(notes))

    # ---- parents

    async def _with_parent(self, document: dict[str, Any], metadata: Section, notes: list[str]) -> dict[str, Any]:
        record = await self._registry.do(lambda r: r.find(metadata.text("parent_run_id")))
        metadata.values["parent_run_id"] = record.run_id
        relation = metadata.text("relation")
        worker = metadata.section("worker")
        if worker.text("module") or worker.text("script"):
            return document
        if relation not in RELATIONS:
            raise metadata.bad("relation", f"must be one of {', '.join(RELATIONS)}, not '{relation}'.")
        return await self._derived(document, metadata, record, notes)

    async def _derived(
        self, document: dict[str, Any], metadata: Section, record: RunRecord, notes: list[str]
    ) -> dict[str, Any]:
        relation = metadata.text("relation")
        parent = await self.read(record)
        refuse_relation(record, relation, parent)
        schema_settings(parent, relation)  # first: without support in the worker there is no need for a checkpoint
        asked = read_evaluation(metadata, parent) if relation == EVAL else {}
        found = await self.checkpoint(metadata, record, parent)
        notes += found.with_notes(f"{_VERBS[relation]} {self.describe(found, record)}")
        whole = derive(document, parent, relation, {"checkpoint": found.path, **asked})
        whole["metadata"]["parent_checkpoint"] = {"path": found.path, "step": found.step}
        if relation == RESUME and not parent.plays_operators and not parent.drives:
            before = await self._total(record, parent)
            refuse_finished(parent, before, found, whole["metadata"]["worker"]["config"])
        return whole

    async def _total(self, record: RunRecord, parent: Parent) -> int | None:
        """The total steps of the parent, from its record, its heartbeats or its config."""
        summary = await self._ingest.summary(self._saved.rundir(record))
        return record.total_steps or summary.total_steps or total_of(parent.config, parent.schema)[1]

    async def checkpoint(self, section: Section, record: RunRecord, parent: Parent) -> Checkpoint:
        """The checkpoint of a run that `checkpoint` of this section asks for: `best`, a path, or else the newest."""
        asked = section.text("checkpoint")
        if asked == "best":
            return await self._saved.best(record)
        if asked:
            return await self._saved.at(record, resolve(section, "checkpoint", asked))
        return await self._saved.newest(record, parent.schema)

    def describe(self, found: Checkpoint, record: RunRecord) -> str:
        """`checkpoints/checkpoint-000000000500.json (step 500) of run 01…`."""
        return f"{spelled(found, self.rundir(record))} of run {record.run_id}"

    def rundir(self, record: RunRecord) -> RunDir:
        return self._saved.rundir(record)

    async def read(self, record: RunRecord) -> Parent:
        """A run as the parent of another, with the schema of its worker."""
        if record.origin:
            why = f"Run {record.run_id} was imported from {record.origin}, so it has no worker here: "
            raise BadConfig("", f"{why}it can be neither resumed nor evaluated. Start a new run with: mosaic run")
        document = await asyncio.to_thread(read_json, self._root.config_file(record.run_id))
        if document is None:
            raise BadConfig("metadata.parent_run_id", f"the config file of run {record.run_id} is missing.")
        about = await self._describe(read_worker(Section(document, "").section("metadata").section("worker")))
        if about.problem:
            raise BadConfig("", f"Worker '{record.worker_name}' does not describe itself: {about.problem}.")
        is_finished = record.state is RunState.TERMINATED
        return Parent(record.run_id, record.name, record.worker_name, document, about.schema, is_finished)

    async def _describe(self, worker: WorkerSpec) -> Descriptor:
        return await self._inspector.descriptor_of(worker) or Descriptor()

    # ---- settings that are checkpoints

    async def _resolve_checkpoints(self, document: dict[str, Any], notes: list[str]) -> None:
        """Replace every setting that is a checkpoint by a resolved path."""
        metadata = Section(document, "").section("metadata")
        config = metadata.section("worker").section("config")
        if not _has_texts(config):
            return
        worker = read_worker(metadata.section("worker"))
        relation = EVAL if area_of(worker) == EVALS else RESUME
        schema = (await self._describe(worker)).schema
        for record, found in await self.resolve_settings(config, schema, notes):
            if record:
                record_parent(metadata, record, relation, found)

    async def resolve_settings(
        self, config: Section, schema: Schema, notes: list[str]
    ) -> list[tuple[RunRecord | None, Checkpoint]]:
        """Replace every setting that is a checkpoint by a resolved path; returns these and the runs that saved them."""
        located: list[tuple[RunRecord | None, Checkpoint]] = []
        for section, name in _marked(config, schema):
            if value := section.text(name):
                located.append(await self._located(section, name, value, schema, notes))
                section.values[name] = located[-1][1].path
        return located

    async def _located(
        self, section: Section, name: str, value: str, schema: Schema, notes: list[str]
    ) -> tuple[RunRecord | None, Checkpoint]:
        """The checkpoint that a setting refers to, and the run that saved it."""
        if value.startswith(("/", "~")):
            real = resolve(section, name, value)
            owner = await self._owner(real)
            return owner, await self._saved.at(owner, real) if owner else Checkpoint(real)
        record = await self._find(section, name, value.removesuffix(BEST))
        find = self._saved.best(record) if value.endswith(BEST) else self._saved.newest(record, schema)
        found = await find
        notes += found.with_notes(f"{name}={value} is {self.describe(found, record)}")
        return record, found

    async def _owner(self, path: str) -> RunRecord | None:
        """The run whose folder contains a path."""
        trainer = Path(os.path.realpath(self._root.trainer))
        parts = Path(path).relative_to(trainer).parts if Path(path).is_relative_to(trainer) else ()
        if len(parts) < 2 or parts[0] not in AREAS:
            return None
        try:
            return await self._registry.do(lambda r: r.get(parts[1]))
        except UnknownRun:
            return None

    async def _find(self, section: Section, name: str, reference: str) -> RunRecord:
        try:
            return await self._registry.do(lambda r: r.find(reference))
        except AmbiguousRun as error:
            raise section.bad(name, str(error)) from None
        except UnknownRun as error:
            raise section.bad(name, f"'{reference}' is neither an existing path nor a run. {error}") from None


async def refuse_unresumable(config: RunConfig, inspector: Inspector) -> None:
    """BadConfig for a run that is to be continued after its cluster has ended it, if its worker cannot."""
    if not config.requeue_as_resume:
        return
    descriptor = await inspector.descriptor_of(config.worker)
    if not (descriptor and descriptor.schema.get(KEYWORDS[RESUME])):
        raise BadConfig(
            "payload.requeue_as_resume",
            f"'{config.worker_name}' does not say how its runs are resumed (docs/howto/new-worker.md). Leave it out.",
        )


async def refuse_unknown_parts(config: RunConfig, inspector: Inspector) -> None:
    """BadConfig for a part that the worker of this run does not have."""
    if not config.parts:
        return
    descriptor = await inspector.descriptor_of(config.worker)
    known = [str(name) for name in (descriptor.schema.get(PARTS) if descriptor else None) or ()]
    for part in config.parts:
        if part.name not in known:
            hint = f"Its parts: {', '.join(known)}." if known else "It has no parts. Leave payload.parts out."
            raise BadConfig("payload.parts", f"'{config.worker_name}' has no part '{part.name}'. {hint}")


def record_parent(metadata: Section, record: RunRecord, relation: str, found: Checkpoint) -> None:
    """Record the run that a checkpoint is from, unless the config has a parent already."""
    metadata.values.setdefault("parent_run_id", record.run_id)
    metadata.values.setdefault("relation", relation)
    metadata.values.setdefault("parent_checkpoint", {"path": found.path, "step": found.step})


def refuse_relation(record: RunRecord, relation: str, parent: Parent | None = None) -> None:
    """BadConfig for an evaluation, which has no policy of its own. One that plays operators can be continued."""
    is_resumable = relation == RESUME and parent is not None and parent.plays_operators
    if record.area == EVALS and not is_resumable:
        origin = record.lineage.parent_run_id
        of, hint = (f" of run {origin}", f" Use the training: mosaic {relation} {origin}") if origin else ("", "")
        verb = "resumed" if relation == RESUME else "evaluated"
        raise BadConfig("", f"Run {record.run_id} is an evaluation{of}; only trainings can be {verb}.{hint}")
    if relation == RESUME and not record.state.is_over:
        raise RunIsLive(record.run_id, str(record.state))


def _marked(config: Section, schema: Schema) -> Iterator[tuple[Section, str]]:
    """The settings of this config that the schema marks as checkpoints."""
    for place, name, part in parameters(schema):
        if part.get(CHECKPOINT_KEY) is True:
            section = config
            for folder in place:
                section = section.section(folder)
            if name in section.values:
                yield section, name


def _has_texts(config: Section) -> bool:
    """Whether any setting may be a checkpoint. Most configs have none, and reading the schema takes milliseconds."""
    extras: Any = config.values.get("extras")
    params: Any = extras.get("algo_params") if isinstance(extras, Mapping) else None
    found = (part.items() for part in (config.values, extras, params) if isinstance(part, Mapping))
    return any(isinstance(value, str) and value and name not in _NAMES for items in found for name, value in items)
