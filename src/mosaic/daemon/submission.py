"""Submitting: configs in, validated, recorded and added as runs; one, or many of which all are added or none."""

import asyncio
from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from mosaic.catalog.answers import Answers
from mosaic.catalog.inspector import Inspector, Verdict
from mosaic.catalog.one_look import OneLook, inspector_of_batch
from mosaic.catalog.workers import Catalog
from mosaic.daemon.parents import Parents, refuse_unknown_parts, refuse_unresumable
from mosaic.model.errors import BadConfig
from mosaic.model.experiment import MAX_RUNS
from mosaic.model.failpoints import failpoint
from mosaic.model.machine import ANY_MACHINE
from mosaic.model.run import RunConfig, RunRecord
from mosaic.registry.registry import NewExperiment, Registry
from mosaic.submit.config import PART
from mosaic.submit.document import fingerprint, read_document
from mosaic.submit.needs import with_worker_needs
from mosaic.submit.operator_record import Resolved
from mosaic.submit.record import record_all
from mosaic.submit.section import Section
from mosaic.submit.validate import SubmitContext, settle, validate

if TYPE_CHECKING:
    from mosaic.daemon.trainer import Trainer


AT_ONCE = 50  # configs that are checked together


class IdempotencyKey(NamedTuple):
    """Makes two submits one run: the client's key, and the hash of the config that it belongs to."""

    text: str  # empty: every submit is a new run
    config_hash: str


@dataclass(frozen=True)
class Look:
    """What a config is checked against."""

    catalog: Catalog
    inspector: Inspector
    parents: Parents

    @classmethod
    def of(cls, trainer: "Trainer") -> "Look":
        return cls(trainer.catalog, trainer.inspector, trainer.parents)

    @classmethod
    def of_batch(cls, trainer: "Trainer") -> "Look":
        """The same for many configs: a look at the files of all workers takes milliseconds."""
        catalog = OneLook(trainer.root)
        inspector = inspector_of_batch(catalog, Answers(trainer.root.answers))
        return cls(catalog, inspector, Parents(trainer.root, trainer.registry, trainer.ingest, inspector))


@dataclass(frozen=True)
class Prepared:
    """A run that may be added."""

    config: RunConfig
    note: str  # for its history


async def read(config_json: str, key: str, is_own: bool = False) -> tuple[dict[str, Any], IdempotencyKey]:
    """The document, parsed once: the rest of the submit works on it and completes it. `is_own`: the daemon's own."""
    document = await asyncio.to_thread(read_document, config_json)
    if not is_own:
        refuse_part(document)
    return document, IdempotencyKey(key, await asyncio.to_thread(fingerprint, document))


async def prepare(trainer: "Trainer", document: dict[str, Any], key: IdempotencyKey, look: Look) -> Prepared:
    """Complete and check a config. Writes nothing."""
    return (await prepare_all(trainer, [(document, key)], look))[0]


async def prepare_all(
    trainer: "Trainer", wanted: Sequence[tuple[dict[str, Any], IdempotencyKey]], look: Look
) -> list[Prepared]:
    """Complete and check these configs. Writes nothing.

    Together, because each step is one for another thread: a hop for each config would take longer than the checks.
    """
    traced = [await look.parents.trace(document) for document, _ in wanted]
    operators = [await trainer.operators.resolve(each.document) for each in traced]
    keys = [key for _, key in wanted]
    read = await trainer.registry.do(
        lambda r: [
            validate(each.document, _context(trainer, r, key, look)) for each, key in zip(traced, keys, strict=True)
        ]
    )
    verdicts = await look.inspector.inspect_all([config.worker for config in read])
    settled = await trainer.registry.do(
        lambda r: [
            settle(config, verdict, _context(trainer, r, key, look))
            for config, verdict, key in zip(read, verdicts, keys, strict=True)
        ]
    )
    for config in settled:
        await refuse_unresumable(config, look.inspector)
        await refuse_unknown_parts(config, look.inspector)
    notes = [
        ", ".join(filter(None, (each.note, await _note_of(trainer, config))))
        for each, config in zip(traced, settled, strict=True)
    ]
    return [_prepared(trainer, *parts) for parts in zip(settled, verdicts, notes, operators, strict=True)]


async def _note_of(trainer: "Trainer", config: RunConfig) -> str:
    return await trainer.nodes.note(config) if config.on else ""


def _prepared(
    trainer: "Trainer", config: RunConfig, verdict: Verdict, traced: str, operators: Sequence[Resolved]
) -> Prepared:
    of_operators = [operator.capabilities for operator in operators]
    machine = ANY_MACHINE if config.on else trainer.dispatcher.machine
    config = with_worker_needs(config, verdict.capabilities, machine, of_operators)
    notes = [note for operator in operators for note in operator.notes]
    return Prepared(config, "; ".join(filter(None, (traced, *notes, verdict.note))))


def _context(trainer: "Trainer", registry: Registry, key: IdempotencyKey, look: Look) -> SubmitContext:
    return SubmitContext(
        root=trainer.root,
        catalog=look.catalog,
        run_exists=registry.has,
        tcp_address=trainer.endpoints.tcp,
        gpu_count=len(trainer.dispatcher.gpus.all),
        machine=trainer.dispatcher.machine,
        idempotency_key=key.text,
        config_hash=key.config_hash,
        default_on=trainer.default_on,
    )


# ---- many at once


async def submit_all(
    trainer: "Trainer",
    requests: Sequence[tuple[str, str]],
    experiment: NewExperiment | None = None,
    is_dry_run: bool = False,
) -> list[tuple[RunRecord, bool]]:
    """The run of each (config, idempotency key) and whether it is new. On an error nothing was added.

    The experiment is created or extended in the same transaction.
    """
    if len(requests) > MAX_RUNS:
        raise BadConfig("runs", f"has {len(requests):,} configs; the maximum is {MAX_RUNS:,}.")
    wanted = await asyncio.to_thread(_read_all, requests)
    keys = [key for _, key in wanted]
    _refuse_doubles(keys)
    async with AsyncExitStack() as turns:
        # Sorted, so that two batches cannot wait for each other.
        for text in sorted({key.text for key in keys} - {""}):
            await turns.enter_async_context(trainer.turn(text))
        earlier = await trainer.registry.do(lambda r: [r.with_key(*key) for key in keys])
        look = Look.of_batch(trainer)
        todo = [each for each, known in zip(wanted, earlier, strict=True) if known is None]
        # In parts: other calls are answered in between.
        parts = [todo[start : start + AT_ONCE] for start in range(0, len(todo), AT_ONCE)]
        new = [prepared for part in parts for prepared in await prepare_all(trainer, part, look)]
        _refuse_equal_ids(new)
        if is_dry_run:
            return []
        added = {record.run_id: record for record in await _add_all(trainer, new, experiment)}
    ids = iter(added)
    return [(known, False) if known else (added[next(ids)], True) for known in earlier]


def _read_all(requests: Sequence[tuple[str, str]]) -> list[tuple[dict[str, Any], IdempotencyKey]]:
    documents = [(read_document(config), key) for config, key in requests]
    for document, _ in documents:
        refuse_part(document)
    return [(document, IdempotencyKey(key, fingerprint(document))) for document, key in documents]


def refuse_part(document: dict[str, Any]) -> None:
    """BadConfig for a config that says that it is a part of a run: only the daemon starts these, and ends them."""
    metadata = Section(document, "").section("metadata")
    if metadata.text("relation") == PART or metadata.values.get("role"):
        raise metadata.bad("relation", "only MOSAIC itself starts a part of a run. Start the run: mosaic run … --part")


def _refuse_doubles(keys: Sequence[IdempotencyKey]) -> None:
    seen: set[str] = set()
    for key in keys:
        if key.text in seen:
            raise BadConfig("runs", f"the idempotency key '{key.text}' is given twice.")
        seen |= {key.text} - {""}


def _refuse_equal_ids(new: Sequence[Prepared]) -> None:
    seen: set[str] = set()
    for run_id in (prepared.config.run_id for prepared in new):
        if run_id in seen:
            raise BadConfig("metadata.run_id", f"{run_id} is given twice. Leave it out to get a new id.")
        seen.add(run_id)


async def _add_all(trainer: "Trainer", new: Sequence[Prepared], experiment: NewExperiment | None) -> list[RunRecord]:
    if any(prepared.config.worker.use_grpc or prepared.config.worker.drives for prepared in new):
        await trainer.open_tcp()
    failpoint("submit.validated")
    configs = [prepared.config for prepared in new]
    # The folders first, the rows last: a crash in between leaves unused folders, never a run without a config.
    rundirs = await asyncio.to_thread(record_all, trainer.root, configs) if configs else []
    failpoint("submit.recorded")
    entries = [(prepared.config, prepared.note) for prepared in new]
    try:
        records = await trainer.registry.do(lambda r: r.add_all(entries, experiment))
    except BaseException:
        for rundir in rundirs:
            await asyncio.to_thread(trainer.erase_files, rundir.run_id, rundir)
        raise
    failpoint("submit.added")
    trainer.dispatcher.wake()
    return records
