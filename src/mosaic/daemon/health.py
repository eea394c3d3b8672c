"""The daemon's health report: what `mosaic daemon status` shows."""

import asyncio
import os
import shutil
import sqlite3
from collections.abc import Mapping
from pathlib import Path

from mosaic import __version__
from mosaic.daemon.registry_care import WHAT_TO_DO
from mosaic.daemon.trainer import Trainer
from mosaic.dispatch.gpus import Gpus
from mosaic.model import procfs
from mosaic.model.errors import StoreFailed
from mosaic.model.states import RunState
from mosaic.wire import mosaic_pb2 as pb


async def report_health(trainer: Trainer) -> pb.Health:
    """Never an error because of the registry: `daemon status` must show it, and `daemon stop` must work."""
    problem = await trainer.registry_problem()
    try:
        health = await _report_runs(trainer)
    except (sqlite3.DatabaseError, StoreFailed) as error:
        health = pb.Health()
        problem = problem or f"The registry cannot be read: {error}. {WHAT_TO_DO}"
    problem = "; ".join(filter(None, (trainer.ingest.problem, problem)))
    about = pb.Health(
        healthy=not problem,
        problem=problem,
        pid=os.getpid(),
        version=__version__,
        started_at=trainer.started_at,
        addresses=trainer.endpoints.addresses,
        root=str(trainer.root.path),
        max_runs=trainer.dispatcher.max_runs,
        cpus=trainer.dispatcher.machine.cpus,
        memory_mb=trainer.dispatcher.machine.memory_mb,
        disk_free_bytes=await asyncio.to_thread(_free_bytes, trainer.root.path),
    )
    about.MergeFrom(health)
    return about


async def _report_runs(trainer: Trainer) -> pb.Health:
    """The part that the registry knows."""
    owners = await trainer.registry.do(lambda r: r.gpu_owners())
    drained = await trainer.registry.do(lambda r: r.drained())
    roots = set(trainer.local.roots())
    live = await trainer.registry.do(lambda r: r.live())
    holders = trainer.dispatcher.holders(live)
    # In a thread, because it asks the driver, which may be slow.
    gpus = await asyncio.to_thread(_report_gpus, trainer.dispatcher.gpus, owners, drained, roots)
    return pb.Health(
        gpus=gpus,
        live_runs=len(live),
        cpus_requested=sum(run.resources.cpus for run in holders),
        memory_mb_requested=sum(run.resources.memory_mb for run in holders),
        waiting_runs=sum(run.state is RunState.INIT for run in live),
    )


def _report_gpus(gpus: Gpus, owners: Mapping[str, str], drained: Mapping[str, str], roots: set[int]) -> list[pb.Gpu]:
    """Every GPU with the run that owns it, or with the reason why no run can get it."""
    report = []
    for gpu in gpus.all:
        others = gpus.foreign_pids(gpu.uuid, lambda pid: procfs.has_ancestor(pid, roots))
        blocked = f"used by process {others[0]} of another program" if others else ""
        if gpu.uuid in drained:
            blocked = f"drained: {drained[gpu.uuid]}"
        report.append(pb.Gpu(uuid=gpu.uuid, name=gpu.name, owner=owners.get(gpu.uuid, ""), blocked=blocked))
    return report


def _free_bytes(folder: Path) -> int:
    try:
        return shutil.disk_usage(folder).free
    except OSError:  # the folder is gone; the daemon reports that elsewhere
        return 0
