"""The checkpoints that a run has saved, from its stored events and its folder."""

import asyncio
import os
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any

from mosaic_sdk.names import CHECKPOINT_SAVED

from mosaic.catalog.schema import Schema, parameters
from mosaic.ingest.receive import Ingest
from mosaic.model.errors import NoCheckpoint
from mosaic.model.run import RunRecord
from mosaic.model.rundir import EVALS, RunDir, StateRoot
from mosaic.submit import checkpoints
from mosaic.submit.checkpoints import Checkpoint, Nothing

_PAGE = 1000


class SavedCheckpoints:
    """Finds a checkpoint that can be loaded, or raises NoCheckpoint, which says what to do."""

    def __init__(self, root: StateRoot, ingest: Ingest) -> None:
        self._root = root
        self._ingest = ingest

    def rundir(self, record: RunRecord) -> RunDir:
        return self._root.run(record.area, record.run_id)

    async def newest(self, record: RunRecord, schema: Schema) -> Checkpoint:
        rundir, saved = self.rundir(record), await self._all(record)
        found = await asyncio.to_thread(checkpoints.newest, rundir, reversed(saved))
        if isinstance(found, Checkpoint):
            return found
        has_best = any(payload.get("best") for payload in saved)
        raise NoCheckpoint(record.run_id, _why_none(record, found, schema, has_best))

    async def best(self, record: RunRecord) -> Checkpoint:
        found = await asyncio.to_thread(checkpoints.best, self.rundir(record))
        if isinstance(found, Checkpoint):
            return found
        why = "".join(f" ({note})" for note in found.notes)
        raise NoCheckpoint(
            record.run_id, f"has no best checkpoint{why}. Train with eval_every=… to get one, or use the newest."
        )

    async def at(self, record: RunRecord, path: str) -> Checkpoint:
        """The checkpoint at this resolved path, with the step that the run reported for it."""
        rundir = self.rundir(record)
        return await asyncio.to_thread(checkpoints.known, rundir, path, reversed(await self._all(record)))

    async def _all(self, record: RunRecord) -> list[dict[str, Any]]:
        async with aclosing(self._payloads(self.rundir(record))) as payloads:
            return [payload async for payload in payloads]

    async def _payloads(self, rundir: RunDir) -> AsyncGenerator[dict[str, Any], None]:
        """The payloads of all stored `checkpoint_saved` events, oldest first."""
        since = 0
        while os.path.lexists(rundir.telemetry):
            page = await self._ingest.events(rundir, since, None, {"lifecycle"}, _PAGE)
            for event in page.batch.events:
                if event.lifecycle.event == CHECKPOINT_SAVED:
                    yield checkpoints.payload_of(event.lifecycle.payload)
            if page.through <= since or page.through >= page.last_seq:
                return
            since = page.through


def spelled(found: Checkpoint, rundir: RunDir) -> str:
    """`checkpoints/checkpoint-000000000500.json (step 500)`."""
    name = found.path.removeprefix(f"{rundir.path.resolve()}/")
    return f"{name} (step {found.step})" if found.step is not None else name


def _why_none(record: RunRecord, found: Nothing, schema: Schema, has_best: bool) -> str:
    if has_best:
        return "has saved only its best checkpoint, which can be evaluated with: mosaic eval --best"
    if found.notes:
        return f"has no intact checkpoint: {'; '.join(found.notes)}."
    if record.area == EVALS:
        return "has not finished an episode, so there is nothing to continue. Start it again."
    if not record.state.is_over:
        return "has saved no checkpoint yet. Wait for its first one."
    if any(name == "checkpoint_every" for _, name, _ in parameters(schema)):
        return "has saved no checkpoint. Train with checkpoint_every=… to get some."
    return "has saved no checkpoint."
