"""Hop 5: receives what tailers publish, stores it, then broadcasts it. Runs on the daemon's event loop."""

import asyncio
import contextlib
import logging
import os
import time
import zlib
from collections import OrderedDict
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Protocol, TypeVar

from mosaic.broadcast.subscribers import Broadcaster, StoreReader
from mosaic.ingest.events import EventPage
from mosaic.ingest.figures import Figures
from mosaic.ingest.index import Index
from mosaic.ingest.logs import LogPage
from mosaic.ingest.store import LOG_PAGE_BYTES, Commit, RunStore
from mosaic.ingest.writers import Writer
from mosaic.model.errors import MosaicError, SchemaTooNew, StoreFailed, StoreIncomplete, StoreUnavailable
from mosaic.model.failpoints import failpoint
from mosaic.model.run import RunSummary
from mosaic.model.rundir import RunDir
from mosaic.wire import mosaic_pb2 as pb

log = logging.getLogger(__name__)

MOST_READERS = 16  # files of finished runs that stay open for the next request
MOST_DAMAGED = 10_000  # runs whose damage is remembered for listings
RATE_FADES_S = 10.0

T = TypeVar("T")


class Listener(Protocol):
    """What the dispatcher is notified of. Called on the loop, after the commit."""

    def measured(self, run_id: str) -> None:
        """The run has a step, an episode or a metric; called once each time its file is opened."""

    def heartbeat(self, run_id: str, progress: "int | None") -> None: ...

    def had_heartbeats(self, run_id: str) -> None:
        """The file already had heartbeats when it was opened."""

    def parts_wanted(self, run_id: str) -> None:
        """Its worker says where it takes up its parts."""

    def activity(self, run_id: str) -> None:
        """Bytes arrived."""

    def behind(self, run_id: str, bytes: int, /) -> None:
        """The number of unread bytes in the spool; called when it changes."""

    def exited(self, run_id: str) -> None:
        """The tailer found exit.json."""

    def drained(self, run_id: str) -> None:
        """All output of the run is stored."""

    def storage_problem(self, run_id: str, text: str) -> None:
        """Why its telemetry cannot be stored now; "" when it can be stored again."""


@dataclass
class OpenRun:
    """A run whose file is in use. Only the writer uses the store; only the loop uses the rest."""

    run_id: str
    writer: Writer
    store: RunStore
    measured: bool = False
    problem: str = ""
    behind: int = 0

    async def ask(self, query: "Callable[[RunStore], T]") -> T:
        return await self.writer.call(lambda: query(self.store))

    async def close(self) -> None:
        try:
            await self.ask(lambda store: store.close())
        except StoreFailed as error:  # its writer has failed
            log.warning("The file was not closed: %s", error, extra={"run_id": self.run_id})


class Ingest:
    """Promises:

    1. A publish is answered after its transaction. What is committed is broadcast in order, even if the caller is gone.
    2. Each run keeps the same thread, so its file is never used by two.
    3. A damaged file affects only its own run and is told in its summary's note; a failed writer sets `problem`.
    """

    def __init__(self, broadcaster: Broadcaster, index: Index, listener: Listener, threads: int = 2) -> None:
        self.broadcaster = broadcaster
        self._index = index
        self.listener = listener
        self._writers = [Writer(f"telemetry-{i}") for i in range(threads)]
        self._indexer = Writer("telemetry-index")
        self._open: dict[str, OpenRun] = {}
        self._readers: OrderedDict[str, OpenRun] = OrderedDict()
        self._damaged: OrderedDict[str, str] = OrderedDict()  # by run: why its file cannot be read

    @property
    def problem(self) -> str:
        """Why the daemon is unhealthy; "" if it is healthy."""
        return next((writer.problem for writer in [*self._writers, self._indexer] if writer.problem), "")

    # -- the life of a run's file

    async def open(self, run_id: str, rundir: RunDir) -> pb.Cursor:
        """Open the run's file, for writing unless the run is final. Returns where its streams continue."""
        run = await self._opened(rundir)
        cursor, measured, beating = await self._guarded(
            run,
            lambda store: (store.cursor(), store.is_measured, store.has_heartbeats),
            lambda found: self._announce(run, found[0]),
        )
        self._report_measured(run, measured)
        if beating:
            self.listener.had_heartbeats(run_id)
        return cursor

    async def publish(self, rundir: RunDir, request: pb.PublishTelemetryRequest) -> pb.PublishTelemetryReply:
        """Store a batch, or raise WrongOffset, BadBatch, StoreUnavailable or StoreFailed and store nothing."""
        writes = request.end > request.start or request.gaps
        run = self._writing(rundir) if writes else await self._opened(rundir)
        commit = await self._guarded(
            run, lambda store: store.commit(request), lambda commit: self._committed(run, request, commit)
        )
        failpoint("ack.ready")
        return pb.PublishTelemetryReply(next_offset=commit.next_offset, durable_offset=commit.durable_offset)

    async def append(self, rundir: RunDir, batch: pb.ImportBatch) -> int:
        """Store events of an imported run, which has no subscribers. Returns the last seq."""
        return await self._writing(rundir).ask(lambda store: store.append(batch))

    async def imported(self, rundir: RunDir) -> tuple[int, str]:
        """The last seq of an imported run, and the cursor of its last import."""
        return await self._ask(rundir, lambda store: store.imported())

    async def finish(self, run_id: str) -> bool:
        """Close the file of a run that is complete, and put its summary into the index.

        False if the file was lost after its last byte was stored: a tailer must send it again.
        """
        run = self._open.pop(run_id, None)
        if run is None:
            return True
        try:
            summary = await run.ask(_finalize)
        except StoreIncomplete as error:
            log.warning("The file was not finalized: %s", error, extra={"run_id": run_id})
            return False
        except MosaicError as error:
            log.warning("The file was not finalized: %s", error, extra={"run_id": run_id})
            # Nothing is lost if it has a name: after a full disk the -wal stays beside it, and readers open both.
            return os.path.lexists(run.store.path)
        else:
            self._indexer.post(lambda: self._index.put(run_id, summary))
        return True

    async def forget(self, run_id: str) -> None:
        """Close the run's file, so that its folder can be deleted."""
        for runs in (self._open, self._readers):
            if run := runs.pop(run_id, None):
                await run.close()
        self._damaged.pop(run_id, None)
        self._indexer.post(lambda: self._index.delete(run_id))
        self.broadcaster.close(run_id)

    async def close(self) -> None:
        """Close every file and end the threads. Live runs continue with the next daemon."""
        runs = [*self._open.values(), *self._readers.values()]
        self._open.clear()
        self._readers.clear()
        await asyncio.gather(*(run.close() for run in runs))
        self._indexer.post(self._index.close)
        await asyncio.gather(*(writer.stop() for writer in [*self._writers, self._indexer]))

    # -- reading

    async def events(
        self, rundir: RunDir, since: int, until: "int | None", kinds: "Collection[str] | None", limit: int = 1000
    ) -> EventPage:
        return await self._ask(rundir, lambda store: store.events(since, until, kinds, limit))

    async def parts_wanted(self, rundir: RunDir) -> bytes:
        """The payload of the line that says where the run's worker takes up parts; empty before it was printed."""
        return await self._ask(rundir, lambda store: store.parts_wanted())

    async def tail(self, rundir: RunDir, n: int, kinds: "Collection[str] | None" = None) -> pb.EventBatch:
        return await self._ask(rundir, lambda store: store.tail(n, kinds))

    async def since_of_tail(self, rundir: RunDir, n: int, kinds: "Collection[str] | None" = None) -> int:
        """The `since` that is followed by the newest n events: where a stream with `tail` starts."""
        return await self._ask(rundir, lambda store: store.since_of_tail(n, kinds))

    async def logs(self, rundir: RunDir, stream: pb.Stream, start: int, max_bytes: int = LOG_PAGE_BYTES) -> LogPage:
        return await self._ask(rundir, lambda store: store.logs(stream, start, max_bytes))

    async def curve(self, rundir: RunDir, request: pb.QueryCurveRequest) -> pb.Curve:
        first = request.from_step if request.HasField("from_step") else None
        last = request.to_step if request.HasField("to_step") else None
        return await self._ask(rundir, lambda store: store.curve(request.name, request.points, first, last))

    async def curve_names(self, rundir: RunDir) -> list[str]:
        return await self._ask(rundir, lambda store: store.curve_names())

    async def cursor(self, rundir: RunDir) -> pb.Cursor:
        return await self._ask(rundir, lambda store: store.cursor())

    async def summary(self, rundir: RunDir) -> RunSummary:
        return (await self.summaries([rundir]))[rundir.run_id]

    async def summaries(self, rundirs: Iterable[RunDir]) -> dict[str, RunSummary]:
        """The summary of each run: from memory while it is open, else from the index, else from its file."""
        wanted = {rundir.run_id: rundir for rundir in rundirs}
        closed = [run_id for run_id in wanted if run_id not in self._open]
        found = await self._indexed(closed)
        for run_id in wanted.keys() - found.keys():
            found[run_id] = await self._ask_summary(wanted[run_id])
        for run_id in wanted.keys() & self._damaged.keys():
            found[run_id].note = self._damaged[run_id]
        return found

    async def figures(
        self, run_ids: Collection[str], rundir: Callable[[str], RunDir]
    ) -> "dict[str, Figures | RunSummary]":
        """Parts of the summary of each run; of a run that is open, or not in the index, the whole."""
        return await self._parts(run_ids, rundir, self._index.figures, lambda summary: summary)

    async def metric(
        self, run_ids: Collection[str], rundir: Callable[[str], RunDir], name: str
    ) -> "dict[str, float | None]":
        """The last value of a metric of each run; None for a run that does not have it."""
        return await self._parts(
            run_ids, rundir, lambda closed: self._index.metric(closed, name), lambda it: it.last_values.get(name)
        )

    async def metric_names(self, run_ids: Collection[str], rundir: Callable[[str], RunDir]) -> set[str]:
        """The names of the metrics that any of these runs has."""
        found = await self._parts(run_ids, rundir, self._index.metric_names, lambda summary: summary.last_values.keys())
        return {name for names in found.values() for name in names}

    async def _parts(
        self,
        run_ids: Collection[str],
        rundir: Callable[[str], RunDir],
        look_up: "Callable[[list[str]], Mapping[str, T]]",
        part_of: "Callable[[RunSummary], T]",
    ) -> "dict[str, T]":
        """From the index; for a run that is open, or not in it, from its summary."""
        closed = [run_id for run_id in run_ids if run_id not in self._open]
        found: dict[str, T] = {}
        with contextlib.suppress(StoreFailed):  # reported by `problem`; they come from the files then
            found.update(await self._indexer.call(lambda: look_up(closed)) if closed else {})
        for run_id in run_ids:
            if run_id not in found:
                found[run_id] = part_of(await self._ask_summary(rundir(run_id)))
        return found

    async def has_metric(self, name: str) -> bool:
        """Whether a run that is in the index has a last value of this metric."""
        try:
            return await self._indexer.call(lambda: self._index.has_metric(name))
        except StoreFailed:
            return False

    def reader(self, rundir: RunDir) -> StoreReader:
        """The reader of this run's stored events, for Broadcaster.stream."""
        return partial(self.events, rundir)

    async def _indexed(self, run_ids: list[str]) -> dict[str, RunSummary]:
        try:
            return await self._indexer.call(lambda: self._index.get(run_ids)) if run_ids else {}
        except StoreFailed:
            return {}  # reported by `problem`; the summaries come from the files then

    async def _ask_summary(self, rundir: RunDir) -> RunSummary:
        run_id = rundir.run_id
        if run_id not in self._open:
            # For a queued run a listing must not open a store, nor open a damaged one every time.
            no_file = "" if run_id in self._damaged else _why_no_file(rundir)
            if no_file is not None:
                return RunSummary(note=no_file)
        try:
            summary, is_final = await self._ask(rundir, lambda store: (store.summary(), store.is_final))
        except MosaicError as error:
            # The listing still shows the other runs.
            log.debug("No summary: %s", error, extra={"run_id": run_id})
            return RunSummary(note=str(error))
        if is_final:
            self._indexer.post(lambda: self._index.put(run_id, summary))
        elif time.time() - summary.last_event_at > RATE_FADES_S:
            summary.steps_per_s = 0.0
        return summary

    # -- inside

    async def _ask(self, rundir: RunDir, query: "Callable[[RunStore], T]") -> T:
        """Read from the run's file; a damaged one is remembered."""
        try:
            return await self._reading(rundir).ask(query)
        except StoreFailed as error:
            self._damaged[rundir.run_id] = str(error)
            if len(self._damaged) > MOST_DAMAGED:
                self._damaged.popitem(last=False)
            raise

    def _announce(self, run: OpenRun, cursor: pb.Cursor) -> None:
        """Tell subscribers where the file ends, in the order of the commits: it may be a rebuilt one."""
        if not run.store.read_only:
            self.broadcaster.open(run.run_id, cursor.next_seq - 1)
        if not cursor.stdout_offset + cursor.stderr_offset:
            self._damaged.pop(run.run_id, None)  # a new file

    def _writer_of(self, run_id: str) -> Writer:
        # Always the same thread: it runs jobs in order, so a file is closed before it is opened again.
        return self._writers[zlib.crc32(run_id.encode()) % len(self._writers)]

    def _writing(self, rundir: RunDir) -> OpenRun:
        run_id = rundir.run_id
        run = self._open.get(run_id)
        if run is None:
            store = RunStore(rundir.telemetry, run_id, is_evaluation=rundir.is_evaluation)
            run = self._open[run_id] = OpenRun(run_id, self._writer_of(run_id), store)
            if reader := self._readers.pop(run_id, None):
                reader.writer.post(reader.store.close)
            # The index is only for closed files: after a crash it must not show outdated values.
            self._indexer.post(lambda: self._index.delete(run_id))
        return run

    async def _opened(self, rundir: RunDir) -> OpenRun:
        """The run, open for writing; for reading if it is final, because only new bytes open it again."""
        run = self._reading(rundir)
        try:
            is_final = run.store.read_only and await run.ask(lambda store: store.is_final)
        except MosaicError:
            is_final = False  # the error is raised again when writing
        if is_final and rundir.run_id not in self._open:
            return run
        return self._writing(rundir)

    def _reading(self, rundir: RunDir) -> OpenRun:
        run_id = rundir.run_id
        run = self._open.get(run_id) or self._readers.get(run_id)
        if run is None:
            store = RunStore(rundir.telemetry, run_id, read_only=True, is_evaluation=rundir.is_evaluation)
            run = self._readers[run_id] = OpenRun(run_id, self._writer_of(run_id), store)
            self._close_oldest_reader()
        if run_id in self._readers:
            self._readers.move_to_end(run_id)
        return run

    def _close_oldest_reader(self) -> None:
        if len(self._readers) > MOST_READERS:
            _, oldest = self._readers.popitem(last=False)
            oldest.writer.post(oldest.store.close)

    async def _guarded(
        self, run: OpenRun, job: "Callable[[RunStore], T]", then: "Callable[[T], None] | None" = None
    ) -> T:
        """Run a job that writes; report to the listener if it cannot be stored."""
        try:
            result = await run.writer.call(lambda: job(run.store), then)
        except (StoreUnavailable, StoreFailed, SchemaTooNew) as error:
            self._report_problem(run, str(error))
            raise
        self._report_problem(run, "")
        return result

    def _committed(self, run: OpenRun, request: pb.PublishTelemetryRequest, commit: Commit) -> None:
        run_id = run.run_id
        if commit.renumbered:
            self.broadcaster.renumber(run_id)
        if request.events:
            batch = pb.EventBatch()
            batch.events.MergeFrom(request.events)
            self.broadcaster.publish(run_id, batch)
        if request.texts or request.rejects or request.gaps:
            self.broadcaster.text_arrived(run_id)
        if request.end > request.start:
            self.listener.activity(run_id)
        self._report_measured(run, commit.measured)
        if commit.heartbeat:
            self.listener.heartbeat(run_id, commit.progress)
        if commit.wants_parts:
            self.listener.parts_wanted(run_id)
        self._report_flags(run, request)

    def _report_measured(self, run: OpenRun, measured: bool) -> None:
        if measured and not run.measured:
            run.measured = True
            self.listener.measured(run.run_id)

    def _report_flags(self, run: OpenRun, request: pb.PublishTelemetryRequest) -> None:
        if request.behind_bytes != run.behind:
            run.behind = request.behind_bytes
            self.listener.behind(run.run_id, run.behind)
        if request.exited or request.drained:
            self.listener.exited(run.run_id)
        if request.drained:
            self.listener.drained(run.run_id)

    def _report_problem(self, run: OpenRun, text: str) -> None:
        if text != run.problem:
            run.problem = text
            self.listener.storage_problem(run.run_id, text)


def _finalize(store: RunStore) -> RunSummary:
    try:
        return store.summary()
    finally:
        store.close(final=True)


def _why_no_file(rundir: RunDir) -> str | None:
    """Why no telemetry file can be read: empty before it exists, words if its folder is closed; None if it is there."""
    try:
        os.lstat(rundir.telemetry)
    except (FileNotFoundError, NotADirectoryError):
        return ""
    except OSError as error:
        return f"{rundir.path} cannot be read ({error.strerror})"
    return None
