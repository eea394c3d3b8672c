"""The stream that imports one run: its identity, blocks of events, what is known about it."""

import asyncio
import json
from collections.abc import Callable, Coroutine, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import grpc

from mosaic.client.run import Run
from mosaic.client.status import error_from
from mosaic.imports.block import Block
from mosaic.imports.source import Source
from mosaic.model.errors import MosaicError
from mosaic.model.run import UNNUMBERED
from mosaic.wire import mosaic_pb2 as pb

if TYPE_CHECKING:
    from mosaic.client.import_calls import ImportCalls

BROKEN = "The daemon ended the import before it was complete. Import it again: what is stored is not read twice."


@dataclass(frozen=True)
class Known:
    """What the daemon has of this origin."""

    run_id: str  # empty: nothing
    cursor: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Imported:
    """What an import did."""

    run_id: str  # empty: nothing was found in the files
    events: int  # that are new
    is_new: bool
    problems: tuple[str, ...] = ()  # files that could not be read, or not completely
    run: Run | None = None  # None if nothing has changed


class ImportStream:
    """Used from the loop that made it."""

    def __init__(self, call: Any, format: str, path: str, target: str) -> None:
        self._call = call
        self._head = pb.ImportHead(format=format, path=path)
        self._target = target
        self._last_seq = 0

    async def begin(self) -> Known:
        reply = await self._ask(pb.ImportRunRequest(head=self._head))
        return Known(reply.run_id, json.loads(reply.cursor_json) if reply.cursor_json else {})

    async def send(self, block: Block, cursor: Mapping[str, Any]) -> None:
        """Store a block; when this returns it is committed together with the cursor."""
        batch = batch_of(block)
        batch.after_seq = self._last_seq
        batch.cursor_json = json.dumps(cursor)
        await self._ask(pb.ImportRunRequest(batch=batch))

    async def end(self, document: Mapping[str, Any], artifacts: Mapping[str, Any]) -> Run:
        end = pb.ImportEnd(document_json=json.dumps(document), artifacts_json=json.dumps(artifacts))
        reply = await self._ask(pb.ImportRunRequest(end=end))
        await self._call.done_writing()
        return Run.from_wire(reply.run)

    async def close(self) -> None:
        """End the stream. A new run without an end is dropped by the daemon."""
        if not self._call.done():
            self._call.cancel()
        with suppress(asyncio.CancelledError):
            await self._call.code()  # a call that is still ending when the loop stops would log an error

    async def _ask(self, request: pb.ImportRunRequest) -> pb.ImportRunReply:
        try:
            await self._call.write(request)
            reply = await self._call.read()
            if reply is grpc.aio.EOF:
                raise await self._failure()
        except grpc.aio.AioRpcError as failure:
            raise error_from(failure, self._target) from None
        except grpc.aio.UsageError:  # the daemon has ended the stream
            raise await self._failure() from None
        self._last_seq = reply.last_seq
        answer: pb.ImportRunReply = reply
        return answer

    async def _failure(self) -> MosaicError:
        code = await self._call.code()
        if code is grpc.StatusCode.OK:
            return MosaicError(BROKEN)
        details, trailing = await self._call.details(), await self._call.trailing_metadata()
        return error_from(
            grpc.aio.AioRpcError(code, grpc.aio.Metadata(), trailing or grpc.aio.Metadata(), details), self._target
        )


def batch_of(block: Block) -> pb.ImportBatch:
    batch = pb.ImportBatch(
        metric_ts_ns=block.ts_ns, metric_steps=block.steps, metric_sets=block.sets, values=block.values
    )
    for names in block.name_sets:
        batch.name_sets.add(names=[name.encode(errors="replace").decode() for name in names])
    batch.places.extend(block.places)
    for one in block.episodes:
        event = batch.events.add(ts_ns=one.ts_ns)
        event.episode.episode_index = UNNUMBERED
        event.episode.total_reward, event.episode.steps = one.total_reward, one.steps
        event.episode.env_index, event.episode.agent_id = one.env_index, one.agent_id
        if one.global_step is not None:
            event.episode.global_step = one.global_step
    return batch


def import_source(
    wait: Callable[[Coroutine[Any, Any, Any]], Any],
    stream: ImportStream,
    read: Callable[[dict[str, Any]], Source],
    describe: Callable[[Source], dict[str, Any]],
    on_block: Callable[[int], None],
) -> Imported:
    """Send what the reader yields. `wait` runs a coroutine of the stream and returns its result."""
    known: Known = wait(stream.begin())
    source, events = read(known.cursor), 0
    for block in source.blocks():
        if len(block):
            wait(stream.send(block, source.cursor()))
            events += len(block)
            on_block(events)
    if known.run_id and not events:
        return Imported(known.run_id, 0, False, tuple(source.problems))
    if not events:
        return Imported("", 0, True, tuple(source.problems))
    run: Run = wait(stream.end(describe(source), source.about.artifacts))
    return Imported(run.run_id, events, not known.run_id, tuple(source.problems), run)


async def opened(client: "ImportCalls", format: str, path: "str | Path") -> ImportStream:
    return client.import_run(format, path)  # on the loop: gRPC binds the call to it
