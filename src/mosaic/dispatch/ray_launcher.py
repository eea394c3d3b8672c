"""Runs the holders as jobs of Ray, whose nodes share no file system with this machine.

A job is named by run and attempt, and Ray refuses a second one of that name. The process that it starts
(tail/arrival.py) takes the launch from the daemon, which hands out each attempt once, and becomes the holder. From then
on the files of the attempt on this machine are what its tailer reports.
"""

import asyncio
import json
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
from mosaic.dispatch.local_launcher import LocalLauncher, take_lock, write_launch
from mosaic.engines.cluster import NODE
from mosaic.engines.node_code import node_code
from mosaic.engines.ray import Ray, RayJob, RayJobSpec
from mosaic.model import durable
from mosaic.model.end_proof import of_attempt, own_launch
from mosaic.model.errors import MosaicError
from mosaic.model.failpoints import failpoint
from mosaic.model.held import HIDDEN
from mosaic.model.node_paths import TICKET

log = logging.getLogger(__name__)
NEW = "new "  # before the name of a job that Ray has not been given yet
FORGOTTEN_S = 90.0  # how long a job must be unknown to Ray: when its head is killed, runs live for about a minute
AGAIN_S = 5.0  # between two requests to stop a job
SENDING_S = 120  # after the grace period, for the last lines and files, before Ray kills the tailer
DELETE_AFTER_S = 15.0  # after a job has ended
LARGEST_LOG = 64 << 10
_START_TIMEOUT = "JOB_SUPERVISOR_ACTOR_START_TIMEOUT"
_LOST = ("JOB_SUPERVISOR_ACTOR_DIED", "JOB_SUPERVISOR_ACTOR_UNKNOWN_FAILURE")
_STAGES = {
    "PENDING": Stage.QUEUED,
    "RUNNING": Stage.RUNNING,
    **dict.fromkeys(("STOPPED", "SUCCEEDED", "FAILED"), Stage.ENDED),
}


class RayLauncher:
    """A `Launcher`. Requests to Ray are made in threads."""

    def __init__(
        self,
        ray: Ray,
        local: LocalLauncher,
        clock: Callable[[], float] = time.monotonic,
        cpu_of: Callable[[str], float | None] = lambda _: None,
    ) -> None:
        """`cpu_of`: the CPU seconds of a run, as its node reports them."""
        self._cpu_of = cpu_of
        self._ray = ray
        self._local = local
        self._jobs: JobWatch[RayJob] = JobWatch(ray, self._delete_ended)
        self._now = clock
        self._pool = ThreadPoolExecutor(4, f"ray-{ray.cluster.name}")
        self._changed_at: dict[str, float] = {}  # job name → when this daemon changed it: older answers do not count
        self._absent_since: dict[str, float] = {}
        self._stopped_at: dict[str, float] = {}
        self._over: dict[str, float | None] = {}  # jobs of runs that are over → when they were first seen ended

    # ---- the start

    def submit(self, ref: Ref, launch: dict[str, Any]) -> str:
        # A process of an older attempt may have taken its launch in this moment: then it runs, or ran.
        earlier = durable.read_json(ref.rundir.started)
        if earlier is None and os.path.lexists(ref.rundir.started):
            raise MosaicError(f"{ref.rundir.started} cannot be read: its worker may have been started on a node.")
        if earlier and earlier.get("attempt") != ref.attempt:
            raise MosaicError(f"Attempt {earlier.get('attempt')} of it may have started its worker on a node.")
        write_launch(ref.rundir, launch)
        failpoint("far.queued")
        return f"{NEW}{_name(ref)}"

    def begin(self, ref: Ref) -> str:
        launch = own_launch(ref.rundir)
        if launch.get("attempt") != ref.attempt:
            raise MosaicError(f"launch.json of run {ref.rundir.run_id} is not the one of attempt {ref.attempt}.")
        package = self._ray.ensure_package(*node_code())
        self._ray.submit(_spec(ref, launch, package, self._ray.cluster.name))
        failpoint("far.released")
        self._changed_at[_name(ref)] = self._now()
        return _name(ref)

    def is_pending(self, ref: Ref) -> bool:
        return ref.job.startswith(NEW)

    def find(self, ref: Ref) -> str | None:
        # Nothing is given to Ray before the name is recorded, so this can be repeated.
        return f"{NEW}{_name(ref)}" if own_launch(ref.rundir).get("attempt") == ref.attempt else None

    # ---- what is known

    def look(self, ref: Ref) -> Sight:
        name = _name(ref)
        newest = self._jobs.newest(self._changed_at.get(name, 0.0))
        if newest is None or newest.problem:
            self._absent_since.pop(name, None)
            return Sight(Stage.UNKNOWN, newest.problem if newest else "")
        job = newest.by_name.get(name)
        if job is None and self.is_pending(ref):
            return Sight(Stage.QUEUED, "Ray: not submitted yet")
        if job is None:
            self._absent_since.setdefault(name, self._now())
            return Sight(Stage.ABSENT)
        self._absent_since.pop(name, None)
        sight = _sight(job)
        has_launch = _may_be_started(ref)
        # Its process may still ask for the launch in vain: until it has taken it, nothing of the run is started.
        if sight.stage is Stage.RUNNING and not has_launch:
            return Sight(Stage.STARTING, "", sight.node)
        # Ray starts no job twice: the answer is older than the start.
        if sight.stage is Stage.QUEUED and has_launch:
            return Sight(Stage.RUNNING, "", sight.node)
        return sight

    def lives(self, ref: Ref, started: Mapping[str, Any]) -> bool:
        # The worker could not write exit.json where its control files are hidden. Elsewhere Ray must confirm it.
        is_hidden = HIDDEN in str(started.get("held_by", ""))
        return not is_hidden and self.look(ref).stage not in (Stage.ENDED, Stage.ABSENT, Stage.LOST)

    def room(self) -> str | None:
        newest = self._jobs.newest()
        if newest is None or newest.problem:
            return f"an answer of Ray ({newest.problem})" if newest else None
        jobs = sum(_STAGES.get(job.status) is not Stage.ENDED for job in newest.by_name.values())
        most = self._ray.cluster.most_jobs
        return f"a free place: {jobs} jobs of runs are in Ray, the most that are allowed" if jobs >= most else ""

    def watch(self, ref: Ref, wake: Callable[[], None]) -> None:
        loop = asyncio.get_running_loop()
        self._jobs.watch(_name(ref), lambda: _wake(loop, wake))

    def cpu_s(self, ref: Ref) -> float | None:
        return self._cpu_of(ref.rundir.run_id)

    # ---- the end

    def stop(self, ref: Ref, how: Stop = Stop.TERM) -> bool:
        # Ray knows only SIGTERM: there is no autopsy. And it does not stop a job that waits, but the daemon gives no
        # launch to a run that is to be cancelled.
        name, now = _name(ref), self._now()
        if now - self._stopped_at.get(name, -AGAIN_S) >= AGAIN_S:
            self._stopped_at[name] = now
            self._pool.submit(self._stop, name)
        return how is Stop.AUTOPSY or not _may_be_started(ref)

    def _stop(self, name: str) -> None:
        try:
            self._ray.stop(name)
            self._changed_at[name] = self._now()
        except MosaicError as error:
            log.info("Job %s could not be stopped yet: %s", name, error)

    def fence(self, ref: Ref) -> int | None:
        # Nobody on this machine holds it. The daemon gives a launch to its newest attempt only: that is the fence.
        return take_lock(ref.rundir) if self.look(ref).stage in (Stage.ENDED, Stage.ABSENT) else None

    def settle(self, ref: Ref, started: dict[str, Any]) -> bool:
        stage = self.look(ref).stage
        if stage is Stage.ABSENT:
            since = self._absent_since.get(_name(ref))
            return not started or (since is not None and self._now() - since >= FORGOTTEN_S)
        return stage is Stage.ENDED

    def drain(self, ref: Ref) -> None:
        # Only what was brought home can be read here; its own tailer sends the rest, or it is lost with the node.
        if of_attempt(durable.read_json(ref.rundir.exit), ref.attempt) and ref.rundir.stdout.exists():
            self._local.tail(ref.rundir)

    def forget(self, ref: Ref) -> None:
        name = _name(ref)
        self._jobs.forget(name)
        for kept in (self._changed_at, self._absent_since, self._stopped_at):
            kept.pop(name, None)
        self._over[name] = None
        self._jobs.newest()  # ask on for a while

    def keep_log(self, ref: Ref) -> None:
        try:
            text = self._ray.log(_name(ref))[-LARGEST_LOG:]
            durable.write_bytes(ref.rundir.holder_log, text.encode(errors="replace"))
        except (MosaicError, OSError) as error:
            log.info("The log of job %s cannot be kept: %s", _name(ref), error)

    def _delete_ended(self, newest: Jobs[RayJob]) -> None:
        """Ray keeps ended jobs for ever, and sends all of them with every answer."""
        ended = [name for name, job in newest.by_name.items() if _STAGES.get(job.status) is Stage.ENDED]
        for name in [name for name in ended if name in self._over]:
            since = self._over[name]
            if since is None:
                since = self._over[name] = self._now()
            # Not at once: Ray itself would write it again, as one whose supervisor has died.
            if self._now() - since >= DELETE_AFTER_S:
                del self._over[name]
                self._pool.submit(self._delete, name)
            self._jobs.newest()  # ask on until it is gone

    def _delete(self, name: str) -> None:
        try:
            self._ray.delete(name)
        except MosaicError as error:
            log.info("Job %s stays in Ray's list: %s", name, error)


def _may_be_started(ref: Ref) -> bool:
    """Whether the launch of this attempt was taken. A started.json that cannot be read counts as its own."""
    found = durable.read_json(ref.rundir.started)
    return os.path.lexists(ref.rundir.started) if found is None else bool(of_attempt(found, ref.attempt))


def _spec(ref: Ref, launch: Mapping[str, Any], package: str, cluster: str) -> RayJobSpec:
    wants, node = launch["resources"], launch["node"]
    ticket = {
        "run_id": ref.rundir.run_id,
        "attempt": ref.attempt,
        "area": ref.rundir.path.parent.name,
        "ticket": node["ticket"],
        "root": node["root"],
        "job": _name(ref),
        **launch["daemon"],
    }
    if node["environments"] == NODE and node["worker"]:
        place = f"{cluster}:{wants['partition']}" if wants["partition"] else cluster
        ticket |= {"worker": node["worker"], "install": f"mosaic worker install {node['worker']} --on {place}"}
    variables = {
        TICKET: json.dumps(ticket),
        "RAY_JOB_STOP_WAIT_TIME_S": str(math.ceil(launch["grace_s"]) + SENDING_S),
    }
    return RayJobSpec(
        name=_name(ref),
        entrypoint=f"exec {shlex.quote(node['python'] or sys.executable)} -m mosaic.tail.arrival",
        package=package,
        variables=variables,
        about={"mosaic_run": ref.rundir.run_id, "mosaic_attempt": str(ref.attempt)},
        cpus=wants["cpus"],
        gpus=wants["gpus"],
        memory_mb=wants["memory_mb"],
        resource=wants["partition"],
    )


def _sight(job: RayJob) -> Sight:
    stage = _STAGES.get(job.status, Stage.RUNNING)
    if job.error_type in _LOST:
        return Sight(Stage.LOST, f"node failed: Ray lost {job.node or 'its node'} ({_first_line(job)})", job.node)
    if job.error_type == _START_TIMEOUT:
        return Sight(stage, f"Ray had no place for it in time ({_first_line(job)})", job.node, retry=True)
    # With an exit code it ran and gave up, and would do so again.
    retry = False if job.status == "FAILED" and job.exit_code is not None else None
    return Sight(stage, _waits_for(job) if stage is Stage.QUEUED else _ended_by(job), job.node, retry)


def _waits_for(job: RayJob) -> str:
    return "Ray: CPUs, GPUs, memory, or the setup of its node" if "waiting" in job.message else "Ray: PENDING"


def _ended_by(job: RayJob) -> str:
    """How Ray ended it; empty if its holder ended by itself."""
    if job.status == "STOPPED":
        return f"cancelled outside MOSAIC: its job was stopped in Ray (job {job.name})"
    if job.status != "FAILED" or (job.exit_code is not None and job.exit_code < 0):
        return ""  # a signal: the holder was killed
    if job.exit_code is not None:
        lines = [line for line in job.message.splitlines() if line.strip()]
        return f"its holder failed with exit code {job.exit_code} (job {job.name}): {lines[-1][:300] if lines else ''}"
    return f"Ray ended its job: {_first_line(job)} (job {job.name})"


def _first_line(job: RayJob) -> str:
    return (job.message.strip().splitlines() or [job.error_type])[0][:300]


def _name(ref: Ref) -> str:
    return f"{PREFIX}{ref.rundir.run_id}-{ref.attempt}"


def _wake(loop: asyncio.AbstractEventLoop, wake: Callable[[], None]) -> None:
    if not loop.is_closed():
        loop.call_soon_threadsafe(wake)
