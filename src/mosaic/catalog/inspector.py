"""Checks the settings of a submitted run against its worker's schema; asks the worker for it if it is not cached."""

import asyncio
import logging
import re
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

from mosaic.catalog.answers import Answers
from mosaic.catalog.check import check
from mosaic.catalog.common import with_common
from mosaic.catalog.descriptor import Descriptor
from mosaic.catalog.in_force import flattened, settings_in_force
from mosaic.catalog.placement import PATH, put_in_place, with_integers
from mosaic.catalog.schema import for_config, ships, variant_for
from mosaic.catalog.workers import Catalog, Worker
from mosaic.model.errors import BadConfig, UnknownWorker
from mosaic.model.run import Settings, WorkerSpec

log = logging.getLogger(__name__)

NO_SCHEMA = "the worker publishes no schema"
_NONSENSE = (TypeError, ValueError, AttributeError, KeyError, re.error)  # what an invalid schema can raise


@dataclass(frozen=True)
class Verdict:
    """The result for settings that are accepted."""

    variant: str  # of the worker's environment: what the config names, else what the schema maps one of its values to
    config: Mapping[str, Any]  # as the worker reads it: every key in its place, whole numbers as integers
    settings: Settings = field(default_factory=Settings)  # those in force, or why nothing was checked
    capabilities: Mapping[str, Any] = field(default_factory=dict)  # as the worker reports them; may be empty

    @property
    def note(self) -> str:
        """A note for the run's history."""
        return f"its settings were not checked: {self.settings.note}" if self.settings.note else ""


class Inspector:
    """Used by the daemon's loop alone.

    1. A worker whose schema is not known is asked once for all waiting submits, with a timeout and in a separate
       thread: neither the loop nor a submit for another worker waits for a library's import.
    2. An unavailable schema rejects no run: the settings stay unchecked, and the run's record says so.
    3. A schema with a keyword that MOSAIC does not support is rejected: its values would seem to be checked.
    """

    def __init__(self, catalog: Catalog, answers: Answers) -> None:
        self._catalog = catalog
        self._answers = answers
        self._asking: dict[Worker, asyncio.Future[Descriptor]] = {}

    async def inspect(self, spec: WorkerSpec, path: str = PATH) -> Verdict:
        """BadConfig for the first value that the worker does not accept, or whose variant is not installed.

        `path`: of the settings, for messages.
        """
        worker, descriptor = await asyncio.to_thread(self._look_up, spec)
        if worker is None:
            return _unchecked(spec, "a script has no schema" if spec.script else NO_SCHEMA)
        descriptor = descriptor or await self._ask(worker)
        if descriptor.unsupported:
            raise BadConfig("", f"The schema of worker '{worker.spelled}' cannot be used: {descriptor.unsupported}.")
        variant, setting = ("", "") if spec.variant or spec.script else _variant_for(spec.config, descriptor)
        if not variant:
            verdict = await asyncio.to_thread(judge, spec, descriptor, path)
            return replace(verdict, capabilities=descriptor.capabilities)
        await asyncio.to_thread(self._refuse_missing, worker.name, variant, setting)
        return await self.inspect(replace(spec, variant=variant), path)  # the variant's own schema decides

    async def inspect_all(self, specs: Sequence[WorkerSpec]) -> list[Verdict]:
        """`inspect` for many, in one thread for all whose worker is known."""
        found = await asyncio.to_thread(lambda: [self._inspect_known(spec) for spec in specs])
        return [known or await self.inspect(spec) for spec, known in zip(specs, found, strict=True)]

    def _inspect_known(self, spec: WorkerSpec) -> Verdict | None:
        """The verdict, if nobody has to be asked for it."""
        worker, descriptor = self._look_up(spec)
        if worker is None or descriptor is None or descriptor.unsupported:
            return None
        if not spec.variant and not spec.script and _variant_for(spec.config, descriptor)[0]:
            return None
        return replace(judge(spec, descriptor), capabilities=descriptor.capabilities)

    async def descriptor_of(self, spec: WorkerSpec) -> Descriptor | None:
        """The worker's descriptor; None for a script, and for a package without a worker's entry point."""
        _, descriptor = await self.describe(spec)
        return descriptor

    async def describe(self, spec: WorkerSpec) -> tuple[Worker | None, Descriptor | None]:
        """The worker and its descriptor; for a script those of the worker that ships it."""
        worker, descriptor = await asyncio.to_thread(self._look_up, spec)
        return (None, None) if worker is None else (worker, descriptor or await self._ask(worker))

    def _refuse_missing(self, name: str, variant: str, setting: str) -> None:
        try:
            self._catalog.find(name, variant)
        except UnknownWorker as error:
            raise UnknownWorker("metadata.worker.variant", f"{setting} needs the variant {variant}. {error}") from None

    def _look_up(self, spec: WorkerSpec) -> tuple[Worker | None, Descriptor | None]:
        """The worker, if the program is one, and its cached descriptor."""
        if spec.python:
            return None, None  # a program that MOSAIC knows nothing about
        if spec.script:
            return self._shipper(spec)
        worker = self._catalog.for_module(spec.module, spec.variant, spec.name)
        return (worker, self._answers.remembered(worker)) if worker.entry_point else (None, None)

    def _shipper(self, spec: WorkerSpec) -> tuple[Worker | None, Descriptor | None]:
        """The worker that ships the script, by cached descriptors: each worker was asked when it was installed."""
        environment = self._catalog.environment(spec.variant)
        for worker in self._catalog.workers():
            descriptor = self._answers.remembered(worker) if worker.environment == environment else None
            if descriptor and _ships(descriptor, spec.script):
                return worker, descriptor
        return None, None

    async def _ask(self, worker: Worker) -> Descriptor:
        if worker not in self._asking:
            answer = self._asking[worker] = asyncio.get_running_loop().create_future()
            answer.add_done_callback(lambda _: self._asking.pop(worker))
            # Not a thread of a pool: a daemon that stops must not wait for a worker that hangs.
            threading.Thread(target=self._ask_now, args=(worker, answer), name="ask", daemon=True).start()
        # Shielded: a client that disconnects must not cancel the answer for the others.
        return await asyncio.shield(self._asking[worker])

    def _ask_now(self, worker: Worker, answer: "asyncio.Future[Descriptor]") -> None:
        try:
            descriptor = self._answers.ask(worker)
        except OSError as error:
            descriptor = Descriptor(problem=f"it cannot be asked ({error.strerror})")
        if descriptor.problem:
            log.warning("Worker %s does not report its schema: %s.", worker.spelled, descriptor.problem)
        # The loop is closed if the daemon stopped meanwhile; then no submit waits.
        with suppress(RuntimeError):
            answer.get_loop().call_soon_threadsafe(answer.set_result, descriptor)


def _variant_for(config: Mapping[str, Any], descriptor: Descriptor) -> tuple[str, str]:
    try:
        return variant_for(config, descriptor.schema)
    except _NONSENSE:
        return "", ""


def _ships(descriptor: Descriptor, script: str) -> bool:
    try:
        return ships(descriptor.schema, script)
    except _NONSENSE:
        return False


def judge(spec: WorkerSpec, descriptor: Descriptor, path: str = PATH) -> Verdict:
    """BadConfig for the first value that the worker does not accept; otherwise the settings in force."""
    if descriptor.problem:
        return _unchecked(spec, f"the worker does not report its schema ({descriptor.problem})")
    if not descriptor.schema:
        return _unchecked(spec, NO_SCHEMA)
    try:
        schema = with_common(descriptor.schema)
        placed = put_in_place(spec.config, schema, path)
        check(placed, schema, path)
        config = with_integers(placed, for_config(schema, placed))
        # A script has its own defaults, which are not in the schema.
        values = flattened(config) if spec.script else settings_in_force(config, schema)
        return Verdict(spec.variant, config, Settings(values))
    except _NONSENSE as error:
        return _unchecked(spec, f"the worker's schema cannot be used ({error})")


def _unchecked(spec: WorkerSpec, why: str) -> Verdict:
    """A script or a module of the user's, without a config, has nothing to check."""
    is_checked = bool(spec.script or spec.python) and not spec.config
    return Verdict(spec.variant, spec.config, Settings(flattened(spec.config), "" if is_checked else why))
