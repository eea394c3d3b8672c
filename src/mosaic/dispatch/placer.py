"""Hands runs over to clusters, and follows them in INIT until their cluster has started them.

    INIT ─ place: attempt ─▶ submit: a job that is held ─▶ its id in the registry ─▶ begin ─▶ queued ─▶ HANDSHAKE

After a crash at any point the job is found by its name, which has the run and the attempt in it. If there is none, the
next attempt is submitted: a job of the old one that appears late stays held, and its holder would leave at once.
"""

import asyncio
import logging
import os

from mosaic.dispatch.finisher import Finisher
from mosaic.dispatch.launcher import Launcher, Launchers, Ref, Sight, Stage
from mosaic.dispatch.live_runs import LiveRuns
from mosaic.dispatch.reasons import cancelled
from mosaic.dispatch.situation import LONGEST_WORDS
from mosaic.dispatch.starter import Starter
from mosaic.model.errors import MosaicError
from mosaic.model.failpoints import failpoint
from mosaic.model.run import RunRecord
from mosaic.model.rundir import RunDir, StateRoot
from mosaic.model.states import RunState
from mosaic.registry.thread import RegistryThread

log = logging.getLogger(__name__)
NO_ANSWER = "an answer of its cluster"
MOST_LAUNCHES = 5  # of one run whose jobs disappear before they start


class Placer:
    """Each call takes one step of one run in INIT that is not for this machine."""

    def __init__(
        self,
        root: StateRoot,
        registry: RegistryThread,
        launchers: Launchers,
        starter: Starter,
        finisher: Finisher,
        runs: LiveRuns,
    ) -> None:
        self._root = root
        self._registry = registry
        self._launchers = launchers
        self._starter = starter
        self._finisher = finisher
        self._runs = runs

    async def place(self, record: RunRecord) -> None:
        """Submit a run for the first time."""
        attempt = await self._registry.do(lambda r: r.place(record.run_id))
        failpoint("far.placed")
        await self._starter.submit_far(await self._registry.do(lambda r: r.get(record.run_id)), attempt)

    def is_due(self, record: RunRecord) -> bool:
        """Whether a step would change anything. Hundreds of runs may be queued, and most just wait.

        If not, its cluster wakes the dispatcher for it when it says something else.
        """
        if record.cancel_requested or not record.job:
            return True
        launcher, ref = self._launchers.of(record.on), self._ref(record)
        launcher.watch(ref, lambda: self._runs.wake(record.run_id))
        sight = launcher.look(ref)
        return sight.stage is not Stage.QUEUED or sight.reason != record.waiting_for or launcher.is_pending(ref)

    async def step(self, record: RunRecord) -> None:
        launcher, ref = self._launchers.of(record.on), self._ref(record)
        launcher.watch(ref, lambda: self._runs.wake(record.run_id))
        if not record.attempt:  # it is to be cancelled
            await self._end(record, *cancelled(record, "cancelled before it started"))
            return
        if not record.job:
            await self._find(record, launcher, ref)
            return
        sight = await asyncio.to_thread(launcher.look, ref)
        # Before its job is looked at: a worker that was started is never started again.
        if sight.stage in (Stage.RUNNING, Stage.LOST) or await asyncio.to_thread(_is_started, ref.rundir):
            await self._arrive(record, sight)
        elif record.cancel_requested:
            await self._cancel(record, launcher, ref, sight)
        elif sight.stage is Stage.QUEUED:
            await self._note(record, sight.reason)
            await self._starter.begin_far(record)
        elif sight.stage is Stage.UNKNOWN:
            await self._note(record, f"{NO_ANSWER}{f' ({sight.reason})' if sight.reason else ''}")
        elif sight.stage is Stage.ENDED:
            await self._end_unstarted(record, launcher, ref, sight)
        elif sight.stage is Stage.ABSENT:
            await self._place_again(record)

    async def let_run(self, record: RunRecord) -> None:
        """A later attempt of a run in HANDSHAKE is queued: record and release its job, if that was not done."""
        if not record.job:
            await self._find(record, self._launchers.of(record.on), self._ref(record))
        else:
            await self._starter.begin_far(record)

    async def _find(self, record: RunRecord, launcher: Launcher, ref: Ref) -> None:
        """A daemon ended, or its cluster did not answer, between the attempt and the record of its job."""
        try:
            job = await asyncio.to_thread(launcher.find, ref)
        except MosaicError as error:
            await self._note(record, f"{NO_ANSWER} ({error})")
            return
        if job:
            await self._registry.do(lambda r: r.note_job(record.run_id, record.attempt, job))
            self._runs.wake(record.run_id)
        elif record.cancel_requested:
            await self._end(record, *cancelled(record, "cancelled before it started"))
        else:
            await self._place_again(record)

    async def _arrive(self, record: RunRecord, sight: Sight) -> None:
        # What it waited for until now was not the worker: its clocks start here.
        self._runs.forget(record.run_id)
        await self._registry.do(lambda r: r.arrive(record.run_id))
        if sight.node:
            await self._registry.do(lambda r: r.note(record.run_id, node=sight.node[:LONGEST_WORDS]))
        self._runs.wake(record.run_id)

    async def _cancel(self, record: RunRecord, launcher: Launcher, ref: Ref, sight: Sight) -> None:
        # One that waits cannot start any more, and its job leaves the queue when its cluster gets to it.
        is_gone = sight.stage in (Stage.ENDED, Stage.ABSENT)
        if is_gone or (launcher.stop(ref) and sight.stage is Stage.QUEUED):
            await self._end(record, *cancelled(record, "cancelled before it started"))

    async def _end_unstarted(self, record: RunRecord, launcher: Launcher, ref: Ref, sight: Sight) -> None:
        """Its job ended before its holder had started anything."""
        if sight.retry:
            await self.place(record)
        elif "cancelled" in sight.reason or record.attempt >= MOST_LAUNCHES or sight.retry is False:
            await asyncio.to_thread(launcher.keep_log, ref)
            reason = await asyncio.to_thread(self._starter.why_unstarted, record, sight.reason)
            await self._end(record, RunState.FAULTED, reason)
        else:
            await self._place_again(record)

    async def _place_again(self, record: RunRecord) -> None:
        log.warning("Run %s: nothing is left of its attempt %d.", record.run_id, record.attempt)
        if record.attempt >= MOST_LAUNCHES:
            reason = (
                f"its cluster lost {MOST_LAUNCHES} jobs of it before they started. See its log, then submit it again"
            )
            await self._end(record, RunState.FAULTED, reason)
            return
        await self.place(record)

    async def _end(self, record: RunRecord, state: RunState, reason: str) -> None:
        """End a run that never left INIT, which the finisher has not seen, and give up its job."""
        await self._finisher.end(record, state, reason)
        # Also if another daemon handed it over: a job of it that appears later must not wait for ever.
        self._launchers.of(record.on).forget(self._ref(record))

    async def _note(self, record: RunRecord, text: str) -> None:
        if text != record.waiting_for:
            await self._registry.do(lambda r: r.note_waiting({record.run_id: text}))

    def _ref(self, record: RunRecord) -> Ref:
        return Ref(self._root.run(record.area, record.run_id), record.attempt, record.job)


def _is_started(rundir: RunDir) -> bool:
    return os.path.lexists(rundir.started) or os.path.lexists(rundir.exit)
