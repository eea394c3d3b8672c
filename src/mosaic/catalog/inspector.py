"""Holds the settings of a submitted run against its worker's schema, which is asked for when it is not known yet."""

import asyncio
import logging
import re
import threading
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

from mosaic.catalog.answers import Answers
from mosaic.catalog.descriptor import Descriptor
from mosaic.catalog.schema import check, variant_for
from mosaic.catalog.workers import Catalog, Worker
from mosaic.model.errors import UnknownWorker
from mosaic.model.run import WorkerSpec

log = logging.getLogger(__name__)

PATH = "metadata.worker.config"
_NONSENSE = (TypeError, ValueError, AttributeError, KeyError, re.error)  # what a schema that is none leads to


@dataclass(frozen=True)
class Verdict:
    """Of settings that are let through."""

    variant: str  # of the worker's environment: what the config names, else what the schema maps one of its values to
    note: str = ""  # why nothing was checked


class Inspector:
    """Used by the daemon's loop alone.

    1. A worker that has not told its schema is asked once for all who wait, within the time limit and in a thread of
       its own: neither the loop nor another worker's submit waits for a library's import.
    2. A schema that cannot be had refuses nobody: the run goes unchecked, with a note that says so.
    """

    def __init__(self, catalog: Catalog, answers: Answers) -> None:
        self._catalog = catalog
        self._answers = answers
        self._asking: dict[Worker, asyncio.Future[Descriptor]] = {}

    async def inspect(self, spec: WorkerSpec) -> Verdict:
        """BadConfig for the first value the worker would not take, or for one whose variant is not installed."""
        worker, told = await asyncio.to_thread(self._look_up, spec)
        if worker is None:
            return Verdict(spec.variant)
        told = told or await self._ask(worker)
        variant, setting = ("", "") if spec.variant else _wanted_variant(spec.config, told)
        if not variant:
            return Verdict(spec.variant, await asyncio.to_thread(judge, spec.config, told))
        await asyncio.to_thread(self._refuse_missing, worker.name, variant, setting)
        return await self.inspect(replace(spec, variant=variant))  # its own schema has the last word

    def _refuse_missing(self, name: str, variant: str, setting: str) -> None:
        try:
            self._catalog.find(name, variant)
        except UnknownWorker as error:
            raise UnknownWorker("metadata.worker.variant", f"{setting} needs the variant {variant}. {error}") from None

    def _look_up(self, spec: WorkerSpec) -> tuple[Worker | None, Descriptor | None]:
        """The worker, unless it is a script or a package that calls itself none, and what it has told before."""
        worker = self._catalog.for_module(spec.module, spec.variant) if spec.module else None
        if worker is None or not worker.entry_point:
            return None, None
        return worker, self._answers.remembered(worker)

    async def _ask(self, worker: Worker) -> Descriptor:
        if worker not in self._asking:
            answer = self._asking[worker] = asyncio.get_running_loop().create_future()
            answer.add_done_callback(lambda _: self._asking.pop(worker))
            # Not a pool's thread: a daemon that stops does not wait for a worker that hangs.
            threading.Thread(target=self._ask_now, args=(worker, answer), name="ask", daemon=True).start()
        # Shielded: a client that hangs up must not take the answer from the others.
        return await asyncio.shield(self._asking[worker])

    def _ask_now(self, worker: Worker, answer: "asyncio.Future[Descriptor]") -> None:
        try:
            told = self._answers.ask(worker)
        except OSError as error:
            told = Descriptor(problem=f"it cannot be asked ({error.strerror})")
        if told.problem:
            log.warning("Worker %s does not tell its schema: %s.", worker.spelled, told.problem)
        # The loop is closed when the daemon stopped meanwhile; then nobody waits.
        with suppress(RuntimeError):
            answer.get_loop().call_soon_threadsafe(answer.set_result, told)


def _wanted_variant(config: Mapping[str, Any], told: Descriptor) -> tuple[str, str]:
    try:
        return variant_for(config, told.schema)
    except _NONSENSE:
        return "", ""


def judge(config: Mapping[str, Any], told: Descriptor) -> str:
    """BadConfig for the first value the worker would not take; else why nothing was checked, or nothing."""
    if told.problem:
        return f"its settings were not checked: the worker does not tell its schema ({told.problem})"
    try:
        check(config, told.schema, PATH)
    except _NONSENSE as error:
        return f"its settings were not checked: the worker's schema cannot be used ({error})"
    return ""
