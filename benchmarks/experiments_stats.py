"""`mosaic compare` of 100 runs with a million points each: CPU time of the daemon and the client together.

    .venv/bin/python benchmarks/experiments_stats.py [--runs 100] [--points 1_000_000] [--groups 2]

There are five files of a million points, written through RunStore.commit, and each is read as that of every fifth run:
100 files would take 8 GB. The client is a process of its own, so the import of numpy and of the client counts. Beside
it, in the same run: the bands of 2,000 points alone, and a bare `mosaic runs`.
"""

import argparse
import contextlib
import os
import resource
import shutil
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
from rig import Lab, lab, table, ticked_cpu_s, verdict

from mosaic.ingest.store import RunStore
from mosaic.model.run import RunConfig, WorkerSpec
from mosaic.model.rundir import RunDir
from mosaic.model.states import RunState
from mosaic.model.ulid import new_ulid
from mosaic.registry.registry import Registry
from mosaic.stats.bands import band_of
from mosaic.stats.traces import Trace, grid_for
from mosaic.wire import mosaic_pb2 as pb

MOSAIC = Path(sys.executable).with_name("mosaic")
METRIC = "charts/episodic_return"
FILES = 5
BATCH = 5000
MOVES = (RunState.HANDSHAKE, RunState.READY, RunState.EXECUTING, RunState.TERMINATED)
LIMIT_S = 2.5


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=100)
    parser.add_argument("--points", type=int, default=1_000_000)
    parser.add_argument("--groups", type=int, default=2)
    parser.add_argument("--client", action="store_true", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.client:
        return compare(args.runs, args.groups)
    with lab() as rig:
        rig.stop_daemon()
        fill(rig, args.points)
        rig.restart_daemon()
        client = [sys.executable, __file__, "--client", "--runs", str(args.runs), "--groups", str(args.groups)]
        pairs = [(cpu_of(rig, [str(MOSAIC), "runs"]), cpu_of(rig, client)) for _ in range(3)]
    bare, (daemon, spent) = sum(min(pair[0] for pair in pairs)), min((pair[1] for pair in pairs), key=sum)
    total, alone = daemon + spent, aggregate(args.runs, args.groups)
    target = (f"≤ {LIMIT_S} s", verdict(total <= LIMIT_S))
    table(
        f"{args.runs} runs × {args.points:,} points in {args.groups} groups, best of 3, CPU seconds",
        [
            ("", "daemon", "client", "both", "× mosaic runs", "target", ""),
            ("mosaic runs", "", "", f"{bare:.2f}", "1.0", "", ""),
            ("compare", f"{daemon:.2f}", f"{spent:.2f}", f"{total:.2f}", f"{total / bare:.1f}", *target),
            ("bands of 2,000 points alone", "", f"{alone:.2f}", "", "", "", ""),
        ],
    )
    return None


def compare(runs: int, groups: int) -> None:
    """What `mosaic compare` does after the runs are chosen, with every stored run as several ones."""
    from mosaic.client import TrainerClient
    from mosaic.present.compared_groups import RunGroup
    from mosaic.present.compared_samples import SampleReader
    from mosaic.present.compared_value import reading_for
    from mosaic.present.group_comparison import Options, compare_groups

    with TrainerClient.connect() as client:
        stored = client.list_runs().runs
        every = [stored[number % len(stored)] for number in range(runs)]
        reader = SampleReader(client, METRIC, reading_for(METRIC))
        samples = [reader.read(RunGroup(str(group), tuple(every[group::groups]))) for group in range(groups)]
        found = compare_groups(samples, METRIC, reading_for(METRIC), Options())
    assert all(group.band is not None and len(group.counted) == runs / groups for group in found.groups)


def fill(rig: Lab, points: int) -> None:
    registry = Registry.open(rig.root.registry)
    first: Path | None = None
    for number in range(FILES):
        run_id = new_ulid()
        registry.add(RunConfig(run_id, f"run {number}", "runs", "toy", WorkerSpec(module="toy_worker.cli")))
        for state in MOVES:
            registry.move(run_id, state)
        rundir = RunDir(rig.root.path / "trainer" / "runs" / run_id)
        rundir.make()
        if first is None:
            first = rundir.telemetry
            write(first, run_id, points)
        else:
            shutil.copy(first, rundir.telemetry)
            with contextlib.closing(sqlite3.connect(rundir.telemetry)) as db, db:
                db.execute("UPDATE meta SET value = ? WHERE key = 'run_id'", (run_id.encode(),))
    registry.close()


def write(path: Path, run_id: str, points: int) -> None:
    store, offset = RunStore(path, run_id), 0
    for begin in range(0, points, BATCH):
        request = pb.PublishTelemetryRequest(run_id=run_id, start=offset, end=offset + BATCH * 80)
        for i in range(begin, begin + BATCH):
            event = request.events.add(ts_ns=1_790_000_000_000_000_000 + i * 100_000)
            event.metric.names.append(METRIC)
            event.metric.values.append((i * 7919 % 1000) / 1000 + i / points)
            event.metric.step = i
        offset = store.commit(request).next_offset
    store.close(final=True)


def cpu_of(rig: Lab, command: list[str]) -> tuple[float, float]:
    """CPU seconds of the daemon and of the command."""
    pid, env = rig.daemon_pid(), {**os.environ, "MOSAIC_HOME": str(rig.root.path), "OMP_NUM_THREADS": "1"}
    before, daemon = resource.getrusage(resource.RUSAGE_CHILDREN), ticked_cpu_s(pid)
    subprocess.run(command, env=env, stdout=subprocess.DEVNULL, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    spent = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return ticked_cpu_s(pid) - daemon, spent


def aggregate(runs: int, groups: int) -> float:
    generator = np.random.default_rng(0)
    traces = [Trace.of(np.arange(2000), generator.normal(0, 1, 2000)) for _ in range(runs)]
    began = time.process_time()
    grid = grid_for(traces, 0, 1999)
    for group in range(groups):
        band_of(traces[group::groups], grid)
    return time.process_time() - began


if __name__ == "__main__":
    main()
