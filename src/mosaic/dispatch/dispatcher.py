"""The dispatcher: one task that moves every live run forward. It is woken by events, and sweeps every 2 s in any case.
A run on another machine rests between two sweeps in which something is due for it: see `Supervisor.next_look`.

Each turn asks what is durably true of each run (registry row, run folder, lock) and takes the next step. A daemon that
was killed at any point finds the same facts and continues: there is no separate recovery.
"""

import asyncio
import logging
import sqlite3
import time
from collections.abc import Awaitable, Callable, Collection, Coroutine, Iterable, Mapping, Sequence

from mosaic.broadcast.subscribers import Broadcaster
from mosaic.catalog.workers import Catalog
from mosaic.dispatch import run_output
from mosaic.dispatch.finisher import Finisher
from mosaic.dispatch.gpus import Gpus
from mosaic.dispatch.launch_plan import Addresses, DriverToken, Far
from mosaic.dispatch.launcher import Launchers, Ref
from mosaic.dispatch.live_runs import LiveRun, LiveRuns
from mosaic.dispatch.local_launcher import LocalLauncher
from mosaic.dispatch.placer import Placer
from mosaic.dispatch.reasons import cancelled
from mosaic.dispatch.schedule import Start, Wait, decide, take_turns
from mosaic.dispatch.situation import Case, Situation, situation
from mosaic.dispatch.starter import Starter
from mosaic.dispatch.supervisor import Supervisor, far_pause_s
from mosaic.ingest.receive import Ingest
from mosaic.model import procfs
from mosaic.model.errors import IllegalMove, MosaicError, UnknownRun
from mosaic.model.machine import Machine
from mosaic.model.run import RunConfig, RunRecord
from mosaic.model.rundir import StateRoot
from mosaic.model.states import RunState
from mosaic.registry.thread import RegistryThread

log = logging.getLogger(__name__)
SWEEP_S = 2.0
PLACED_AT_ONCE = 10  # runs that are handed over to a cluster in one turn
LEFT_OVER_S = 24 * 3600.0  # after a run's end a starting daemon still looks for jobs of it
GIVE_UP_S = 60.0  # of turns that fail because of what is in the run's folder
LONGEST_TURN_S = 5 * SWEEP_S  # a longer pause between turns means that the daemon was stopped or the machine suspended


async def no_far(record: RunRecord) -> Far:
    raise MosaicError(f"Run {record.run_id} is for {record.on}, and this daemon serves no cluster.")


async def no_parts(config: RunConfig) -> dict[str, str]:
    return {}


class Dispatcher:
    """Claims, starts, supervises and ends runs.

    1. A run is claimed in the registry before any process of it is spawned.
    2. GPUs are freed only after proof of death.
    3. A final state is written only when the spool is drained, or after 10 min without a new byte
       (`telemetry: incomplete`).
    """

    def __init__(
        self,
        root: StateRoot,
        registry: RegistryThread,
        ingest: Ingest,
        broadcaster: Broadcaster,
        catalog: Catalog,
        local: LocalLauncher,
        launchers: Launchers,
        gpus: Gpus,
        machine: Machine,
        max_runs: int,
        addresses: Addresses,
        runs: LiveRuns,
        root_is_here: Callable[[], bool] = lambda: True,
        driver_token: DriverToken = lambda *_: "",
        far: Callable[[RunRecord], Awaitable[Far]] = no_far,
        ended: Callable[[RunRecord], None] = lambda _: None,
        part_variables: Callable[[RunConfig], Awaitable[dict[str, str]]] = no_parts,
    ) -> None:
        """`ended` is called with each run that has reached its final state; `part_variables`: see daemon/parts.py."""
        self._root = root
        self._root_is_here = root_is_here
        self._registry = registry
        self._local = local
        self._launchers = launchers
        self.gpus = gpus
        self.machine = machine
        self.max_runs = max_runs
        self._runs = runs
        self._finisher = Finisher(registry, ingest, broadcaster, launchers, runs, ended)
        self._supervisor = Supervisor(registry, ingest, launchers, runs)
        self._starter = Starter(
            root, registry, catalog, launchers, addresses, runs, self._finisher, driver_token, far, part_variables
        )
        self._placer = Placer(root, registry, launchers, self._starter, self._finisher, runs)
        self._last_turn = runs.now()
        self._known_started: tuple[int, list[RunRecord]] = (-1, [])
        self._told: dict[str, str] = {}  # by run: what its last turn failed with, logged once
        # Revision, free GPUs and dead runs at a look at the queue that started nothing.
        self._nothing_to_start: tuple[int, tuple[str, ...], frozenset[str]] | None = None

    # ---- what others ask

    def wake(self, run_id: str = "") -> None:
        self._runs.wake(run_id)

    def life(self, run_id: str) -> str:
        """What a listing says about a live run's silence."""
        live = self._runs.get(run_id)
        return live.vitals.describe(self._runs.now(), live.limits) if live else ""

    def telemetry(self, run_id: str) -> str:
        """What a listing says about a live run's telemetry; empty when there is no problem."""
        live = self._runs.get(run_id)
        if live is None or live.problem:
            return live.problem if live else ""
        return f"draining {live.missing / 1e6:.0f} MB" if live.missing >= 1_000_000 else ""

    def holders(self, live: Iterable[RunRecord]) -> list[RunRecord]:
        """Those of the live runs that hold CPUs and memory of this machine: started, and not proven dead."""
        started = [run for run in live if run.state is not RunState.INIT and not run.on]
        return [run for run in started if not ((known := self._runs.get(run.run_id)) and known.gone)]

    async def free_gpus(self) -> list[str]:
        if not self.gpus.all:
            return []
        owners = await self._registry.do(lambda r: r.gpu_owners())
        drained = await self._registry.do(lambda r: r.drained())
        roots = set(self._local.roots())
        return await asyncio.to_thread(self.gpus.free, owners, drained, lambda pid: procfs.has_ancestor(pid, roots))

    # ---- the loop

    async def run(self) -> None:
        await self._guarded(self.recover())
        next_sweep = self._runs.now()
        while True:
            changed = self._runs.take_changed()
            is_sweep = self._runs.now() >= next_sweep
            if is_sweep:
                next_sweep = self._runs.now() + SWEEP_S
            await self._guarded(self.turn(None if is_sweep else changed))
            await self._runs.wait(max(0.0, next_sweep - self._runs.now()))

    async def recover(self) -> None:
        """Continue what an earlier daemon left beside the live runs: incomplete telemetry, jobs, drained GPUs."""
        for record in await self._registry.do(lambda r: r.incomplete()):
            await self._finisher.drain(record, self._root.run(record.area, record.run_id))
        for record in self.holders(await self._registry.do(lambda r: r.live())):
            self._tail_again(record)
        since = time.time() - LEFT_OVER_S
        for record in await self._registry.do(lambda r: r.ended_afar(since)):
            self._forget(record)
        for uuid in await self._registry.do(lambda r: r.drained()):
            # A drained GPU is free again when a starting daemon finds no process on it.
            if not await asyncio.to_thread(self.gpus.foreign_pids, uuid, lambda pid: False):
                await self._undrain(uuid)

    def _forget(self, record: RunRecord) -> None:
        """The last daemon may have ended before its cluster had forgotten the job, or before the job appeared there."""
        ref = Ref(self._root.run(record.area, record.run_id), record.attempt, record.job)
        try:
            self._launchers.of(record.on).forget(ref)
        except MosaicError as error:
            log.info("Run %s: what its cluster has of it is left there: %s", record.run_id, error)

    def _tail_again(self, record: RunRecord) -> None:
        rundir = self._root.run(record.area, record.run_id)
        try:
            if not record.on and self._local.is_untailed(rundir):
                self._local.tail(rundir)
        except OSError as error:
            log.warning("Run %s: no tailer could be started: %s", record.run_id, error)

    async def _undrain(self, uuid: str) -> None:
        await self._registry.do(lambda r: r.undrain(uuid))

    async def _guarded(self, work: Coroutine[None, None, None]) -> None:
        try:
            await work
        except Exception:
            # A full disk or a locked registry: a late turn is better than no daemon.
            log.exception("A turn of the dispatcher failed; the next sweep tries again.")

    async def turn(self, only: Collection[str] | None = None) -> None:
        """Take the next step of every live run, or of `only` these; then start runs that wait."""
        self._forget_lost_time()
        # Not the runs that wait: thousands of them may be in the queue, and nothing is due for them here.
        for record in await self._started():
            if (only is None or record.run_id in only) and not record.damage and self._is_due(record):
                await self._try_step(record.run_id)
        for run_id in self._runs.take_drained_late():
            await self._finisher.complete_late(run_id)
        await self._start_waiting()

    async def _started(self) -> "list[RunRecord]":
        """The live runs that are claimed or handed over; read again when a row has changed."""
        revision = await self._registry.do(lambda r: r.revision())
        if self._known_started[0] != revision:
            # In this order: a change between the two is seen by the next turn.
            self._known_started = revision, await self._registry.do(lambda r: r.started())
        return self._known_started[1]

    def _forget_lost_time(self) -> None:
        """While the daemon was stopped or the machine slept nothing was received; no run was silent in that time."""
        now = self._runs.now()
        lost = now - self._last_turn - LONGEST_TURN_S
        self._last_turn = now
        if lost > 0:
            for live in self._runs:
                live.vitals.shift(lost)

    async def _try_step(self, run_id: str) -> None:
        try:
            # Read again for each run: the turn may have been long, and a decision on an old row is a wrong one.
            record = await self._registry.do(lambda r: r.get(run_id))
            if not record.damage:  # no revision tells of what another program did to it
                await self._step(record)
        except MosaicError as error:
            # Its sentence says what is wrong, such as a cluster's file that cannot be used. Once is enough.
            if self._told.get(run_id) != str(error):
                self._told[run_id] = str(error)
                log.warning("Run %s waits: %s", run_id, error, extra={"run_id": run_id})
        except Exception as error:
            # One run's problem must not stop the others; the next sweep tries again.
            log.exception("Run %s: this turn failed.", run_id, extra={"run_id": run_id})
            await self._guarded(self._give_up_in_time(run_id, error))
        else:
            self._told.pop(run_id, None)
            if live := self._runs.get(run_id):
                live.failing_since = 0.0

    async def _give_up_in_time(self, run_id: str, error: Exception) -> None:
        """A run whose folder makes every turn fail must not wait for its end forever."""
        live = self._runs.get(run_id)
        if live is None or isinstance(error, (MosaicError, sqlite3.Error)) or run_output.may_pass(error):
            return
        live.failing_since = live.failing_since or self._runs.now()
        if self._runs.now() - live.failing_since > GIVE_UP_S:
            record = await self._registry.do(lambda r: r.get(run_id))
            await self._finisher.give_up(record, live, error)

    async def _step(self, record: RunRecord) -> None:
        if record.state.is_over:
            return
        if record.state is RunState.INIT:
            if record.on:
                await self._placer.step(record)
            elif record.cancel_requested:
                await self._finisher.end(record, *cancelled(record, "cancelled before it started"))
            return
        live = self._runs.remember(record, self._root.run(record.area, record.run_id))
        # In a thread: the folder belongs to the worker, and so does the time that reading it takes.
        now = await asyncio.to_thread(self._look, record, live)
        if now is None:
            # With the root gone all folders are missing: the runs continue where it is now, and this daemon ends.
            if self._root_is_here():
                await self._finisher.end_without_folder(record, live)
            return
        if record.on and now.node and now.node != record.node:
            await self._registry.do(lambda r: r.note(record.run_id, node=now.node))
        match now.case:
            case Case.ENDED:
                await self._finisher.finish(record, live, now.facts)
            case Case.HELD:
                await self._supervisor.check(record, live, now.facts)
                if record.on and not now.words:
                    self._runs.rest_until(record.run_id, self._supervisor.next_look(record, live))
            case Case.STARTING if record.on and record.cancel_requested:
                # Its started.json was deleted: a run that has not started yet is in INIT.
                self._launchers.of(record.on).stop(Ref(live.rundir, record.attempt, record.job))
            case Case.ORPHANED:
                await self._finisher.clean_up(record, live, now.facts)
            case Case.UNSTARTED:
                await self._starter.start_again(record, live, now.words)
            case Case.LOST:
                await self._finisher.lose(record, live, now.words)
            case Case.QUEUED:
                await self._take_from_queue(record, live, bool(now.facts))

    def _is_due(self, record: RunRecord) -> bool:
        """Whether a run is to be looked at in this sweep: on this machine always."""
        if not record.on or record.cancel_requested:
            return True
        if self._runs.rests(record.run_id):
            return False
        try:
            if record.state is not RunState.INIT or self._placer.is_due(record):
                return True
        except MosaicError:
            return True  # its step says why
        self._runs.rest_until(record.run_id, self._runs.now() + far_pause_s(record.run_id))
        return False

    async def _take_from_queue(self, record: RunRecord, live: LiveRun, is_started: bool) -> None:
        """Its job waits again. If it was started, another start of it would do nothing: the job is cancelled."""
        if is_started or record.cancel_requested:
            self._launchers.of(record.on).stop(Ref(live.rundir, record.attempt, record.job))
        else:
            await self._placer.let_run(record)

    def _look(self, record: RunRecord, live: LiveRun) -> Situation | None:
        """The situation of a run; None without its folders."""
        if not live.rundir.is_in_place:
            return None
        run_output.open_up(live.rundir)
        ref = Ref(live.rundir, record.attempt, record.job)
        return situation(ref, self._launchers.of(record.on))

    # ---- the queue

    async def _start_waiting(self) -> None:
        count, revision = await self._registry.do(lambda r: (r.count([RunState.INIT]), r.revision()))
        if not count:
            return
        free = await self.free_gpus()
        # Read the queue only if something has changed since nothing could be started.
        if (revision, tuple(free), self._gone()) == self._nothing_to_start:
            return
        live = await self._registry.do(lambda r: r.live())
        waiting = [run for run in live if run.state is RunState.INIT and not run.damage and not run.on]
        limits = await self._registry.do(lambda r: r.experiments.limits())
        left = await self._place_waiting(live, limits)
        holders, gpu_count = self.holders(live), len(self.gpus.all)
        decisions = list(decide(waiting, holders, self.machine, self.max_runs, free, gpu_count, limits))
        await self._note_waiting(waiting, decisions)
        starts = [decision for decision in decisions if isinstance(decision, Start)]
        for start in starts:
            await self._try_start(start)
        revision = await self._registry.do(lambda r: r.revision())
        self._nothing_to_start = None if starts or left else (revision, tuple(free), self._gone())

    async def _place_waiting(self, live: Sequence[RunRecord], limits: Mapping[str, int]) -> bool:
        """Hand runs that no cluster knows yet over to theirs, a few in each turn: every one takes a moment.

        Whether some are left.
        """
        waiting = [run for run in live if run.state is RunState.INIT and run.on and not run.attempt and not run.damage]
        waiting = [run for run in waiting if not run.cancel_requested]
        gone = self._gone()
        ready, waits = take_turns(waiting, [run for run in live if run.attempt and run.run_id not in gone], limits)
        await self._note_waiting(waiting, waits)
        placed = 0
        for run in ready[:PLACED_AT_ONCE]:
            placed += await self._place(run)
        if placed and len(ready) > PLACED_AT_ONCE:
            self._runs.wake_later("")
        return placed < len(waiting)

    async def _place(self, run: RunRecord) -> bool:
        try:
            room = self._launchers.room(run.on)
            if room is None:
                self._runs.wake_later("")  # its cluster is just being asked
            elif room:
                await self._note_waiting([run], [Wait(run.run_id, room)])
            else:
                await self._placer.place(run)
            return room == ""
        except (IllegalMove, UnknownRun) as error:
            log.info("%s", error)  # it was cancelled or deleted since we looked
        except MosaicError as error:
            await self._finisher.end(run, RunState.FAULTED, f"spawn error: {error}")
        except Exception:
            # A full disk, say: the other runs are placed, and the next sweep tries again.
            log.exception("Run %s could not be handed over.", run.run_id, extra={"run_id": run.run_id})
        return False

    def _gone(self) -> frozenset[str]:
        """The live runs whose trees are dead: no change of the registry tells that their resources are free."""
        return frozenset(live.rundir.run_id for live in self._runs if live.gone)

    async def _note_waiting(self, waiting: Sequence[RunRecord], decisions: Iterable[Start | Wait]) -> None:
        """Store what each run waits for, if that has changed, in one transaction."""
        shown = {run.run_id: run.waiting_for for run in waiting}
        waits = [decision for decision in decisions if isinstance(decision, Wait)]
        news = {wait.run_id: wait.waiting_for for wait in waits if shown[wait.run_id] != wait.waiting_for}
        if news:
            await self._registry.do(lambda r: r.note_waiting(news))

    async def _try_start(self, decision: Start) -> None:
        try:
            await self._starter.start(decision)
        except (IllegalMove, UnknownRun) as error:
            log.info("%s", error)  # it was cancelled or deleted since we looked; the next turn sees that
        except Exception:
            # A full disk, say: the other runs start, and the next sweep tries again.
            log.exception("Run %s could not be started.", decision.run_id, extra={"run_id": decision.run_id})
