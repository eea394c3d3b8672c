"""Runs the holders as jobs of Slurm, whose nodes see the run's folder under the same path.

A job id is no identity: after a crash of its controller Slurm gives an id out again. A job's name, with the run and the
attempt, is one. Slurm may even start a job twice; only started.json keeps the second holder from starting a worker.
"""

import asyncio
import logging
import math
import os
import shlex
import sys
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from mosaic.dispatch.cluster_jobs import PREFIX, Jobs, JobWatch
from mosaic.dispatch.launcher import Ref, Sight, Stage, Stop
from mosaic.dispatch.local_launcher import HOLDER, LocalLauncher, take_lock, write_launch
from mosaic.engines.slurm import Job, JobSpec, Slurm
from mosaic.model import durable
from mosaic.model.errors import MosaicError
from mosaic.model.failpoints import failpoint
from mosaic.model.held import HIDDEN

log = logging.getLogger(__name__)
HELD = "held "  # before the id of a job that may not run yet
FORGOTTEN_S = 20.0  # how long a job must be unknown to Slurm before its run counts as ended
AGAIN_S = 5.0  # between two signals, and beyond the grace period before a plain scancel
_SIGNALS = {Stop.TERM: "TERM", Stop.AUTOPSY: "USR1"}
_STAGES = {
    **dict.fromkeys(("PENDING", "REQUEUED", "REQUEUE_FED", "REQUEUE_HOLD", "SPECIAL_EXIT"), Stage.QUEUED),
    "CONFIGURING": Stage.STARTING,
    **dict.fromkeys(("COMPLETED", "FAILED", "CANCELLED", "TIMEOUT", "PREEMPTED", "OUT_OF_MEMORY"), Stage.ENDED),
    **dict.fromkeys(("DEADLINE", "BOOT_FAIL", "REVOKED"), Stage.ENDED),
    "NODE_FAIL": Stage.LOST,
}  # every other state, COMPLETING included: processes may live


class SlurmLauncher:
    """A `Launcher`. Calls of Slurm's commands that may hang are made in threads."""

    def __init__(
        self,
        slurm: Slurm,
        local: LocalLauncher,
        clock: Callable[[], float] = time.monotonic,
        cpu_of: Callable[[str], float | None] = lambda _: None,
    ) -> None:
        """`cpu_of`: the CPU seconds of a run, as its node reports them."""
        self._cpu_of = cpu_of
        self._slurm = slurm
        self._local = local
        self._jobs: JobWatch[Job] = JobWatch(slurm, self._cancel_leftovers)
        self._now = clock
        self._pool = ThreadPoolExecutor(4, f"slurm-{slurm.cluster.name}")
        self._changed_at: dict[str, float] = {}  # job name → when this daemon changed it: older answers do not count
        self._absent_since: dict[str, float] = {}
        self._seen_started: set[str] = set()  # job names
        self._stops: dict[str, tuple[float, float]] = {}  # job name → when its stop began, and the last signal
        self._over: set[str] = set()  # runs of which no job may wait any more

    # ---- the start

    def submit(self, ref: Ref, launch: dict[str, Any]) -> str:
        write_launch(ref.rundir, launch)
        job = self._slurm.submit(self._spec(ref, launch))
        failpoint("far.queued")
        self._changed_at[_name(ref)] = self._now()
        return f"{HELD}{job}"

    def begin(self, ref: Ref) -> str:
        job = _id(ref)
        self._slurm.release(job)
        failpoint("far.released")
        self._changed_at[_name(ref)] = self._now()
        return job

    def is_pending(self, ref: Ref) -> bool:
        if ref.job.startswith(HELD):
            return True
        # A controller that was killed may restore the job as it was before its release.
        newest = self._jobs.newest(self._changed_at.get(_name(ref), 0.0))
        job = newest.by_name.get(_name(ref)) if newest else None
        return job is not None and job.state == "PENDING" and job.reason == "JobHeldUser"

    def _spec(self, ref: Ref, launch: Mapping[str, Any]) -> JobSpec:
        wants = launch["resources"]
        limit_s = launch.get("time_limit_s") or wants.get("default_time_s")
        # The holder keeps the exact limit; Slurm's own comes later, for the case that the holder cannot.
        minutes = math.ceil((limit_s + launch["grace_s"]) / 60) + 1 if limit_s else 0
        words = [sys.executable, "-I", "-S", str(HOLDER), "--run-dir", str(ref.rundir.path)]
        words += ["--attempt", str(ref.attempt)]
        holder = f'exec {shlex.join(words)} --node "$SLURMD_NODENAME" --job "$SLURM_JOB_ID"'
        return JobSpec(
            name=_name(ref),
            comment=f"MOSAIC run {ref.rundir.run_id}, attempt {ref.attempt}",
            script=holder,
            log=str(ref.rundir.holder_log),
            partition=wants["partition"],
            cpus=max(1, math.ceil(wants["cpus"])),
            memory_mb=wants["memory_mb"],
            gpus=wants["gpus"],
            minutes=minutes,
        )

    # ---- what is known

    def find(self, ref: Ref) -> str | None:
        # Directly, not from an older answer: another attempt is submitted if it is not found.
        found = [job for job in self._slurm.jobs() if job.name == _name(ref)]
        held = [job for job in found if job.state == "PENDING"]
        return f"{HELD}{held[-1].id}" if held else found[-1].id if found else None

    def look(self, ref: Ref) -> Sight:
        sight = self._sight(ref)
        # A held lock is a live holder, whatever Slurm says; where locks do not work the lock looks free.
        if sight.stage in (Stage.ENDED, Stage.ABSENT, Stage.QUEUED) and _is_locked(ref):
            return Sight(Stage.RUNNING, "its holder lives", sight.node)
        if sight.stage is Stage.QUEUED and self._has_just_started(ref):
            return Sight(Stage.UNKNOWN)
        return sight

    def _has_just_started(self, ref: Ref) -> bool:
        """Whether the answer may be older than the start. Only a later one can say that the job waits again."""
        name = _name(ref)
        if name in self._seen_started or not os.path.lexists(ref.rundir.started):
            return False
        self._seen_started.add(name)
        self._changed_at[name] = self._now()
        return True

    def lives(self, ref: Ref, started: Mapping[str, Any]) -> bool:
        # The worker could not write exit.json where its control files are hidden. Elsewhere Slurm must confirm it.
        is_hidden = HIDDEN in str(started.get("held_by", ""))
        return not is_hidden and self.look(ref).stage not in (Stage.ENDED, Stage.ABSENT, Stage.LOST)

    def room(self) -> str | None:
        newest = self._jobs.newest()
        if newest is None or newest.problem:
            return f"an answer of Slurm ({newest.problem})" if newest else None
        ended = (Stage.ENDED, Stage.LOST)
        jobs = sum(_STAGES.get(job.state) not in ended for job in newest.by_name.values())
        most = self._slurm.cluster.most_jobs
        return (
            f"a free place: {jobs} jobs of runs are in Slurm's queue, the most that are allowed" if jobs >= most else ""
        )

    def _sight(self, ref: Ref) -> Sight:
        name = _name(ref)
        newest = self._jobs.newest(self._changed_at.get(name, 0.0))
        if newest is None or newest.problem:
            self._absent_since.pop(name, None)
            return Sight(Stage.UNKNOWN, newest.problem if newest else "")
        job = newest.by_name.get(name)
        if job is None:
            self._absent_since.setdefault(name, self._now())
            return Sight(Stage.ABSENT)
        self._absent_since.pop(name, None)
        stage = _STAGES.get(job.state, Stage.RUNNING)
        return Sight(stage, _waits_for(job) if stage is Stage.QUEUED else _ended_by(job, self._slurm), job.node)

    def watch(self, ref: Ref, wake: Callable[[], None]) -> None:
        loop = asyncio.get_running_loop()
        self._jobs.watch(_name(ref), lambda: _wake(loop, wake))

    def cpu_s(self, ref: Ref) -> float | None:
        return self._cpu_of(ref.rundir.run_id)

    # ---- the end

    def stop(self, ref: Ref, how: Stop = Stop.TERM) -> bool:
        if not _id(ref):
            return False
        name, now = _name(ref), self._now()
        began_at, last = self._stops.get(name, (now, 0.0))
        if last and now - last < AGAIN_S:
            return how is Stop.AUTOPSY
        self._stops[name] = began_at, now
        grace_s = (durable.read_json(ref.rundir.launch) or {}).get("grace_s")
        is_late = now - began_at > (grace_s if isinstance(grace_s, int | float) else 10.0) + AGAIN_S
        self._pool.submit(self._stop, name, _id(ref), _SIGNALS[how], is_late)
        return how is Stop.AUTOPSY  # a later call ends it the hard way

    def _stop(self, name: str, job_id: str, signal_name: str, is_late: bool) -> None:
        try:
            # In this order: a job that starts in between gets the signal, one that waits would refuse it.
            self._slurm.cancel_waiting(job_id)
            if is_late:
                self._slurm.cancel(job_id)
            else:
                self._slurm.signal(job_id, signal_name)
            self._changed_at[name] = self._now()  # a slow squeue is asked rarely, but somebody waits for this end
        except MosaicError as error:
            log.info("Job %s could not be stopped yet: %s", job_id, error)

    def fence(self, ref: Ref) -> int | None:
        return take_lock(ref.rundir)

    def settle(self, ref: Ref, started: dict[str, Any]) -> bool:
        stage = self._sight(ref).stage
        if stage is Stage.ABSENT:
            # Slurm forgets jobs: minutes after their end, and at once if its controller is killed.
            since = self._absent_since.get(_name(ref))
            return not started or (since is not None and self._now() - since >= FORGOTTEN_S)
        return stage is Stage.ENDED

    def keep_log(self, ref: Ref) -> None:
        pass  # Slurm writes it there

    def drain(self, ref: Ref) -> None:
        self._local.tail(ref.rundir)  # the folder is on this machine as well

    def forget(self, ref: Ref) -> None:
        name = _name(ref)
        self._jobs.forget(name)
        for kept in (self._changed_at, self._absent_since, self._stops):
            kept.pop(name, None)
        self._seen_started.discard(name)
        self._over.add(ref.rundir.run_id)
        self._jobs.newest()  # ask on for a while

    def _cancel_leftovers(self, newest: Jobs[Job]) -> None:
        """Cancel waiting jobs of runs that are over.

        An administrator has requeued them, or the answer to their submission was lost and they appeared late.
        """
        for job in newest.by_name.values():
            run_id = job.name.removeprefix(PREFIX).rpartition("-")[0]
            if run_id in self._over and _STAGES.get(job.state) is Stage.QUEUED:
                self._pool.submit(self._cancel_waiting, job.id)

    def _cancel_waiting(self, job_id: str) -> None:
        try:
            self._slurm.cancel_waiting(job_id)
        except MosaicError as error:
            log.warning("Job %s of a run that is over stays in the queue: %s", job_id, error)


def _name(ref: Ref) -> str:
    return f"{PREFIX}{ref.rundir.run_id}-{ref.attempt}"


def _id(ref: Ref) -> str:
    return ref.job.removeprefix(HELD)


def _is_locked(ref: Ref) -> bool:
    if not os.path.lexists(ref.rundir.owner_lock):
        return False
    try:
        lock = take_lock(ref.rundir)
    except OSError:
        return False
    if lock is not None:
        os.close(lock)
    return lock is None


def _waits_for(job: Job) -> str:
    about = job.starts[11:16] if job.starts[:1].isdigit() else ""
    return f"Slurm: {job.reason or job.state}{f', about {about}' if about else ''}"


def _ended_by(job: Job, slurm: Slurm) -> str:
    """How Slurm ended it; empty if its holder ended by itself."""
    where = f"job {job.id}{f' on {job.node}' if job.node else ''}"
    match job.state:
        case "PREEMPTED":
            return f"preempted: Slurm gave its place to a job of higher priority ({where})"
        case "TIMEOUT" | "DEADLINE":
            return f"time limit of Slurm: its job ran longer than allowed ({where})"
        case "CANCELLED":
            return f"cancelled outside MOSAIC: its job was ended with scancel ({where})"
        case "OUT_OF_MEMORY":
            return f"out of memory: Slurm ended its job ({where})"
        case "NODE_FAIL" | "BOOT_FAIL":
            return f"node failed: Slurm lost {job.node or 'its node'} (job {job.id})"
        case "FAILED":
            return f"its holder failed ({where})"
    return ""


def _wake(loop: asyncio.AbstractEventLoop, wake: Callable[[], None]) -> None:
    if not loop.is_closed():
        loop.call_soon_threadsafe(wake)
