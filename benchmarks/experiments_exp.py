"""Submitting 1,000 runs in one call, and how busy a sweep of 200 short runs keeps two cores.

python benchmarks/experiments_exp.py [--runs 1000] [--sweep 200] [--skip-sweep]
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
    parser.add_argument("--skip-sweep", action="store_true")
    args = parser.parse_args()
    print(f"load before: {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
    with lab("--cpus", str(CORES)) as rig:
        measure_submit(rig, args.runs)
    if not args.skip_sweep:
        with lab("--cpus", str(CORES)) as rig:
            measure_sweep(rig, args.sweep)


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


def measure_sweep(rig: Lab, count: int) -> None:
    """Each run computes for about two seconds; starts and ends are what may leave the cores idle."""
    document = {"worker": "toy", "base": {"steps": 2, "busy_hang_at": 1, "hang_s": 2.0}, "seeds": list(range(count))}
    start, idle = time.monotonic(), idle_s()
    for run in rig.client.run_experiment("sweep", document).runs:
        rig.client.wait_run(run.run_id)
    took = time.monotonic() - start
    occupied = sum(map(lifetime_s, rig.root.control.glob("*/exit.json"))) / (took * CORES)
    busy = 1 - (idle_s() - idle) / (took * (os.cpu_count() or 1))
    faulted = rig.client.experiment("sweep").counts.get("FAULTED", 0)
    table(
        f"A sweep of {count} runs on {CORES} cores",
        [
            ("", "value", "target", ""),
            ("took", f"{took:.0f} s", "", ""),
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
    """Seconds that the cores of the machine were idle, together."""
    fields = Path("/proc/stat").read_text().splitlines()[0].split()[1:]
    return (int(fields[3]) + int(fields[4])) / TICKS


def timed(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


if __name__ == "__main__":
    main()
