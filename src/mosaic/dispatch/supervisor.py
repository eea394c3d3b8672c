"""Supervises a run whose holder is alive: its state, a requested cancel, the handshake timeout, and hangs."""

import asyncio
import zlib
from collections.abc import Mapping
from typing import Any

from mosaic.dispatch import run_output
from mosaic.dispatch.deadlines import HANDSHAKE_LIMIT_S
from mosaic.dispatch.launcher import Launchers, Ref, Stop
from mosaic.dispatch.live_runs import LiveRun, LiveRuns
from mosaic.dispatch.situation import words_in
from mosaic.ingest.receive import Ingest
from mosaic.model.run import RunRecord
from mosaic.model.states import RunState
from mosaic.registry.thread import RegistryThread

FAR_LOOK_S, FAR_SPREAD_S = 20.0, 8.0


def far_pause_s(run_id: str) -> float:
    """Between two looks at a run on another machine of which nothing is reported: not the same for all."""
    return FAR_LOOK_S + zlib.crc32(run_id.encode()) / 2**32 * FAR_SPREAD_S


class Supervisor:
    """Checks one live run per call. It stops a run only through its holder."""

    def __init__(self, registry: RegistryThread, ingest: Ingest, launchers: Launchers, runs: LiveRuns) -> None:
        self._registry = registry
        self._ingest = ingest
        self._launchers = launchers
        self._runs = runs

    async def check(self, record: RunRecord, live: LiveRun, started: Mapping[str, Any]) -> None:
        ref = Ref(live.rundir, record.attempt, record.job)
        self._launchers.of(record.on).watch(ref, lambda: self._runs.wake(record.run_id))
        await self._note_progress(record, live, words_in(started, "held_by"))
        if record.cancel_requested:
            self._stop(record, live, ref)
        elif record.state is RunState.HANDSHAKE and self._runs.now() - live.seen_at > HANDSHAKE_LIMIT_S:
            live.end_reason = f"handshake: its tailer did not register within {HANDSHAKE_LIMIT_S:.0f} s"
            self._stop(record, live, ref)
        elif not live.end_reason:
            await self._check_life(record, live, ref)

    def next_look(self, record: RunRecord, live: LiveRun) -> float:
        """When a run on another machine is looked at again, if nothing is reported about it before.

        Its cluster and its tailer report what happens to it. Nobody reports that its own deadlines have come; and a
        report may be lost.
        """
        now = self._runs.now()
        if record.cancel_requested or live.end_reason or not live.adopted:
            return now
        return min(now + far_pause_s(record.run_id), live.vitals.next_deadline(now, record.limits))

    async def _note_progress(self, record: RunRecord, live: LiveRun, held_by: str) -> None:
        if held_by and held_by != record.held_by:
            await self._registry.do(lambda r: r.note(record.run_id, held_by=held_by))
        if record.state is not RunState.HANDSHAKE and not live.adopted:
            await self._adopt(record, live)
        if live.measured and record.state is RunState.READY:
            await self._registry.do(lambda r: r.move(record.run_id, RunState.EXECUTING))

    async def _adopt(self, record: RunRecord, live: LiveRun) -> None:
        """Ask the store and the registry what the run sent before: the tailer of a silent run publishes nothing."""
        live.adopted = True
        await self._ingest.open(record.run_id, live.rundir)
        if live.vitals.last_heartbeat is None and await self._registry.do(lambda r: r.calls_heartbeat(record.run_id)):
            live.vitals.heartbeat(self._runs.now(), None)

    def _stop(self, record: RunRecord, live: LiveRun, ref: Ref) -> None:
        live.stop_sent = live.stop_sent or self._launchers.of(record.on).stop(ref)

    async def _check_life(self, record: RunRecord, live: LiveRun, ref: Ref) -> None:
        now = self._runs.now()
        live.vitals.note_output(now, await asyncio.to_thread(run_output.total_bytes, live.rundir))
        if live.vitals.needs_cpu_time(now, record.limits):
            cpu_s = await asyncio.to_thread(self._launchers.of(record.on).cpu_s, ref)
            live.vitals.note_cpu_time(now, cpu_s)
        verdict = live.vitals.verdict(now, record.limits)
        if not verdict:
            return
        # The worker may have printed a line that its tailer, stopped or slow, has not sent: that is not its silence.
        cursor = await self._ingest.open(record.run_id, live.rundir)
        has_unread = await asyncio.to_thread(run_output.has_unread_line, live.rundir, cursor.stdout_offset)
        if not has_unread and self._launchers.of(record.on).stop(ref, Stop.AUTOPSY):
            live.end_reason = verdict
