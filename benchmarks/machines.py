"""Runs on a real Slurm of two nodes on this machine: what MOSAIC adds to Slurm itself.

    python benchmarks/machines.py [--rounds 5] [--queued 100]

Prints submit → first instruction beside a bare `sbatch` in the same rounds, and the CPU time of the daemon while jobs
are queued and nothing happens.
"""

import argparse
import os
import shutil
import statistics
import sys
import tempfile
import time
from pathlib import Path

REPO = Path(__file__).parents[1]
sys.path.insert(0, str(REPO / "tests"))

from lab import Lab, wait_until  # noqa: E402
from slurm_cluster import SlurmCluster  # noqa: E402

MARK = "import pathlib, sys, time; pathlib.Path(sys.argv[1]).write_text(repr(time.time()))"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--queued", type=int, default=100)
    args = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="bench-"))
    cluster = SlurmCluster(folder / "c")
    home = folder / "h"
    (home / "clusters").mkdir(parents=True)
    try:
        cluster.start()
        (home / "clusters" / "slurm.toml").write_text(
            f'conf = "{cluster.conf}"\nlisten = "127.0.0.1:0"\nmost_jobs = 5000\n'
        )
        lab = Lab(home)
        try:
            measure_start(lab, cluster, folder, args.rounds)
            measure_queue(lab, cluster, args.queued)
        finally:
            lab.close()
    finally:
        cluster.close()
        shutil.rmtree(folder, ignore_errors=True)


def measure_start(lab: Lab, cluster: SlurmCluster, folder: Path, rounds: int) -> None:
    script = folder / "mark.py"
    script.write_text(MARK)
    bare, ours = [], []
    for number in range(rounds):
        ours.append(_run(lab, script, folder / f"ours-{number}"))
        bare.append(_sbatch(cluster, script, folder / f"bare-{number}"))
    added = statistics.median(ours) - statistics.median(bare)
    print(f"submit → first instruction, {rounds} rounds, load {os.getloadavg()[0]:.0f}")
    print(f"  sbatch       median {statistics.median(bare):.2f} s ({min(bare):.2f} to {max(bare):.2f})")
    print(f"  mosaic run   median {statistics.median(ours):.2f} s ({min(ours):.2f} to {max(ours):.2f})")
    print(f"  added        {added * 1000:.0f} ms (aim 150 ms)")


def _run(lab: Lab, script: Path, mark: Path) -> float:
    began_at = time.time()
    run = lab.submit_worker({"script": str(script), "arguments": [str(mark)]}, on="slurm")
    wait_until(lambda: mark.exists() and mark.read_text() != "", 60)
    lab.wait_until_over(run)
    return float(mark.read_text()) - began_at


def _sbatch(cluster: SlurmCluster, script: Path, mark: Path) -> float:
    began_at = time.time()
    cluster.ask("sbatch", "-o", "/dev/null", "--wrap", f"exec {sys.executable} {script} {mark}")
    wait_until(lambda: mark.exists() and mark.read_text() != "", 60)
    return float(mark.read_text()) - began_at


def measure_queue(lab: Lab, cluster: SlurmCluster, count: int) -> None:
    cluster.ask("scontrol", "update", "NodeName=nodeA,nodeB", "State=DRAIN", "Reason=benchmark")
    began_at = time.monotonic()
    runs = [lab.submit(steps=1, on="slurm") for _ in range(count)]
    wait_until(lambda: all(run.waiting_for.startswith("Slurm: ") for run in _live(lab)), 600)
    took_s = time.monotonic() - began_at
    pid = lab.daemon_pid()
    before, at = _cpu_s(pid), time.monotonic()
    time.sleep(20)
    share = (_cpu_s(pid) - before) / (time.monotonic() - at)
    print(
        f"{len(runs)} queued jobs, submitted in {took_s:.0f} s: the daemon uses {share:.1%} of a core (aim 3 % at 500)"
    )


def _live(lab: Lab) -> list:
    return [run for run in lab.client.list_runs().runs if not run.state.is_over]


def _cpu_s(pid: int) -> float:
    """The daemon's own CPU time, and that of the commands that it has waited for."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return sum(int(fields[n]) for n in (11, 12, 13, 14)) / os.sysconf("SC_CLK_TCK")


if __name__ == "__main__":
    main()
