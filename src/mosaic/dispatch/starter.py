"""Starts a run: claims it, plans its launch, spawns its holder; again if a holder never started."""

import asyncio
import logging
import os
from collections.abc import Awaitable, Callable, Coroutine, Mapping

from mosaic.catalog import provenance
from mosaic.catalog.workers import Catalog
from mosaic.dispatch import run_output
from mosaic.dispatch.descriptors import find_shortage
from mosaic.dispatch.finisher import Finisher
from mosaic.dispatch.launch_plan import Addresses, DriverToken, Far, Plan, plan_launch
from mosaic.dispatch.launcher import Launchers, Ref
from mosaic.dispatch.live_runs import LiveRun, LiveRuns
from mosaic.dispatch.reasons import cancelled
from mosaic.dispatch.schedule import Start
from mosaic.engines.errors import EngineRefused, EngineSilent
from mosaic.model.errors import MosaicError
from mosaic.model.failpoints import failpoint
from mosaic.model.run import RunConfig, RunRecord
from mosaic.model.rundir import RunDir, StateRoot
from mosaic.model.shortage import shortage_of
from mosaic.model.states import RunState
from mosaic.registry.thread import RegistryThread
from mosaic.submit.record import load

log = logging.getLogger(__name__)
RETRY_S = 2.0  # after a shortage of descriptors, processes or memory
MAX_LAUNCHES = 5  # of one run whose holders die before they start the worker


class Starter:
    """Starts runs, each attempt at most once."""

    def __init__(
        self,
        root: StateRoot,
        registry: RegistryThread,
        catalog: Catalog,
        launchers: Launchers,
        addresses: Addresses,
        runs: LiveRuns,
        finisher: Finisher,
        driver_token: DriverToken,
        far: Callable[[RunRecord], Awaitable[Far]],
        part_variables: Callable[[RunConfig], Awaitable[dict[str, str]]],
    ) -> None:
        self._part_variables = part_variables
        self._far = far
        self._root = root
        self._registry = registry
        self._catalog = catalog
        self._launchers = launchers
        self._addresses = addresses
        self._runs = runs
        self._finisher = finisher
        self._driver_token = driver_token
        self._tasks: set[asyncio.Task[None]] = set()

    async def start(self, start: Start) -> None:
        if lacking := find_shortage():
            await self._registry.do(lambda r: r.note(start.run_id, waiting_for=lacking))
            return
        failpoint("claim.decided")
        # Claim before spawning: after a crash here the next daemon finds a claim, never a process without an owner.
        attempt = await self._registry.do(lambda r: r.claim(start.run_id, start.gpus))
        failpoint("claim.done")
        record = await self._registry.do(lambda r: r.get(start.run_id))
        await self._launch(record, attempt)

    async def start_again(self, record: RunRecord, live: LiveRun, lacking: str) -> None:
        """Nothing of this attempt was started: fence off a late holder, then launch with the next attempt number.

        `lacking`: what its holder lacked; empty if it lacked nothing.
        """
        launcher, ref = self._launchers.of(record.on), Ref(live.rundir, record.attempt, record.job)
        fence = await asyncio.to_thread(launcher.fence, ref)
        if fence is None:
            return
        try:
            if await asyncio.to_thread(os.path.lexists, live.rundir.started):
                return  # it started, and released the lock again, since we looked
            # Its control files may have been deleted while it ran: a live process proves that it has started.
            if not await asyncio.to_thread(launcher.settle, ref, {}):
                self._runs.wake_later(record.run_id)
                return
            lacking = "" if record.cancel_requested else self._shortage(live, lacking)
            gives_up = record.state is not RunState.HANDSHAKE or (
                record.attempt >= MAX_LAUNCHES and not record.waiting_for
            )
            if record.cancel_requested or (gives_up and not lacking):
                await asyncio.to_thread(_let_tailer_leave, record.attempt, live.rundir)
            # Under the lock: once it is released, a late holder finds nothing to start.
            await asyncio.to_thread(live.rundir.launch.unlink, missing_ok=True)
            if record.cancel_requested:
                if record.state is RunState.HANDSHAKE:  # not if its tailer has registered
                    await self._registry.do(lambda r: r.raise_attempt(record.run_id))
                await self._finisher.end(record, *cancelled(record, "cancelled before its worker started"))
                return
            if lacking:
                await self._registry.do(lambda r: r.note(record.run_id, waiting_for=lacking))
                if self._runs.now() < live.retry_at:
                    return
                attempt = record.attempt  # no process of it was ever started, so it is not used up
            elif gives_up:
                sentence = "spawn error: its holder never started"
                reason = await asyncio.to_thread(run_output.with_holder_log, sentence, live.rundir)
                await self._finisher.end(record, RunState.FAULTED, reason)
                return
            else:
                attempt = await self._registry.do(lambda r: r.raise_attempt(record.run_id))
        finally:
            os.close(fence)
        await self._launch(await self._registry.do(lambda r: r.get(record.run_id)), attempt)

    # ---- on other machines

    async def submit_far(self, record: RunRecord, attempt: int) -> None:
        """Hand an attempt over to its cluster: a job that is held, its id in the registry, the release."""
        live = self._runs.remember(record, self._root.run(record.area, record.run_id))
        launcher, ref = self._launchers.of(record.on), Ref(live.rundir, attempt)
        try:
            config = await asyncio.to_thread(load, self._root, record.run_id, record.worker_name)
            far, of_parts = await self._far(record), await self._part_variables(config)
            plan = await asyncio.to_thread(self._plan, config, live.rundir, record, attempt, of_parts, far)
            failpoint("spawn.planned")
            job = await asyncio.to_thread(launcher.submit, ref, plan.launch)
        except EngineSilent as error:
            # Perhaps it is queued: the next turn looks for it by its name.
            words = f"its cluster: {error}"
            log.warning("Run %s waits for %s", record.run_id, words, extra={"run_id": record.run_id})
            await self._registry.do(lambda r: r.note_waiting({record.run_id: words}))
            return
        except (MosaicError, OSError) as error:
            await self._finisher.end(record, RunState.FAULTED, f"spawn error: {error}")
            return
        await self._registry.do(lambda r: r.note_job(record.run_id, attempt, job))
        failpoint("far.recorded")
        await self.begin_far(await self._registry.do(lambda r: r.get(record.run_id)))
        self._in_background(self._record_provenance(config, plan, live.rundir))

    async def begin_far(self, record: RunRecord) -> None:
        """Release the job of a run, if that was not done; its id is in the registry."""
        launcher, ref = self._launchers.of(record.on), Ref(self._rundir(record), record.attempt, record.job)
        if not launcher.is_pending(ref):
            return
        try:
            job = await asyncio.to_thread(launcher.begin, ref)
        except EngineRefused as error:
            await self._end_refused(record, ref, str(error))
            return
        except MosaicError as error:
            log.warning("Run %s: its job cannot be released yet: %s", record.run_id, error)
            return
        await self._registry.do(lambda r: r.note_job(record.run_id, record.attempt, job))

    async def _end_refused(self, record: RunRecord, ref: Ref, why: str) -> None:
        """Its job may never run: what was asked for does not exist. A job that is gone was not refused."""
        launcher = self._launchers.of(record.on)
        try:
            is_there = await asyncio.to_thread(launcher.find, ref)
        except MosaicError:
            return
        if is_there:
            launcher.stop(ref)
            await self._finisher.end(record, RunState.FAULTED, f"spawn error: {why}")

    def why_unstarted(self, record: RunRecord, why: str) -> str:
        sentence = why or "spawn error: its job ended before its holder started"
        return run_output.with_holder_log(sentence, self._rundir(record))

    def _rundir(self, record: RunRecord) -> RunDir:
        return self._root.run(record.area, record.run_id)

    # ---- both

    async def _launch(self, record: RunRecord, attempt: int) -> None:
        if record.on:
            await self.submit_far(record, attempt)
            return
        live = self._runs.remember(record, self._root.run(record.area, record.run_id))
        try:
            config = await asyncio.to_thread(load, self._root, record.run_id, record.worker_name)
            of_parts = await self._part_variables(config)
            plan = await asyncio.to_thread(self._plan, config, live.rundir, record, attempt, of_parts)
            failpoint("spawn.planned")
            launcher, ref = self._launchers.of(record.on), Ref(live.rundir, attempt)
            await asyncio.to_thread(launcher.submit, ref, plan.launch)
            await asyncio.to_thread(launcher.begin, ref)
        except (MosaicError, OSError, RuntimeError) as error:
            if lacking := shortage_of(error):
                await self._wait_for_room(record, live, lacking)
                return
            if isinstance(error, RuntimeError):
                raise
            await self._finisher.end(record, RunState.FAULTED, f"spawn error: {error}")
            return
        if live.shortage:
            live.shortage = ""
            await self._registry.do(lambda r: r.note(record.run_id, waiting_for=""))
        self._in_background(self._record_provenance(config, plan, live.rundir))

    async def _wait_for_room(self, record: RunRecord, live: LiveRun, lacking: str) -> None:
        """Nothing was started: keep the claim and try again, because the run itself did nothing wrong."""
        if lacking != live.shortage:
            log.warning("Run %s waits for %s.", record.run_id, lacking, extra={"run_id": record.run_id})
        live.shortage, live.retry_at = lacking, self._runs.now() + RETRY_S
        await self._registry.do(lambda r: r.note(record.run_id, waiting_for=lacking))

    def _shortage(self, live: LiveRun, lacking: str) -> str:
        """What the last launch of this daemon lacked; empty if it lacked nothing."""
        if not live.shortage and lacking:
            live.shortage, live.retry_at = lacking, self._runs.now() + RETRY_S
        return live.shortage

    def _plan(
        self,
        config: RunConfig,
        rundir: RunDir,
        record: RunRecord,
        attempt: int,
        of_parts: Mapping[str, str],
        far: Far | None = None,
    ) -> Plan:
        return plan_launch(
            *(self._root, rundir, config, self._catalog, attempt, record.granted, self._addresses, os.environ),
            driver_token=self._driver_token,
            far=far,
            of_parts=of_parts,
        )

    async def _record_provenance(self, config: RunConfig, plan: Plan, rundir: RunDir) -> None:
        try:
            await asyncio.to_thread(provenance.write, config, plan.command, plan.python, rundir, plan.programs)
        except Exception:
            # The edge of a background task: the run continues without its provenance.
            log.exception("The provenance of run %s could not be written.", config.run_id)

    def _in_background(self, work: Coroutine[None, None, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)  # the event loop itself keeps only a weak reference
        task.add_done_callback(self._tasks.discard)


def _let_tailer_leave(attempt: int, rundir: RunDir) -> None:
    """A holder that made the tree, failed and was killed has left a tailer that waits for the end."""
    try:
        run_output.write_exit(attempt, rundir, unkillable=False)
    except OSError as error:
        log.info("Run %s: its end cannot be written, and a tailer may stay: %s", rundir.run_id, error)
