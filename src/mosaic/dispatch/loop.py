"""The dispatcher: one task that brings every live run forward. It is woken, and sweeps every 2 s as a safety net.

Each turn asks what is durably true of each run (registry row, run folder, lock) and does the next thing. A daemon that
was killed anywhere finds the same truths and goes on: there is no separate recovery.
"""

import asyncio
import logging
import os
import time
from collections.abc import Callable, Collection, Coroutine, Iterable, Mapping
from typing import Any

from mosaic.broadcast.subscribers import Broadcaster
from mosaic.catalog import provenance
from mosaic.catalog.workers import Catalog
from mosaic.dispatch import finish
from mosaic.dispatch.deadlines import HANDSHAKE_LIMIT_S, Vitals
from mosaic.dispatch.gpus import Gpus, belongs_to
from mosaic.dispatch.launcher import Launcher
from mosaic.dispatch.live import LiveRun
from mosaic.dispatch.prepare import Addresses, Plan, plan_launch
from mosaic.dispatch.reasons import Ending, final_state
from mosaic.dispatch.schedule import Start, Wait, decide
from mosaic.dispatch.situation import Case, Situation, situation
from mosaic.ingest.receive import Ingest
from mosaic.model import durable
from mosaic.model.errors import IllegalMove, MosaicError, SchemaTooNew, StoreFailed, UnknownRun
from mosaic.model.failpoints import failpoint
from mosaic.model.machine import Machine
from mosaic.model.run import RunConfig, RunRecord
from mosaic.model.rundir import RunDir, StateRoot
from mosaic.model.states import RunState
from mosaic.registry.thread import RegistryThread
from mosaic.submit.record import load

log = logging.getLogger(__name__)
SWEEP_S = 2.0
MAX_LAUNCHES = 5  # of one run, when its holder never comes to start the worker
DRAIN_PATIENCE_S = 600.0
CUT_PATIENCE_S = 5.0  # with what is left of a spool that was replaced or cut
UNKILLABLE_S = 60.0


class Dispatcher:
    """Claims, starts, watches and ends runs.

    1. A run is claimed in the registry before anything of it is spawned.
    2. GPUs come back only after proof of death.
    3. A final state is written only when the spool is drained (no byte for 10 min: then `telemetry: incomplete`).
    """

    def __init__(
        self,
        root: StateRoot,
        registry: RegistryThread,
        ingest: Ingest,
        broadcaster: Broadcaster,
        catalog: Catalog,
        launcher: Launcher,
        gpus: Gpus,
        machine: Machine,
        max_runs: int,
        addresses: Addresses,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._root = root
        self._registry = registry
        self._ingest = ingest
        self._broadcaster = broadcaster
        self._catalog = catalog
        self._launcher = launcher
        self.gpus = gpus
        self.machine = machine
        self.max_runs = max_runs
        self._addresses = addresses
        self._clock = clock
        self._live: dict[str, LiveRun] = {}
        self._news: set[str] = set()
        self._woken = asyncio.Event()
        self._tasks: set[asyncio.Task[None]] = set()
        self._last_turn = clock()

    # ---- what others tell the dispatcher

    def wake(self, run_id: str = "") -> None:
        """Look at this run now (and start what waits) instead of at the next sweep."""
        self._news.add(run_id)
        self._woken.set()

    def live_run(self, run_id: str) -> LiveRun | None:
        return self._live.get(run_id)

    def life(self, run_id: str) -> str:
        """What a listing says of a live run's silence."""
        live = self._live.get(run_id)
        return live.vitals.shown(self._clock(), live.limits) if live else ""

    def telemetry(self, run_id: str) -> str:
        """What a listing says of a live run's telemetry; empty when all is well."""
        live = self._live.get(run_id)
        if live is None or live.trouble:
            return live.trouble if live else ""
        return f"draining {live.missing / 1e6:.0f} MB" if live.missing >= 1_000_000 else ""

    # ---- the loop

    async def run(self) -> None:
        await self._guarded(self._take_up())
        next_sweep = self._clock()
        while True:
            self._woken.clear()
            news, self._news = self._news, set()
            is_sweep = self._clock() >= next_sweep
            if is_sweep:
                next_sweep = self._clock() + SWEEP_S
            await self._guarded(self.turn(None if is_sweep else news))
            try:
                await asyncio.wait_for(self._woken.wait(), max(0.0, next_sweep - self._clock()))
            except TimeoutError:
                pass

    async def _take_up(self) -> None:
        """What an earlier daemon left undone beside the live runs."""
        for record in await self._registry.do(lambda r: r.incomplete()):
            self._launcher.tail(self._root.run(record.area, record.run_id))
        for uuid in await self._registry.do(lambda r: r.drained()):
            # A drained GPU comes back when a daemon starts and finds nobody on it.
            if not await asyncio.to_thread(self.gpus.strangers, uuid, lambda pid: False):
                await self._undrain(uuid)

    async def _undrain(self, uuid: str) -> None:
        await self._registry.do(lambda r: r.undrain(uuid))

    async def _guarded(self, work: Coroutine[None, None, None]) -> None:
        try:
            await work
        except Exception:
            # The registry on a full disk, or locked by a stranger: late is better than a daemon that is gone.
            log.exception("A turn of the dispatcher was cut short; the next sweep tries again.")

    async def turn(self, only: Collection[str] | None = None) -> None:
        """Bring every live run, or `only` these, one step forward; then start what waits."""
        self._forget_lost_time()
        for record in await self._registry.do(lambda r: r.live()):
            if only is None or record.run_id in only:
                await self._try_forward(record.run_id)
        await self._start_waiting()

    async def _try_forward(self, run_id: str) -> None:
        try:
            # Read again for each run: the turn may have been long, and a decision on an old row is a wrong one.
            await self._forward(await self._registry.do(lambda r: r.get(run_id)))
        except Exception:
            # One run's trouble must not stop the others; the next sweep tries again.
            log.exception("Run %s could not be brought forward.", run_id, extra={"run_id": run_id})

    async def _forward(self, record: RunRecord) -> None:
        if record.state.is_over:
            return
        if record.state is RunState.INIT:
            if record.cancel_requested:
                await self._end(record, RunState.CANCELLED, "cancelled before it started")
            return
        live = self._remember(record)
        if not live.rundir.path.is_dir():
            await self._end_without_folder(record, live)
            return
        now = situation(live.rundir, record.attempt, self._launcher)
        match now.case:
            case Case.ENDED:
                await self._finish(record, live, now)
            case Case.HELD:
                await self._tend(record, live, now)
            case Case.ORPHANED:
                await self._bury(record, live, now)
            case Case.UNSTARTED:
                await self._start_again(record, live)

    # ---- starting

    async def _start_waiting(self) -> None:
        live = await self._registry.do(lambda r: r.live())
        waiting = [run for run in live if run.state is RunState.INIT]
        if not waiting:
            return
        holders, free, gpu_count = self.holders(live), await self.free_gpus(), len(self.gpus.all)
        for decision in decide(waiting, holders, self.machine, self.max_runs, free, gpu_count):
            await self._try_start(decision)

    def holders(self, live: Iterable[RunRecord]) -> list[RunRecord]:
        """Of the live runs those that have CPUs and memory: started, and not proven dead."""
        started = [run for run in live if run.state is not RunState.INIT]
        return [run for run in started if not (run.run_id in self._live and self._live[run.run_id].gone)]

    async def _try_start(self, decision: Start | Wait) -> None:
        try:
            if isinstance(decision, Start):
                await self._claim_and_launch(decision)
            else:
                await self._note_waiting(decision)
        except (IllegalMove, UnknownRun) as error:
            log.info("%s", error)  # it was cancelled or deleted since we looked; the next turn sees that
        except Exception:
            # No room on the disk, say: the others start; the next sweep looks again.
            log.exception("Run %s could not be started.", decision.run_id, extra={"run_id": decision.run_id})

    async def _note_waiting(self, wait: Wait) -> None:
        await self._registry.do(lambda r: r.note(wait.run_id, waiting_for=wait.waiting_for))

    async def free_gpus(self) -> list[str]:
        if not self.gpus.all:
            return []
        owners = await self._registry.do(lambda r: r.gpu_owners())
        drained = await self._registry.do(lambda r: r.drained())
        roots = self._launcher.roots()
        return await asyncio.to_thread(self.gpus.free, owners, drained, lambda pid: belongs_to(pid, roots))

    async def _claim_and_launch(self, start: Start) -> None:
        failpoint("claim.decided")
        # Claim before spawning: after a crash here the next daemon finds a claim, never a process nobody owns.
        attempt = await self._registry.do(lambda r: r.claim(start.run_id, start.gpus))
        failpoint("claim.done")
        record = await self._registry.do(lambda r: r.get(start.run_id))
        await self._launch(record, attempt)

    async def _launch(self, record: RunRecord, attempt: int) -> None:
        live = self._remember(record)
        try:
            config = await asyncio.to_thread(load, self._root, record.run_id, record.worker_name)
            plan = await asyncio.to_thread(self._plan, config, live.rundir, record, attempt)
            failpoint("spawn.planned")
            await asyncio.to_thread(self._launcher.launch, live.rundir, plan.launch)
        except (MosaicError, OSError) as error:
            await self._end(record, RunState.FAULTED, f"spawn error: {error}")
            return
        self._in_background(self._record_provenance(config, plan, live.rundir))

    def _plan(self, config: RunConfig, rundir: RunDir, record: RunRecord, attempt: int) -> Plan:
        return plan_launch(
            self._root, rundir, config, self._catalog, attempt, record.granted, self._addresses, os.environ
        )

    async def _record_provenance(self, config: RunConfig, plan: Plan, rundir: RunDir) -> None:
        try:
            await asyncio.to_thread(provenance.write, config, plan.command, plan.python, rundir)
        except Exception:
            log.exception("The provenance of run %s could not be written.", config.run_id)

    async def _start_again(self, record: RunRecord, live: LiveRun) -> None:
        """Nothing of this attempt was started: fence off a late holder, then launch with the next attempt number."""
        fence = self._launcher.fence(live.rundir)
        if fence is None:
            return
        try:
            if (durable.read_json(live.rundir.started) or {}).get("attempt") == record.attempt:
                return  # it started, and let go again, since we looked
            # Under the lock: once we let go, a holder that comes late finds nothing to start.
            live.rundir.launch.unlink(missing_ok=True)
            if record.cancel_requested:
                await self._registry.do(lambda r: r.raise_attempt(record.run_id))
                await self._end(record, RunState.CANCELLED, "cancelled before its worker started")
                return
            if record.state is not RunState.HANDSHAKE or record.attempt >= MAX_LAUNCHES:
                await self._end(
                    record, RunState.FAULTED, finish.with_log("spawn error: its holder never started", live.rundir)
                )
                return
            attempt = await self._registry.do(lambda r: r.raise_attempt(record.run_id))
        finally:
            os.close(fence)
        await self._launch(await self._registry.do(lambda r: r.get(record.run_id)), attempt)

    # ---- tending

    async def _tend(self, record: RunRecord, live: LiveRun, now: Situation) -> None:
        self._launcher.watch(live.rundir, lambda: self.wake(record.run_id))
        held_by = now.facts.get("held_by", "")
        if held_by and held_by != record.held_by:
            await self._registry.do(lambda r: r.note(record.run_id, held_by=held_by))
        if record.state is not RunState.HANDSHAKE and not live.adopted:
            await self._adopt(record, live)
        if live.measured and record.state is RunState.READY:
            await self._registry.do(lambda r: r.move(record.run_id, RunState.EXECUTING))
        if record.cancel_requested:
            self._stop(live)
        elif record.state is RunState.HANDSHAKE and self._clock() - live.seen_at > HANDSHAKE_LIMIT_S:
            live.end_reason = f"handshake: nobody registered within {HANDSHAKE_LIMIT_S:.0f} s"
            self._stop(live)
        elif not live.end_reason:
            await self._check_life(record, live)

    async def _adopt(self, record: RunRecord, live: LiveRun) -> None:
        """Ask its file and the registry what it has said before: a silent run's tailer says nothing to a new daemon."""
        live.adopted = True
        await self._ingest.open(record.run_id, live.rundir)
        if live.vitals.last_heartbeat is None and await self._registry.do(lambda r: r.is_beating(record.run_id)):
            live.vitals.heartbeat(self._clock(), None)

    def _stop(self, live: LiveRun) -> None:
        live.stop_sent = live.stop_sent or self._launcher.stop(live.rundir)

    async def _check_life(self, record: RunRecord, live: LiveRun) -> None:
        now = self._clock()
        live.vitals.saw_output(now, finish.output_bytes(live.rundir))
        if live.vitals.wants_cpu(now, record.limits):
            cpu_s = self._launcher.cpu_s(live.rundir)
            if cpu_s is not None:
                live.vitals.saw_cpu(now, cpu_s)
        verdict = live.vitals.verdict(now, record.limits)
        if not verdict:
            return
        # It may have spoken, and its tailer stands still: that is not the worker's silence.
        cursor = await self._ingest.open(record.run_id, live.rundir)
        is_unheard = await asyncio.to_thread(finish.has_unheard_line, live.rundir, cursor.stdout_offset)
        if not is_unheard and self._launcher.autopsy(live.rundir):
            live.end_reason = verdict

    def _forget_lost_time(self) -> None:
        """A daemon that was stopped, or a machine that slept, heard nothing; that is nobody's silence."""
        now = self._clock()
        lost = now - self._last_turn - 5 * SWEEP_S
        self._last_turn = now
        if lost > 0:
            for live in self._live.values():
                live.vitals.shift(lost)

    # ---- ending

    async def _bury(self, record: RunRecord, live: LiveRun, now: Situation) -> None:
        """The holder died. Its namespace died with it; make sure, then write the end it could not write."""
        buried = await asyncio.to_thread(self._launcher.bury, live.rundir, now.facts)
        live.burying_since = live.burying_since or self._clock()
        if not buried and self._clock() - live.burying_since < UNKILLABLE_S:
            self._wake_later(record.run_id)
            return
        failpoint("bury.proven")
        if buried:
            await asyncio.to_thread(finish.give_back_reserve, live.rundir)
        exit = finish.exit_of_dead_holder(record.attempt, live.rundir, unkillable=not buried)
        await asyncio.to_thread(durable.write_json, live.rundir.exit, exit)
        self.wake(record.run_id)

    async def _finish(self, record: RunRecord, live: LiveRun, now: Situation) -> None:
        if record.granted:
            await self._give_back_gpus(record, bool(now.facts.get("unkillable")))
        live.gone = not now.facts.get("unkillable")
        failpoint("finish.freed")
        finish.remove_segments(record.run_id)
        if not self._launcher.is_held(live.rundir):
            self._launcher.tail(live.rundir)  # does nothing while one of ours is at work; tail.lock keeps out a second
        try:
            cursor = await self._ingest.open(record.run_id, live.rundir)
        except (StoreFailed, SchemaTooNew):
            if self._ingest.problem:
                raise  # a writer died: the next daemon goes on
            # Its file is damaged: waiting does not mend it, and the run has ended all the same.
            await self._close(record, live, now, complete=False)
            return
        missing = finish.bytes_missing(now.facts, cursor.stdout_offset, cursor.stderr_offset)
        # Not before its tailer said goodbye: one more publish would open the closed file again.
        if not (live.drained and not missing) and not self._lost_patience(live, missing, now.facts):
            return
        await self._close(record, live, now, complete=not missing)

    async def _end_without_folder(self, record: RunRecord, live: LiveRun) -> None:
        """Somebody deleted the run's folder: how it ends can no longer be told there, only here."""
        if self._launcher.stop(live.rundir):
            return  # its holder ends the tree; its own end wakes us
        if not await asyncio.to_thread(self._launcher.bury, live.rundir, {}):
            self._wake_later(record.run_id)
            return
        await self._ingest.finish(record.run_id)
        await self._end(record, RunState.FAULTED, f"its folder {live.rundir.path} was deleted while it was live")

    async def _give_back_gpus(self, record: RunRecord, unkillable: bool) -> None:
        if unkillable:
            await self._registry.do(lambda r: r.drain_gpus(record.run_id, f"run {record.run_id} could not be killed"))
        else:
            await self._registry.do(lambda r: r.free_gpus(record.run_id))

    def _lost_patience(self, live: LiveRun, missing: int, exit: Mapping[str, Any]) -> bool:
        now = self._clock()
        if missing != live.missing:
            live.missing, live.missing_since = missing, now
        patience = CUT_PATIENCE_S if finish.is_cut(exit, live.rundir) else DRAIN_PATIENCE_S
        return now - live.missing_since > patience

    async def _close(self, record: RunRecord, live: LiveRun, now: Situation, complete: bool) -> None:
        summary = await self._ingest.summary(live.rundir)
        stderr = finish.stderr_tail(live.rundir)

        def decide(newest: RunRecord) -> Ending:
            state, reason = final_state(newest, now.facts, summary.failed_message, stderr, live.end_reason)
            if state is RunState.TERMINATED and newest.state is RunState.HANDSHAKE:
                return RunState.FAULTED, "handshake: its tailer never registered"
            return state, reason

        if record.state is RunState.READY and summary.steps + summary.episodes + summary.metrics:
            await self._registry.do(lambda r: r.move(record.run_id, RunState.EXECUTING))
        await asyncio.to_thread(finish.write_manifest, record, live.rundir)
        failpoint("finish.drained")
        if complete:
            await self._ingest.finish(record.run_id)
        failpoint("finish.closed")
        await self._registry.do(lambda r: r.note(record.run_id, telemetry="" if complete else "incomplete"))
        await self._end_as(record, decide)

    async def _end(self, record: RunRecord, state: RunState, reason: str) -> None:
        await self._end_as(record, lambda _: (state, reason))

    async def _end_as(self, record: RunRecord, decide: Callable[[RunRecord], Ending]) -> None:
        """Decided on the registry's thread, from its newest word: a cancel that is answered must not come too late."""
        run_id = record.run_id
        try:
            await self._registry.do(lambda r: r.free_gpus(run_id))
            ended = await self._registry.do(lambda r: r.move(run_id, *decide(r.get(run_id))))
            failpoint("finish.moved")
            log.info("Run %s is %s. %s", run_id, ended.state, ended.reason, extra={"run_id": run_id})
        except IllegalMove as error:
            log.warning("%s", error, extra={"run_id": run_id})
        self._broadcaster.close(run_id)
        live = self._live.pop(run_id, None)
        if live:
            self._launcher.forget(live.rundir)
        self.wake()

    def complete_late(self, run_id: str) -> None:
        """The last byte of a run that ended as `telemetry: incomplete` has come."""
        self._in_background(self._complete(run_id))

    async def _complete(self, run_id: str) -> None:
        try:
            await self._ingest.finish(run_id)
            await self._registry.do(lambda r: r.note(run_id, telemetry=""))
        except MosaicError as error:
            log.warning("Run %s: its late telemetry could not be closed: %s", run_id, error, extra={"run_id": run_id})
        self._broadcaster.close(run_id)

    # ---- memory

    def _in_background(self, work: Coroutine[None, None, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)  # the loop itself keeps only a weak reference
        task.add_done_callback(self._tasks.discard)

    def _wake_later(self, run_id: str) -> None:
        asyncio.get_running_loop().call_later(0.1, self.wake, run_id)

    def _remember(self, record: RunRecord) -> LiveRun:
        live = self._live.get(record.run_id)
        if live is None:
            now = self._clock()
            rundir = self._root.run(record.area, record.run_id)
            live = self._live[record.run_id] = LiveRun(rundir, Vitals(now), record.limits, now)
        return live
