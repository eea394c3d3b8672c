"""The speed of the replay buffer and the CPU use of a blocked run's helper processes, compared with the reference.

Run with the worker's Python: envs/dreamer/bin/python benchmarks/dreamer_replay.py [--seconds 20] [--rows 40000]
    … --checkpoint-gb 10            only how long a checkpoint of so much makes the learner wait
    … --disk-gb 8 --memory-gb 1     only a replay of which all but the last part is on disk

The reference was measured on the same kind of machine in CPU-seconds, which do not depend on the load.
"""

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import numpy as np
from dreamer_worker.buffer import Buffer
from dreamer_worker.checkpoint import Counters, Epochs
from dreamer_worker.factories import make_streams
from dreamer_worker.limiter import SamplesPerInsert
from dreamer_worker.replay import Replay, ReplayService, Vault
from dreamer_worker.rpc import Client, Server

ENVS, LENGTH, BATCH = 8, 65, 16
REFERENCE = {"inserts": 9_197, "batches": 255, "updates": 2_334, "bytes": 15_016, "idle": 1.15}

# A step of Crafter with what a size1m agent keeps for it. The reference keeps latents in single precision, one-hot.
STEP = {
    "image": ("uint8", (64, 64, 3)),
    "action": ("int32", ()),
    "reward": ("float32", ()),
    "is_first": ("bool", ()),
    "is_last": ("bool", ()),
    "is_terminal": ("bool", ()),
    "dyn/deter": ("float16", (512,)),
    "dyn/stoch": ("uint8", (32,)),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=40_000, help="steps to insert")
    parser.add_argument("--seconds", type=float, default=20.0, help="how long to observe the blocked run")
    parser.add_argument("--checkpoint-gb", type=float, default=0.0, help="only the checkpoint of a replay of this size")
    parser.add_argument("--disk-gb", type=float, default=0.0, help="only a replay with that much on disk")
    parser.add_argument("--memory-gb", type=float, default=1.0, help="beside it in memory")
    args = parser.parse_args()
    if args.checkpoint_gb:
        measure_checkpoint(args.checkpoint_gb)
        return
    if args.disk_gb:
        measure_disk(args.memory_gb, args.disk_gb)
        return
    rows = measure_buffer(args.rows)
    rows.append(("inserts, whole replay process behind RPC", *measure_service(args.rows // 4)))
    rows.append(("helpers of a blocked 4-env run, cores", *measure_idle(args.seconds)))
    print_table(rows)


def measure_buffer(count: int) -> list[tuple]:
    rng = np.random.default_rng(0)
    steps = {key: make_rows(rng, dtype, shape) for key, (dtype, shape) in STEP.items()}
    streams = [f"env{index}" for index in range(ENVS)]
    buffer = Buffer({key: (value.dtype.str, value.shape[1:]) for key, value in steps.items()}, LENGTH, int(2e9))
    before, started = resident(), time.process_time()
    for turn in range(count // ENVS):
        buffer.insert(steps, streams, [turn] * ENVS)
    inserts = count / (time.process_time() - started)
    size = (resident() - before) / buffer.steps
    batches, batch = rate_of(lambda: buffer.sample(BATCH))
    latents = {key: batch[key][:, 1:] for key in ("dyn/deter", "dyn/stoch")}
    updates, _ = rate_of(lambda: buffer.update(batch["stepid"][:, 1:], latents))
    return [
        ("inserts per CPU-s", inserts, REFERENCE["inserts"], 5.0, inserts / REFERENCE["inserts"]),
        ("batches of 16 × 65 sampled per CPU-s", batches, REFERENCE["batches"], 1.0, batches / REFERENCE["batches"]),
        ("latent write-backs of 16 × 64 per CPU-s", updates, REFERENCE["updates"], 1.0, updates / REFERENCE["updates"]),
        ("memory per step, bytes (resident)", size, REFERENCE["bytes"], 1.0, REFERENCE["bytes"] / size),
    ]


def filled(gigabytes: float, **options) -> Buffer:
    """A full buffer of that size."""
    rng = np.random.default_rng(0)
    steps = {key: make_rows(rng, dtype, shape) for key, (dtype, shape) in STEP.items()}
    spaces = {key: (value.dtype.str, value.shape[1:]) for key, value in steps.items()}
    buffer = Buffer(spaces, LENGTH, int(gigabytes * 1e9) - options.get("disk_bytes", 0), **options)
    for turn in range(buffer.blocks * buffer.block_rows // ENVS + 1):
        buffer.insert(steps, [f"env{index}" for index in range(ENVS)], [turn] * ENVS)
    return buffer


def measure_checkpoint(gigabytes: float) -> None:
    """How long the learner waits: for the snapshot, and for a batch while the files are written."""
    replay = Replay(lambda spaces: None, SamplesPerInsert(0, 1, 1))
    replay.buffers["train"] = buffer = filled(gigabytes)
    waits: list[float] = []
    with tempfile.TemporaryDirectory() as folder:
        started = time.perf_counter()
        snapshot = replay.snapshot()
        taken = time.perf_counter() - started
        vault = Vault(Epochs(folder))
        writing = threading.Thread(target=vault.write, args=(replay, snapshot, 1))
        writing.start()
        while writing.is_alive():
            asked = time.perf_counter()
            buffer.sample(BATCH)
            waits.append(time.perf_counter() - asked)
        spent = time.perf_counter() - started
    print(f"a checkpoint of {gigabytes:g} GB ({buffer.steps:,} steps): {spent:.1f} s to write, the learner goes on")
    print(
        f"it waits {1e3 * taken:.0f} ms for the snapshot, then for a batch at most {1e3 * max(waits):.0f} ms", end=" "
    )
    print(f"(median {1e3 * float(np.median(waits)):.1f} ms, {len(waits)} batches)")


def measure_disk(memory_gb: float, disk_gb: float) -> None:
    before = resident()
    with tempfile.TemporaryDirectory(dir=".") as folder:
        started, clock = time.process_time(), time.perf_counter()
        buffer = filled(memory_gb + disk_gb, disk_bytes=int(disk_gb * 1e9), folder=Path(folder))
        inserts = buffer.steps / (time.process_time() - started), buffer.steps / (time.perf_counter() - clock)
        clock = time.perf_counter()
        batches, _ = rate_of(lambda: buffer.sample(BATCH), least_s=5.0)
        spent = time.perf_counter() - clock
        print(f"{memory_gb:g} GB in memory and {disk_gb:g} GB on disk: {buffer.steps:,} steps, drawn uniformly")
        print(
            f"inserts {inserts[0]:,.0f} per CPU-s, {inserts[1]:,.0f} per s; batches {batches:,.0f} per CPU-s", end=", "
        )
        print(f"in {spent:.1f} s of wall time; resident {(resident() - before) / 1e9:.2f} GB")


def measure_service(count: int) -> tuple[float, int, float, float]:
    """Inserts per CPU-second of the replay process, everything included: receiving, unpacking, answering."""
    with tempfile.TemporaryDirectory() as folder:
        script = f"""
import sys; sys.path.insert(0, {str(Path(__file__).parent)!r})
from dreamer_replay import serve
serve({folder!r})
"""
        process = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True)
        try:
            client = Client(process.stdout.readline().strip(), "benchmark", max_inflight=8)
            inserts = insert_remotely(client, process.pid, count)
        finally:
            process.kill()
            process.wait()
            process.stdout.close()
    return inserts, REFERENCE["inserts"], 0.0, inserts / REFERENCE["inserts"]


def insert_remotely(client: Client, pid: int, count: int) -> float:
    rng = np.random.default_rng(0)
    steps = {key: make_rows(rng, dtype, shape) for key, (dtype, shape) in STEP.items()}
    streams = [f"env{index}" for index in range(ENVS)]
    client.ask("insert", steps, streams, np.zeros(ENVS, np.int64))
    started = cpu_seconds(pid)
    for turn in range(1, count // ENVS):
        client.call("insert", steps, streams, np.full(ENVS, turn))
    client.drain()
    return count / (cpu_seconds(pid) - started)


def serve(folder: str) -> None:
    server = Server("0", "benchmark")
    replay = Replay(lambda spaces: Buffer(spaces, LENGTH, int(2e9)), SamplesPerInsert(0, 1, 1))
    ReplayService(replay, make_streams(replay), server, Vault(Epochs(folder)))
    server.start()
    print(server.address, flush=True)
    signal.pause()


def measure_idle(seconds: float) -> tuple[float, float, float, float]:
    """Four envs wait for an agent that does not answer: what logger, replay, envs and launcher use together."""
    with tempfile.TemporaryDirectory() as folder:
        config = {
            **{"run_id": "BENCH", "env": "dummy_image", "random_agent": True, "envs": 4, "eval_envs": 0},
            **{"steps": 10**9, "replay_gb": 0.2, "logdir": folder, "outputs": ["jsonl"], "log_every_s": 5.0},
        }
        (Path(folder) / "config.json").write_text(json.dumps(config))
        command = [sys.executable, "-m", "dreamer_worker.cli", "--config", f"{folder}/config.json"]
        run = subprocess.Popen(command, stdout=subprocess.DEVNULL, start_new_session=True)
        try:
            used = watch(run.pid, Path(folder) / "counters.bin", seconds)
        finally:
            os.killpg(run.pid, signal.SIGKILL)
            run.wait()
    return used, REFERENCE["idle"], REFERENCE["idle"] / 0.05, REFERENCE["idle"] / max(1e-9, used)


def watch(launcher: int, counters: Path, seconds: float) -> float:
    while not counters.exists() or Counters(counters)["env_steps"] < 200:
        time.sleep(0.1)
    roles = children_of(launcher)
    os.kill(roles.pop("agent"), signal.SIGSTOP)
    time.sleep(2)  # pending work finishes
    helpers = [launcher, *roles.values()]
    before = sum(map(cpu_seconds, helpers))
    time.sleep(seconds)
    return (sum(map(cpu_seconds, helpers)) - before) / seconds


def children_of(pid: int) -> dict[str, int]:
    found = {}
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        for child in map(int, task.read_text().split()):
            found[Path(f"/proc/{child}/cmdline").read_bytes().split(b"\0")[-2].decode()] = child
    return found


def cpu_seconds(pid: int) -> float:
    # From the scheduler, in nanoseconds: the ticks of /proc/pid/stat are too coarse for a sleeping process.
    return sum(int(path.read_text().split()[0]) for path in Path(f"/proc/{pid}/task").glob("*/schedstat")) / 1e9


def rate_of(work, least_s: float = 2.0):
    """Calls per CPU-second, and the result of the last one."""
    calls, started, result = 0, time.process_time(), None
    while time.process_time() - started < least_s:
        result = work()
        calls += 1
    return calls / (time.process_time() - started), result


def make_rows(rng: np.random.Generator, dtype: str, shape: tuple[int, ...]) -> np.ndarray:
    return rng.integers(0, 2, (ENVS, *shape)).astype(dtype)


def resident() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def print_table(rows: list[tuple]) -> None:
    print(f"{'':44}{'ours':>12}{'reference':>12}{'× better':>10}{'target':>9}")
    for name, ours, reference, target, ratio in rows:
        mark = "" if not target else "ok" if ratio >= target else "MISSED"
        wanted = f"≥ {target:.1f}" if target else ""
        print(f"{name:44}{ours:12,.4g}{reference:12,.4g}{ratio:10.2f}{wanted:>9} {mark}")


if __name__ == "__main__":
    main()
