"""Runs on a real Slurm of two nodes on this machine: what MOSAIC adds to Slurm itself.

    python benchmarks/machines.py [--rounds 5]
    python benchmarks/machines.py --ray [--rounds 5]
    python benchmarks/machines.py --queue [--queued 500] [--running 50]
    python benchmarks/machines.py --tls [--events 20000]
    python benchmarks/machines.py --simulate [--runs 200] [--nodes 1000]

The first prints submit → first instruction beside a bare `sbatch` in the same rounds, and the CPU time of the daemon
while jobs are queued. Slurm's scheduler works once a second in these tests, so a job waits
for it between 0 and 1 s; slurmctld's log tells how long, and the last column is without that wait.
The second does the same with a real Ray, beside a bare job of its Jobs API.
The others have a fake Slurm with many nodes and a real daemon: what queued and running jobs cost it when nothing
happens; the CPU time of an event that arrives over TLS, beside one over the Unix socket; what a live run costs, and how
many events a second the daemon takes.
"""

import argparse
import asyncio
import json
import os
import re
import shutil
import statistics
import sys
import tempfile
import time
from pathlib import Path

REPO = Path(__file__).parents[1]
sys.path.insert(0, str(REPO / "tests"))

from fake_cluster import Tailers, install  # noqa: E402
from lab import Lab, alive, wait_until  # noqa: E402
from ray_cluster import PYTHON, RayCluster  # noqa: E402
from slurm_cluster import SlurmCluster  # noqa: E402

MARK = "import pathlib, sys, time; pathlib.Path(sys.argv[1]).write_text(repr(time.time()))"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--ray", action="store_true")
    parser.add_argument("--queued", type=int, default=500)
    parser.add_argument("--running", type=int, default=50)
    parser.add_argument("--queue", action="store_true")
    parser.add_argument("--tls", action="store_true")
    parser.add_argument("--events", type=int, default=20_000)
    parser.add_argument("--simulate", action="store_true")
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--nodes", type=int, default=1000)
    args = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="bench-"))
    try:
        if args.simulate or args.tls or args.queue:
            with_fake_cluster(folder, args)
        elif args.ray:
            with_ray(folder, args.rounds)
        else:
            with_slurm(folder, args)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def with_slurm(folder: Path, args: argparse.Namespace) -> None:
    cluster = SlurmCluster(folder / "c")
    try:
        cluster.start()
        lab = _lab(folder, f'conf = "{cluster.conf}"\n')
        try:
            measure_start(lab, cluster, folder, args.rounds)
            measure_queue(lab, cluster, min(args.queued, 100))
        finally:
            lab.close()
    finally:
        cluster.close()


def with_ray(folder: Path, rounds: int) -> None:
    cluster = RayCluster(Path(tempfile.mkdtemp(prefix="ray-")))  # a short path: Ray's sockets are in it
    try:
        cluster.start()
        more = f'address = "{cluster.address}"\nroot = "{folder}/node"\npython = "{PYTHON}"\n'
        lab = _lab(folder, f'engine = "ray"\n{more}')
        script = folder / "mark.py"
        script.write_text(MARK)
        try:
            took: dict[str, list[float]] = {"mosaic run": [], "Ray job": []}
            for number in range(rounds + 1):
                ours = _run(lab, script, folder / f"ours-{number}")
                bare = _ray_job(cluster, script, folder / f"bare-{number}")
                if number:  # the first uploads MOSAIC's code
                    took["mosaic run"].append(ours)
                    took["Ray job"].append(bare)
        finally:
            lab.close()
    finally:
        cluster.close()
    print(f"submit → first instruction on Ray, {rounds} rounds, load {os.getloadavg()[0]:.0f}")
    for name, found in took.items():
        print(f"  {name:12} median {statistics.median(found):.2f} s ({min(found):.2f} to {max(found):.2f})")
    added = statistics.median(took["mosaic run"]) - statistics.median(took["Ray job"])
    print(f"  added        {added * 1000:.0f} ms (aim 150 ms)")


def _ray_job(cluster: RayCluster, script: Path, mark: Path) -> float:
    began_at = time.time()
    body = {"entrypoint": f"exec {sys.executable} {script} {mark}", "entrypoint_num_cpus": 1}
    cluster.ray._ask("POST", "/api/jobs/", json.dumps(body).encode())
    wait_until(lambda: mark.exists() and mark.read_text() != "", 60)
    return float(mark.read_text()) - began_at


def _lab(folder: Path, settings: str = "") -> Lab:
    home = folder / "h"
    (home / "clusters").mkdir(parents=True)
    (home / "clusters" / "slurm.toml").write_text(f'{settings}listen = "127.0.0.1:0"\nmost_jobs = 20000\n')
    return Lab(home)


# ---- the start


def measure_start(lab: Lab, cluster: SlurmCluster, folder: Path, rounds: int) -> None:
    script = folder / "mark.py"
    script.write_text(MARK)
    bare, ours = [], []
    for number in range(rounds):
        ours.append(_run(lab, script, folder / f"ours-{number}"))
        bare.append(_sbatch(cluster, script, folder / f"bare-{number}"))
    waits = _waits(cluster)
    # Jobs are numbered in the order of the rounds: ours, bare, ours …
    own = {"ours": [waits[2 * n + 1] for n in range(rounds)], "bare": [waits[2 * n + 2] for n in range(rounds)]}
    print(f"submit → first instruction, {rounds} rounds, load {os.getloadavg()[0]:.0f}")
    medians = {}
    for name, took in (("bare", bare), ("ours", ours)):
        without = [whole - wait for whole, wait in zip(took, own[name], strict=True)]
        medians[name] = statistics.median(took), statistics.median(without)
        title = "sbatch" if name == "bare" else "mosaic run"
        spread = f"({min(took):.2f} to {max(took):.2f})"
        without_s = f"{medians[name][1]:.2f} s without the scheduler's wait"
        print(f"  {title:12} median {medians[name][0]:.2f} s {spread}, {without_s}")
    added = [ours - bare for ours, bare in zip(medians["ours"], medians["bare"], strict=True)]
    print(
        f"  added        {added[0] * 1000:.0f} ms, without the scheduler's wait {added[1] * 1000:.0f} ms (aim 150 ms)"
    )


def _waits(cluster: SlurmCluster) -> dict[int, float]:
    """For each job: seconds between its submit, or its release, and its allocation, from slurmctld's log."""
    ready: dict[int, float] = {}
    waits: dict[int, float] = {}
    form = re.compile(r"T(\d+):(\d+):([\d.]+)\] .*?(submit_batch_job|release hold|Allocate|Started).*?JobId=(\d+)")
    for line in (cluster.folder / "slurmctld.log").read_text().splitlines():
        if found := form.search(line):
            hours, minutes, seconds, what, job = found.groups()
            at = int(hours) * 3600 + int(minutes) * 60 + float(seconds)
            if what in ("Allocate", "Started"):
                waits[int(job)] = at - ready[int(job)]
            else:
                ready[int(job)] = at
    return waits


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


# ---- the queue


def measure_queue(lab: Lab, cluster: SlurmCluster, count: int) -> None:
    cluster.ask("scontrol", "update", "NodeName=nodeA,nodeB", "State=DRAIN", "Reason=benchmark")
    began_at = time.monotonic()
    runs = [lab.submit(steps=1, on="slurm") for _ in range(count)]
    wait_until(lambda: all(run.waiting_for.startswith("Slurm: ") for run in _live(lab)), 900)
    took_s = time.monotonic() - began_at
    share = _share(lab.daemon_pid(), 20)
    print(
        f"{len(runs)} queued jobs, submitted in {took_s:.0f} s: the daemon uses {share:.1%} of a core (aim 3 % at 500)"
    )


async def queue_and_run(lab: Lab, queued: int, running: int) -> None:
    """Of the fake cluster: the first jobs run and their tailers are registered, the others wait."""
    runs = await asyncio.to_thread(lambda: [lab.submit(steps=1, on="slurm") for _ in range(running + queued)])
    await asyncio.to_thread(wait_until, lambda: _placed(lab) == (queued, running), 900)
    tailers = _tailers(lab, "tls")
    for run in runs[:running]:
        await tailers.register(run)
        await tailers.publish(run, 1, 1)
    await asyncio.sleep(5)  # until nothing of the start is left
    before = _own_cpu_s(lab.daemon_pid())
    share = await asyncio.to_thread(_share, lab.daemon_pid(), 30.0)
    own = (_own_cpu_s(lab.daemon_pid()) - before) / 30
    print(
        f"{queued} queued and {running} running jobs, load {os.getloadavg()[0]:.0f}: the daemon uses {share:.1%} of a "
        f"core (aim 3 %), {own:.1%} by itself and the rest in squeue"
    )
    await tailers.close()


def _placed(lab: Lab) -> tuple[int, int]:
    """How many runs wait in the cluster's queue, and how many have been started."""
    live = _live(lab)
    waiting = sum(run.waiting_for.startswith("Slurm: ") for run in live)
    return waiting, sum(run.state == "HANDSHAKE" for run in live)


def _share(pid: int, seconds: float) -> float:
    before, at = _cpu_s(pid), time.monotonic()
    time.sleep(seconds)
    return (_cpu_s(pid) - before) / (time.monotonic() - at)


# ---- a cluster that is not there


def with_fake_cluster(folder: Path, args: argparse.Namespace) -> None:
    (folder / "bin").mkdir()
    install(folder / "bin", args.nodes, args.running if args.queue else args.runs)
    lab = _lab(folder)
    try:
        if args.queue:
            asyncio.run(queue_and_run(lab, args.queued, args.running))
        if args.tls:
            asyncio.run(compare_tls(lab, args.events))
        if args.simulate:
            asyncio.run(simulate(lab, args.runs))
    finally:
        pid = lab.daemon_pid()
        os.kill(pid, 9)  # its runs have no processes, so nothing is left
        wait_until(lambda: not alive(pid))
        lab.client.close()


def _submitted(lab: Lab, count: int) -> list:
    runs = [lab.submit(steps=1, on="slurm") for _ in range(count)]
    wait_until(lambda: all(run.state == "HANDSHAKE" for run in _live(lab)), 900)
    return runs


def _tailers(lab: Lab, over: str) -> Tailers:
    if over == "unix":
        return Tailers(f"unix:{lab.root.socket}")
    settings = (lab.root.settings).read_text()
    address = re.search(r'"nodes": *"([^"]+)"', settings)
    assert address
    return Tailers(address[1], lab.root.nodes_certificate.read_bytes())


async def compare_tls(lab: Lab, events: int) -> None:
    """The daemon's CPU time of an event, over both ways in turn, in requests of 1, 10 and 100 events."""
    [run] = _submitted(lab, 1)
    ways = {over: _tailers(lab, over) for over in ("unix", "tls")}
    pid = lab.daemon_pid()
    print(
        f"the daemon's CPU time of an event, {events} events each way, 3 rounds in turn, load {os.getloadavg()[0]:.0f}"
    )
    for size in (1, 10, 100):
        count = max(1, (events // 10 if size == 1 else events) // size)
        used: dict[str, list[float]] = {over: [] for over in ways}
        for _ in range(3):
            for over, tailers in ways.items():
                await tailers.register(run)
                before = _cpu_s(pid)
                await tailers.publish(run, count, size)
                used[over].append((_cpu_s(pid) - before) / (count * size) * 1e6)
        unix, tls = (statistics.median(used[over]) for over in ("unix", "tls"))
        print(
            f"  {size:3} events a request: Unix socket {unix:6.1f} µs, TLS {tls:6.1f} µs, × {tls / unix:.2f} (aim 1.3)"
        )
    for tailers in ways.values():
        await tailers.close()


async def simulate(lab: Lab, count: int) -> None:
    """What live runs cost when nothing happens, then how many events a second the daemon stores for all of them."""
    began_at = time.monotonic()
    runs = await asyncio.to_thread(_submitted, lab, count)
    took_s = time.monotonic() - began_at
    pid = lab.daemon_pid()
    # A connection of the daemon has a limit of streams; on a cluster every tailer has its own.
    crews = {run.run_id: crew for n in range(0, count, 8) for crew in [_tailers(lab, "tls")] for run in runs[n : n + 8]}
    for run in runs:
        await crews[run.run_id].register(run)
    print(f"{count} runs on a fake cluster, submitted and running in {took_s:.0f} s, load {os.getloadavg()[0]:.0f}")
    share = await asyncio.to_thread(_share, pid, 20.0)
    print(f"  nothing happens: {share:.1%} of a core, {share / count * 1e6:.0f} µs/s for each run; {_rss(pid):.0f} MB")
    for events, requests in ((1, 20), (10, 10), (100, 5)):
        before, at = _cpu_s(pid), time.monotonic()
        await asyncio.gather(*(crews[run.run_id].publish(run, requests, events) for run in runs))
        took_s, total = time.monotonic() - at, requests * events * count
        cpu_us = (_cpu_s(pid) - before) / total * 1e6
        print(
            f"  {events:3} events a request: {total / took_s:7.0f} events/s here, {cpu_us:5.0f} µs of CPU each: "
            f"{1e6 / cpu_us:7.0f} events/s per core, {1e4 / cpu_us:5.0f} runs of 100 events/s; {_rss(pid):.0f} MB"
        )
    for crew in set(crews.values()):
        await crew.close()


def _rss(pid: int) -> float:
    fields = Path(f"/proc/{pid}/statm").read_text().split()
    return int(fields[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6


def _live(lab: Lab) -> list:
    return [run for run in lab.client.list_runs().runs if not run.state.is_over]


def _cpu_s(pid: int) -> float:
    """The daemon's own CPU time, and that of the commands that it has waited for."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return sum(int(fields[n]) for n in (11, 12, 13, 14)) / os.sysconf("SC_CLK_TCK")


def _own_cpu_s(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


if __name__ == "__main__":
    main()
