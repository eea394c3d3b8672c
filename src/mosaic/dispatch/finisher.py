"""Ends a run: frees its GPUs after proof of death, and writes the final state once its last line is stored."""

import asyncio
import logging
from collections.abc import Callable, Mapping
from typing import Any

from mosaic.broadcast.subscribers import Broadcaster
from mosaic.dispatch import run_output
from mosaic.dispatch.launcher import Launchers, Ref, Stage
from mosaic.dispatch.live_runs import LiveRun, LiveRuns
from mosaic.dispatch.reasons import Ending, cancelled, final_state
from mosaic.ingest.receive import Ingest
from mosaic.model.end_proof import own_launch
from mosaic.model.errors import IllegalMove, MosaicError, SchemaTooNew, StoreFailed, StoreUnavailable
from mosaic.model.failpoints import failpoint
from mosaic.model.run import RunRecord
from mosaic.model.rundir import RunDir, is_folder
from mosaic.model.states import RunState
from mosaic.registry.thread import RegistryThread

log = logging.getLogger(__name__)
DRAIN_PATIENCE_S = 600.0
CUT_PATIENCE_S = 5.0  # with the rest of a spool that was replaced or truncated
LEFT_PATIENCE_S = 30.0  # with a node without a shared file system whose job has ended: its tailer may outlive it
FULL_PATIENCE_S = 1.0  # with a full disk that refuses the rest of a cancelled run
UNKILLABLE_S = 60.0
WHY_PATIENCE_S = 60.0  # with a cluster that does not say how a job ended
_OUTSIDE = {
    Stage.QUEUED: "requeued outside MOSAIC: its job was put back in the queue",
    Stage.ABSENT: "its cluster no longer knows its job, and ended its processes",
}
NOT_EVEN_OPEN = -2  # as the number of missing bytes: it is unknown


class Finisher:
    """Brings a run from the death of its worker, or of its holder, to its final state."""

    def __init__(
        self,
        registry: RegistryThread,
        ingest: Ingest,
        broadcaster: Broadcaster,
        launchers: Launchers,
        runs: LiveRuns,
        ended: Callable[[RunRecord], None] = lambda _: None,
    ) -> None:
        self._ended = ended
        self._registry = registry
        self._ingest = ingest
        self._broadcaster = broadcaster
        self._launchers = launchers
        self._runs = runs

    # ---- from death to the final state

    async def clean_up(self, record: RunRecord, live: LiveRun, started: dict[str, Any]) -> None:
        """The holder died: make sure that its tree is dead too, then write the exit.json that it could not write."""
        is_clean = await asyncio.to_thread(self._launchers.of(record.on).settle, _ref(record, live), started)
        if record.on and not is_clean:
            return  # only its cluster can tell; the next sweep asks again
        live.cleanup_since = live.cleanup_since or self._runs.now()
        if not is_clean and self._runs.now() - live.cleanup_since < UNKILLABLE_S:
            self._runs.wake_later(record.run_id)
            return
        failpoint("cleanup.proven")
        if is_clean:
            await asyncio.to_thread(run_output.release_reserve, live.rundir)
        await asyncio.to_thread(run_output.write_exit, record.attempt, live.rundir, unkillable=not is_clean)
        self._runs.wake(record.run_id)

    async def finish(self, record: RunRecord, live: LiveRun, exit: Mapping[str, Any]) -> None:
        """exit.json is written: free the GPUs at once, and end the run when its output is stored."""
        live.is_apart = bool(record.on) and bool((await asyncio.to_thread(own_launch, live.rundir)).get("home"))
        if record.granted:
            await self._return_gpus(record, bool(exit.get("unkillable")))
        live.gone = not exit.get("unkillable")
        failpoint("finish.freed")
        await asyncio.to_thread(run_output.remove_segments, record.run_id)
        if not await asyncio.to_thread(self._is_held, record, live):
            await self.drain(record, live.rundir)
        try:
            cursor = await self._ingest.open(record.run_id, live.rundir)
        except StoreUnavailable as error:
            live.problem = live.problem or str(error)
            # A full disk, perhaps: somebody who cancels runs to make room must not wait for room.
            if await self._lost_patience(record, live, NOT_EVEN_OPEN, exit):
                await self._close(record, live, exit, complete=False)
            return
        except (StoreFailed, SchemaTooNew):
            if self._ingest.problem:
                raise  # a writer thread died: the next daemon continues here
            # The run's file is damaged: waiting does not repair it, and the run has ended all the same.
            await self._close(record, live, exit, complete=False)
            return
        missing = run_output.bytes_missing(exit, cursor.stdout_offset, cursor.stderr_offset)
        # If its file was lost after the last byte, the tailer sends everything again and then reports again.
        live.drained = live.drained and not missing
        if record.on and not await self._knows_why(record, live, exit):
            return
        # Not before the tailer has reported that it drained the spool: one more publish would reopen the closed file.
        if not (live.drained and not missing) and not await self._lost_patience(record, live, missing, exit):
            return
        await self._close(record, live, exit, complete=not missing and (live.drained or not live.is_apart))

    async def _knows_why(self, record: RunRecord, live: LiveRun, exit: Mapping[str, Any]) -> bool:
        """Whether the reason of its end is known. exit.json cannot tell a preemption from a cancel: its cluster can."""
        if record.cancel_requested or live.end_reason or exit.get("ended_by") not in ("cancel", "holder died"):
            return True
        live.ended_at = live.ended_at or self._runs.now()
        sight = await asyncio.to_thread(self._launchers.of(record.on).look, _ref(record, live))
        if sight.stage in (Stage.ENDED, Stage.LOST, Stage.QUEUED, Stage.ABSENT):
            live.end_reason = _OUTSIDE.get(sight.stage, sight.reason)
            return True
        return self._runs.now() - live.ended_at > WHY_PATIENCE_S

    async def lose(self, record: RunRecord, live: LiveRun, why: str) -> None:
        """Its node is gone, which proves nothing: what ran there may still run. The run ends all the same."""
        await self._registry.do(lambda r: r.note(record.run_id, telemetry="incomplete"))
        reason = f"{why or 'node failed'}. Its processes there may run until the node is back"
        await self._end_as(record, lambda newest: (RunState.FAULTED, reason))

    async def _return_gpus(self, record: RunRecord, unkillable: bool) -> None:
        if unkillable:
            await self._registry.do(lambda r: r.drain_gpus(record.run_id, f"run {record.run_id} could not be killed"))
        else:
            await self._registry.do(lambda r: r.free_gpus(record.run_id))

    async def drain(self, record: RunRecord, rundir: RunDir) -> None:
        """Have a tailer read the output of a run whose holder is gone. Only one does: tail.lock keeps out a second."""
        try:
            ref = Ref(rundir, record.attempt, record.job)
            await asyncio.to_thread(self._launchers.of(record.on).drain, ref)
        except (OSError, LookupError, TypeError, ValueError) as error:
            # What it has printed is not read then, and the run ends as incomplete.
            log.warning("Its tailer cannot be started: %s", error, extra={"run_id": rundir.run_id})

    async def _lost_patience(self, record: RunRecord, live: LiveRun, missing: int, exit: Mapping[str, Any]) -> bool:
        now = self._runs.now()
        if missing != live.missing:
            live.missing, live.missing_since = missing, now
        is_cut = await asyncio.to_thread(run_output.is_cut, exit, live.rundir)
        patience = CUT_PATIENCE_S if is_cut and not live.is_apart else DRAIN_PATIENCE_S
        if live.is_apart and not await asyncio.to_thread(self._is_held, record, live):
            patience = LEFT_PATIENCE_S
        if record.cancel_requested and live.problem:
            patience = FULL_PATIENCE_S
        return now - live.missing_since > patience

    async def _close(self, record: RunRecord, live: LiveRun, exit: Mapping[str, Any], complete: bool) -> None:
        summary = await self._ingest.summary(live.rundir)
        stderr = await asyncio.to_thread(run_output.stderr_tail, live.rundir)

        def decide(newest: RunRecord) -> Ending:
            state, reason = final_state(newest, exit, summary.failed_message, stderr, live.end_reason)
            if state is RunState.TERMINATED and newest.state is RunState.HANDSHAKE:
                return RunState.FAULTED, "handshake: its tailer never registered"
            if live.left_behind:
                reason = "\n".join(filter(None, (reason, f"files that stay on its node: {live.left_behind}")))
            return state, reason

        if record.state is RunState.READY and summary.steps + summary.episodes + summary.metrics:
            await self._registry.do(lambda r: r.move(record.run_id, RunState.EXECUTING))
        await asyncio.to_thread(self._write_manifest, record, live)
        failpoint("finish.drained")
        if complete and not await self._ingest.finish(record.run_id):
            self._runs.wake_later(record.run_id)
            return
        failpoint("finish.closed")
        await self._registry.do(lambda r: r.note(record.run_id, telemetry="" if complete else "incomplete"))
        await self._end_as(record, decide)

    def _write_manifest(self, record: RunRecord, live: LiveRun) -> None:
        try:
            run_output.write_manifest(record, live.rundir)
        except OSError as error:
            # A full disk, say: a run ends without its manifest rather than never.
            log.warning("Run %s: analytics.json cannot be written: %s", record.run_id, error)

    # ---- other ends

    async def end(self, record: RunRecord, state: RunState, reason: str) -> None:
        """Move a run of which no process lives to its final state."""
        await self._end_as(record, lambda _: (state, reason))

    async def end_without_folder(self, record: RunRecord, live: LiveRun) -> None:
        """The run's folder was deleted: its end can no longer be written there, only in the registry."""
        launcher, ref = self._launchers.of(record.on), _ref(record, live)
        if launcher.stop(ref):
            return  # its holder ends the tree, and the holder's end wakes us
        if not await asyncio.to_thread(launcher.settle, ref, {}):
            self._runs.wake_later(record.run_id)
            return
        # Now, because a folder may return before the end is written.
        gone = live.rundir.path if live.rundir.has_control else live.rundir.control
        missing = await self._bytes_left_behind(record, live)
        if missing > 0 and not await self._lost_patience(record, live, missing, run_output.printed(live.rundir)):
            self._runs.wake_later(record.run_id)
            return  # its tailer may still be sending them
        await self._ingest.finish(record.run_id)
        if missing:
            await self._registry.do(lambda r: r.note(record.run_id, telemetry="incomplete"))
        why = f"its folder {gone} was deleted while it was live"
        await self._end_as(record, lambda newest: _without_exit(newest, why))

    async def _bytes_left_behind(self, record: RunRecord, live: LiveRun) -> int:
        """How much of the spool is not in the store, without an exit.json that would tell; negative if unknown."""
        if not is_folder(live.rundir.path):
            return NOT_EVEN_OPEN
        try:
            cursor = await self._ingest.open(record.run_id, live.rundir)
        except MosaicError:
            return NOT_EVEN_OPEN
        printed = await asyncio.to_thread(run_output.printed, live.rundir)
        return run_output.bytes_missing(printed, cursor.stdout_offset, cursor.stderr_offset)

    async def give_up(self, record: RunRecord, live: LiveRun, error: Exception) -> None:
        """Its folder cannot tell how the run ended: end it all the same, once none of its processes lives."""
        launcher, ref = self._launchers.of(record.on), _ref(record, live)
        if launcher.stop(ref) if record.cancel_requested else self._runs_on(record, live):
            return
        if not await asyncio.to_thread(launcher.settle, ref, {}):
            self._runs.wake_later(record.run_id)
            return
        await self._ingest.finish(record.run_id)
        await self._registry.do(lambda r: r.note(record.run_id, telemetry="incomplete"))
        why = f"its folder {live.rundir.path} cannot be used ({error})"
        await self._end_as(record, lambda newest: _without_exit(newest, why))

    def _runs_on(self, record: RunRecord, live: LiveRun) -> bool:
        try:
            return self._is_held(record, live)
        except OSError:
            return False

    def _is_held(self, record: RunRecord, live: LiveRun) -> bool:
        return self._launchers.of(record.on).look(_ref(record, live)).stage is Stage.RUNNING

    async def complete_late(self, run_id: str) -> None:
        """The last byte of a run that ended as `telemetry: incomplete` has arrived."""
        if self._runs.get(run_id):
            self._runs.drained(run_id)  # the report came before this daemon's first look at a live run
            return
        try:
            if not await self._ingest.finish(run_id):
                return  # its file was lost meanwhile: it stays incomplete, and the next daemon has it rebuilt
            await self._registry.do(lambda r: r.note(run_id, telemetry=""))
        except MosaicError as error:
            log.warning("Run %s: its late telemetry could not be closed: %s", run_id, error, extra={"run_id": run_id})
        self._broadcaster.close(run_id)

    async def _end_as(self, record: RunRecord, decide: Callable[[RunRecord], Ending]) -> None:
        """Decide on the registry's thread, from its newest row: a cancel that was acknowledged must count."""
        run_id = record.run_id
        try:
            await self._registry.do(lambda r: r.free_gpus(run_id))
            ended = await self._registry.do(lambda r: r.move(run_id, *decide(r.get(run_id))))
            failpoint("finish.moved")
            log.info("Run %s is %s. %s", run_id, ended.state, ended.reason, extra={"run_id": run_id})
            self._ended(ended)
        except IllegalMove as error:
            log.warning("%s", error, extra={"run_id": run_id})
        self._broadcaster.close(run_id)
        live = self._runs.get(run_id)
        self._runs.forget(run_id)
        if live:
            self._launchers.of(record.on).forget(_ref(record, live))
        self._runs.wake()


def _ref(record: RunRecord, live: LiveRun) -> Ref:
    return Ref(live.rundir, record.attempt, record.job)


def _without_exit(record: RunRecord, why: str) -> Ending:
    return cancelled(record) if record.cancel_requested else (RunState.FAULTED, why)
