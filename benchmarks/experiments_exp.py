"""Submitting 1,000 runs in one call, and how busy a sweep of 200 short runs keeps two cores.

python benchmarks/experiments_exp.py [--runs 1000] [--sweep 200] [--seconds 1.4] [--skip-sweep]

The program, and with it the daemon and all runs, is bound to two cores, so that the numbers mean the same on a machine
with more of them.
"""

import argparse
import json
import os
import time
from collections.abc import Callable
from pathlib import Path

from rig import Lab, lab, table, ticked_cpu_s, verdict

CORES = 2
SUBMIT_S = 5.0
BUSY = 0.9
TICKS = os.sysconf("SC_CLK_TCK")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=1000)
    parser.add_argument("--sweep", type=int, default=200)
    parser.add_argument("--seconds", type=float, default=1.4, help="that each run of the sweep computes")
    parser.add_argument("--skip-sweep", action="store_true")
    args = parser.parse_args()
    cores = sorted(os.sched_getaffinity(0))[:CORES]
    os.sched_setaffinity(0, cores)
    print(f"load before: {os.getloadavg()[0]:.1f}; cores {cores} of {os.cpu_count()}")
    with lab("--cpus", str(CORES)) as rig:
        measure_submit(rig, args.runs)
    if not args.skip_sweep:
        with lab("--cpus", str(CORES)) as rig:
            measure_sweep(rig, args.sweep, args.seconds)


def measure_submit(rig: Lab, count: int) -> None:
    """The runs wait for CPUs that one long run has: only the submit is measured, not the starts."""
    rig.submit(resources={"cpus": CORES}, steps=10_000_000, rate=1)
    document = {"worker": "toy", "base": {"steps": 1}, "seeds": list(range(count))}
    one = timed(lambda: [rig.client.submit_run(config_of(seed)) for seed in range(20)]) / 20
    before = ticked_cpu_s(rig.daemon_pid()), time.process_time()
    many = timed(lambda: rig.client.run_experiment("many", document))
    cpu = ticked_cpu_s(rig.daemon_pid()) - before[0], time.process_time() - before[1]
    again = timed(lambda: rig.client.run_experiment("many", document))
    table(
        f"Submitting {count:,} runs",
        [
            ("", "s", "ms per run", "× one at a time", "target", ""),
            ("one at a time (20 measured)", f"{one * count:.1f}", f"{one * 1e3:.1f}", "1.0", "", ""),
            row("in one call", many, count, one, f"≤ {SUBMIT_S * count / 1000:g} s", many <= SUBMIT_S * count / 1000),
            ("CPU of daemon and client", f"{cpu[0]:.1f} + {cpu[1]:.1f}", f"{sum(cpu) / count * 1e3:.2f}", "", "", ""),
            row("again: nothing is missing", again, count, one, "", None),
        ],
    )


def row(name: str, took: float, count: int, one: float, target: str, ok: bool | None) -> tuple[str, ...]:
    said = "" if ok is None else verdict(ok)
    return (name, f"{took:.2f}", f"{took / count * 1e3:.2f}", f"{took / (one * count):.2f}", target, said)


def config_of(seed: int) -> dict[str, object]:
    worker = {"module": "toy_worker.cli", "name": "toy", "config": {"steps": 1, "seed": seed}}
    return {"metadata": {"worker": worker}}


def measure_sweep(rig: Lab, count: int, seconds: float) -> None:
    """Each run computes for so many seconds; starts and ends are what may leave the cores idle."""
    base = {"steps": 2, "busy_hang_at": 1, "hang_s": seconds}
    document = {"worker": "toy", "base": base, "seeds": list(range(count))}
    start, idle, spent = time.monotonic(), idle_s(), ticked_cpu_s(rig.daemon_pid())
    for run in rig.client.run_experiment("sweep", document).runs:
        rig.client.wait_run(run.run_id)
    took = time.monotonic() - start
    occupied = sum(map(lifetime_s, rig.root.control.glob("*/exit.json"))) / (took * CORES)
    busy = 1 - (idle_s() - idle) / (took * CORES)
    spent = ticked_cpu_s(rig.daemon_pid()) - spent
    faulted = rig.client.experiment("sweep").counts.get("FAULTED", 0)
    table(
        f"A sweep of {count} runs on {CORES} cores",
        [
            ("", "value", "target", ""),
            ("took", f"{took:.0f} s", f"{count * seconds / CORES:.0f} s of computing", ""),
            ("CPU of the daemon", f"{spent:.1f} s", f"{spent / count * 1e3:.0f} ms per run", ""),
            ("cores busy", f"{busy:.0%}", f"≥ {BUSY:.0%}", verdict(busy >= BUSY)),
            ("CPU slots with a worker", f"{occupied:.0%}", "", ""),  # also counts on a machine that others keep busy
            ("runs that failed", str(faulted), "0", verdict(not faulted)),
        ],
    )


def lifetime_s(exit_file: Path) -> float:
    """How long the worker of a run lived."""
    started = json.loads(exit_file.with_name("started.json").read_text())["started_at"]
    return float(json.loads(exit_file.read_text())["ended_at"] - started)


def idle_s() -> float:
    """Seconds that the cores of this program were idle, together."""
    lines = [line.split() for line in Path("/proc/stat").read_text().splitlines()]
    cores = {f"cpu{number}" for number in os.sched_getaffinity(0)}
    return sum(int(line[4]) + int(line[5]) for line in lines if line[0] in cores) / TICKS


def timed(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


if __name__ == "__main__":
    main()
