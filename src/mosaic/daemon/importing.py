"""Runs that another program recorded: their events are streamed in, and their rows appear when they are complete.

1. A new run is in no listing until its end arrives; a stream that breaks before leaves nothing of it.
2. A run that was imported before continues after its last event: each batch commits with the cursor of its files.
3. Two imports of the same origin wait for each other.
"""

import asyncio
import json
import logging
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from typing import Any
from weakref import WeakValueDictionary

from mosaic.ingest.receive import Ingest
from mosaic.model import durable
from mosaic.model.errors import BadConfig, StoreUnavailable
from mosaic.model.failpoints import failpoint
from mosaic.model.folder import remove_folder
from mosaic.model.run import RunRecord
from mosaic.model.rundir import StateRoot
from mosaic.model.ulid import new_ulid
from mosaic.registry.thread import RegistryThread
from mosaic.submit.imported import key_of, origin_of, read_imported
from mosaic.wire import mosaic_pb2 as pb

log = logging.getLogger(__name__)

AREA = "runs"
MOST_CURSOR = 4 << 20  # bytes; a run of MLflow has a file for each metric
Describe = Callable[[RunRecord], Awaitable[pb.RunInfo]]


class Importer:
    """Used by the daemon's loop alone."""

    def __init__(self, root: StateRoot, registry: RegistryThread, ingest: Ingest, describe: Describe) -> None:
        self._root = root
        self._registry = registry
        self._ingest = ingest
        self._describe = describe
        # By origin; a lock disappears when it is neither held nor awaited.
        self._turns: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        self._closing: set[asyncio.Future[None]] = set()

    async def receive(self, parts: AsyncIterator[pb.ImportRunRequest]) -> AsyncGenerator[pb.ImportRunReply, None]:
        """The answers to a head, its batches and its end."""
        head = await anext(parts, None)
        if head is None or head.WhichOneof("part") != "head":
            raise BadConfig("", "An import starts with a head.")
        origin = origin_of(head.head.format, head.head.path)
        turn = self._turns.setdefault(origin, asyncio.Lock())
        await turn.acquire()
        one: _Import | None = None
        try:
            known = await self._registry.do(lambda r: r.with_key(key_of(origin), ""))
            one = _Import(self._root, self._registry, self._ingest, origin, known)
            yield await one.begin()
            async for part in parts:
                if part.WhichOneof("part") == "end":
                    yield await self._end(one, part.end)
                    return
                yield await one.append(part.batch)
        finally:
            # A task of its own: gRPC cancels a broken call more than once, and this must not be left half-done.
            closing = asyncio.ensure_future(_close(one, turn))
            self._closing.add(closing)
            closing.add_done_callback(self._closing.discard)
            await asyncio.shield(closing)

    async def _end(self, one: "_Import", end: pb.ImportEnd) -> pb.ImportRunReply:
        record = await one.end(end)
        run = await self._describe(record)
        return pb.ImportRunReply(last_seq=one.last_seq, run_id=record.run_id, run=run)


class _Import:
    """One run that is being imported. `known`: its row, if it was imported before."""

    def __init__(
        self, root: StateRoot, registry: RegistryThread, ingest: Ingest, origin: str, known: RunRecord | None
    ) -> None:
        self._root = root
        self._registry = registry
        self._ingest = ingest
        self._origin = origin
        self._known = known
        self.last_seq = 0
        self._rundir = root.run(known.area if known else AREA, known.run_id if known else new_ulid())
        self._is_listed = known is not None
        self._first_seq = 0

    async def begin(self) -> pb.ImportRunReply:
        if self._known is None:
            await asyncio.to_thread(self._make_folder)
            return pb.ImportRunReply()
        self.last_seq, cursor = await self._ingest.imported(self._rundir)
        self._first_seq = self.last_seq
        return pb.ImportRunReply(last_seq=self.last_seq, cursor_json=cursor, run_id=self._known.run_id)

    async def append(self, batch: pb.ImportBatch) -> pb.ImportRunReply:
        if len(batch.cursor_json) > MOST_CURSOR:
            raise BadConfig("cursor_json", f"takes more than {MOST_CURSOR:,} bytes.")
        self.last_seq = await self._ingest.append(self._rundir, batch)
        failpoint("import.appended")
        return pb.ImportRunReply(last_seq=self.last_seq)

    async def end(self, end: pb.ImportEnd) -> RunRecord:
        """Put the run into the registry, or change its end there."""
        document = self._document(end.document_json)
        config, ending = read_imported(document)
        if config.origin != self._origin:
            raise BadConfig("imported.path", "is not the path of the head.")
        # Finished before it is listed: then its file is complete, and its summary is in the index.
        await self._ingest.finish(self._rundir.run_id)
        if self._known:
            note = f"imported again: {self.last_seq - self._first_seq:,} more events"
            return await self._registry.do(lambda r: r.grow_imported(self._rundir.run_id, ending, note))
        await asyncio.to_thread(self._write_files, document, _object(end.artifacts_json, "artifacts_json"))
        failpoint("import.recorded")
        note = "; ".join([f"imported from {self._origin}", *_notes(document)])
        record = await self._registry.do(lambda r: r.add_imported(config, ending, note))
        self._is_listed = True
        failpoint("import.added")
        return record

    async def close(self) -> None:
        """Close the file; remove a new run that has no end."""
        run_id = self._rundir.run_id
        if self._is_listed:
            await self._ingest.finish(run_id)
            return
        await self._ingest.forget(run_id)
        await asyncio.to_thread(self._remove_files)

    def _document(self, text: str) -> dict[str, Any]:
        document = _object(text, "document_json")
        metadata = document.setdefault("metadata", {})
        if isinstance(metadata, dict):
            metadata["run_id"] = self._rundir.run_id
        return document

    def _make_folder(self) -> None:
        try:
            self._rundir.path.mkdir(mode=0o700)
        except OSError as error:
            raise StoreUnavailable(f"{self._rundir.path} cannot be created ({error.strerror}).") from error

    def _write_files(self, document: dict[str, Any], artifacts: dict[str, Any]) -> None:
        """The manifest, then the config: a folder without a config is one that no import completed."""
        imported = document["imported"]
        manifest = {
            "version": 1,
            "run_id": self._rundir.run_id,
            "worker_type": imported.get("worker") or imported["format"],
            "artifacts": {**_NOTHING, **artifacts},
            "metadata": {"written_by": "daemon", "origin": self._origin},
        }
        try:
            durable.write_json(self._rundir.analytics, manifest)
            durable.write_json(self._root.config_file(self._rundir.run_id), document)
        except OSError as error:
            raise StoreUnavailable(f"{self._rundir.path} cannot be written ({error.strerror}).") from error

    def _remove_files(self) -> None:
        remove_folder(self._rundir.path)
        remove_folder(self._root.config_file(self._rundir.run_id))
        remove_folder(self._rundir.control)


async def _close(one: _Import | None, turn: asyncio.Lock) -> None:
    try:
        if one:
            await one.close()
    finally:
        turn.release()


_NOTHING = {"tensorboard": None, "wandb": None, "checkpoints": None, "logs_dir": None, "videos_dir": None}


def _object(text: str, name: str) -> dict[str, Any]:
    if len(text) > MOST_CURSOR:
        raise BadConfig(name, f"takes more than {MOST_CURSOR:,} bytes.")
    try:
        found = json.loads(text or "{}")
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise BadConfig(name, "must be a JSON object.")
    return found


def _notes(document: dict[str, Any]) -> list[str]:
    notes = document["imported"].get("notes")
    return [str(note)[:200] for note in notes[:10]] if isinstance(notes, list) else []
