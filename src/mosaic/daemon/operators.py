"""Operators: resolves `metadata.operators` of a submitted config to workers, checkpoints and settings (ADR 18).

1. A run reference and a checkpoint are looked up once, at submit; the id and the path are recorded. A resumed
   evaluation has the recorded ones, so its operators are the same.
2. Everything that can be known before the start is refused here, in one sentence: an unknown run, a run without a
   checkpoint, a worker without an interactive mode, a policy of another environment, a setting that does not exist.
3. Nothing is written: an evaluation with one wrong operator leaves no trace.
"""

import asyncio
import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from mosaic.catalog.descriptor import Descriptor
from mosaic.catalog.inspector import Inspector
from mosaic.catalog.interactive import Interactive
from mosaic.catalog.placement import put_in_place
from mosaic.catalog.schema import INTERACTIVE_KEY
from mosaic.catalog.workers import Catalog, Worker, spelled
from mosaic.daemon.parents import Parents, record_parent, refuse_relation
from mosaic.model.errors import AmbiguousRun, BadConfig, NoCheckpoint, UnknownRun
from mosaic.model.run import RunRecord, WorkerSpec
from mosaic.registry.thread import RegistryThread
from mosaic.submit.checkpoints import Checkpoint
from mosaic.submit.config import read_worker
from mosaic.submit.derive import EVAL, Parent
from mosaic.submit.operator_record import Origin, Resolved, only_origin, request_gpus
from mosaic.submit.operator_settings import operator_config
from mosaic.submit.operators import RL, Asked, read_asked
from mosaic.submit.policy import Policy, policy_of
from mosaic.submit.section import Section


@dataclass(frozen=True)
class Program:
    """The worker of an operator, and the run whose policy it loads."""

    worker: Worker
    descriptor: Descriptor
    way: Interactive
    parent: Parent | None = None

    def spec(self, config: Mapping[str, Any]) -> WorkerSpec:
        return WorkerSpec(
            module=self.worker.module,
            name=self.worker.name,
            variant=self.worker.environment.variant,
            arguments=self.way.arguments,
            config=config,
            # The parent's variables: a library may need them to create the environment.
            environment=(self.parent.worker.get("environment") or {}) if self.parent else {},
        )


class Operators:
    """Used by the daemon's loop alone."""

    def __init__(self, registry: RegistryThread, catalog: Catalog, inspector: Inspector, parents: Parents) -> None:
        self._registry = registry
        self._catalog = catalog
        self._inspector = inspector
        self._parents = parents

    async def resolve(self, document: dict[str, Any]) -> list[Resolved]:
        """Resolve every operator in a submitted config, or raise BadConfig with the field.

        What was found is written into `document`.
        """
        metadata = Section(document, "").section("metadata")
        found = await self._resolve_all(read_asked(metadata))
        for operator in found:
            operator.record()
        request_gpus(document, found)
        if (origin := only_origin(found)) and not metadata.text("parent_run_id"):
            record_parent(metadata, origin[0], EVAL, origin[1])
        return found

    async def _resolve_all(self, asked: list[Asked]) -> list[Resolved]:
        # At once: each may have to ask a worker for its schema, which takes seconds.
        tasks = [asyncio.ensure_future(self._resolve(one)) for one in asked]
        await asyncio.gather(*tasks, return_exceptions=True)
        return [task.result() for task in tasks]  # of several errors, the first in the config's order

    async def _resolve(self, asked: Asked) -> Resolved:
        try:
            return await (self._policy(asked) if asked.kind == RL else self._worker(asked))
        except BadConfig as error:
            raise _named(error, asked) from None
        except (UnknownRun, AmbiguousRun, NoCheckpoint) as error:
            raise asked.section.bad("run", str(error)) from None

    # ---- a policy of a run

    async def _policy(self, asked: Asked) -> Resolved:
        record = await self._registry.do(lambda r: r.find(asked.run, trainings_only=True))
        refuse_relation(record, EVAL)
        parent = await self._parents.read(record)
        program = await self._program_of(record, parent)
        checkpoint = await self._checkpoint(asked, record, parent)
        notes = checkpoint.with_notes(f"operator {asked.name} is {self._parents.describe(checkpoint, record)}")
        return await self._settled(asked, program, Origin(checkpoint, record), notes)

    async def _program_of(self, record: RunRecord, parent: Parent) -> Program:
        """The worker that loads the run's checkpoints: its own, or the one that ships its script."""
        spec = read_worker(Section(dict(parent.document), "").section("metadata").section("worker"))
        worker, descriptor = await self._inspector.describe(spec)
        if worker is None or descriptor is None:
            raise BadConfig("", f"Run {record.run_id} is not the run of a worker, so nothing can load its checkpoints.")
        return _program(worker, descriptor, parent)

    async def _checkpoint(self, asked: Asked, record: RunRecord, parent: Parent) -> Checkpoint:
        path = asked.section.text("checkpoint")
        inside = self._parents.rundir(record).path / path
        # A relative path is one inside the run's folder.
        if path and not os.path.isabs(os.path.expanduser(path)) and "\0" not in path and os.path.exists(inside):
            asked.section.values["checkpoint"] = str(inside)
        return await self._parents.checkpoint(asked.section, record, parent)

    # ---- a worker without a run

    async def _worker(self, asked: Asked) -> Resolved:
        name, _, variant = asked.worker.partition("@")
        worker = await asyncio.to_thread(self._catalog.find, name, variant)
        _, descriptor = await self._inspector.describe(WorkerSpec(module=worker.module, name=name, variant=variant))
        program = _program(worker, descriptor or Descriptor())
        schema, notes = program.descriptor.schema, list[str]()
        own = put_in_place(asked.settings, schema, asked.settings_path)
        located = await self._parents.resolve_settings(Section(own, asked.settings_path), schema, notes)
        origin = Origin(located[0][1], located[0][0]) if located else None
        return await self._settled(replace(asked, settings=own), program, origin, notes)

    # ---- both

    async def _settled(self, asked: Asked, program: Program, origin: Origin | None, notes: list[str]) -> Resolved:
        """The operator with its settings, checked against the worker's schema as in any submit."""
        policy = await self._policy_in(origin) if origin else Policy()
        path = origin.checkpoint.path if origin and asked.run else ""
        parent = program.parent.config if program.parent else {}
        config = operator_config(asked, program.way, program.descriptor.schema, policy, path, parent)
        verdict = await self._inspector.inspect(program.spec(config), asked.settings_path)
        spec = replace(program.spec(verdict.config), variant=verdict.variant)
        name = spelled(program.worker.name, verdict.variant)
        return Resolved(asked, spec, name, policy, verdict.capabilities, origin, _gpus(program.parent), notes)

    async def _policy_in(self, origin: Origin) -> Policy:
        record = origin.record
        in_force = await self._registry.do(lambda r: r.settings(record.run_id)) if record else {}
        return await asyncio.to_thread(policy_of, origin.checkpoint.path, in_force)


def _named(error: BadConfig, asked: Asked) -> BadConfig:
    """An error about a worker or a run, with the operator that asked for it as its field."""
    if error.field.startswith(asked.section.path):
        return error
    return type(error)(asked.section.path, str(error).removeprefix(f"{error.field}: "))


def _program(worker: Worker, descriptor: Descriptor, parent: Parent | None = None) -> Program:
    if descriptor.problem:
        raise BadConfig("", f"Worker '{worker.spelled}' does not describe itself: {descriptor.problem}.")
    way = Interactive.of(descriptor.schema)
    if way is None:
        raise BadConfig(
            "",
            f"Worker '{worker.spelled}' offers no interactive mode, so it cannot be an operator: its schema has no "
            f"{INTERACTIVE_KEY} (see docs/howto/new-worker.md).",
        )
    return Program(worker, descriptor, way, parent)


def _gpus(parent: Parent | None) -> Mapping[str, Any]:
    document = dict(parent.document) if parent else {}
    return Section(document, "").section("payload").section("resources").section("gpus").values
