"""The speed of the replay buffer and the CPU use of a blocked run's helper processes, compared with the reference.

Run with the worker's Python: envs/dreamer/bin/python benchmarks/dreamer_replay.py [--seconds 20] [--rows 40000]

The reference was measured on the same kind of machine in CPU-seconds, which do not depend on the load.
"""

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from dreamer_worker.buffer import Buffer
from dreamer_worker.checkpoint import Counters, Epochs
from dreamer_worker.factories import make_streams
from dreamer_worker.limiter import SamplesPerInsert
from dreamer_worker.replay import Replay, ReplayService
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
    args = parser.parse_args()
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
        ("inserts per CPU-s", inserts, REFERENCE["inserts"], 2.0, inserts / REFERENCE["inserts"]),
        ("batches of 16 × 65 sampled per CPU-s", batches, REFERENCE["batches"], 1.0, batches / REFERENCE["batches"]),
        ("latent write-backs of 16 × 64 per CPU-s", updates, REFERENCE["updates"], 1.0, updates / REFERENCE["updates"]),
        ("memory per step, bytes (resident)", size, REFERENCE["bytes"], 1.0, REFERENCE["bytes"] / size),
    ]


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
    ReplayService(replay, make_streams(replay), server, Epochs(folder))
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
