"""Whether the learner is busy: a whole run, `--script parallel`, observed from outside.

    python benchmarks/dreamer_system.py                                      Crafter, 16 envs, 12m, ratio 256, 4 minutes
    python benchmarks/dreamer_system.py --env atari100k_boxing --minutes 6 --metrics boxing.jsonl     and keep its lines
    python benchmarks/dreamer_system.py --env dummy_image --size debug --envs 2 --batch 4 --length 8 --ratio 8 \\
        --replay-gb 0.05 --minutes 1 --settle-s 5 --no-alone                 a quick test on a small machine

1. The same update alone, on random batches of the env's shapes: its milliseconds. (The run reuses what this
   compiles; --no-alone skips it.)
2. The run, from when it learns and has settled: a line every few seconds, in case the benchmark is interrupted.
3. A table: updates/s, env steps/s; busy by the learner's own clock (1 - the share in which it waited for a batch) and
   by the device (updates/s x milliseconds alone); where each process's time goes; cores and memory.

Reports and checkpoints are disabled: both pause the learner for a moment, every few minutes in a real run.

It needs the worker's packages (portal, msgpack, cloudpickle, psutil, pillow; crafter or ale-py and gymnasium for their
envs) and a JAX for the device. On a machine without a package index put them, unpacked, on PYTHONPATH:
`uv pip install --target FOLDER --python-version 3.12 --python-platform x86_64-manylinux_2_28 --no-deps …` with that
machine's Python; JAX and numpy are taken from the machine itself. Nothing is installed there: workers/dreamer_worker
and sdk/src of the checkout are put on the path here.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
PATHS = [str(ROOT / "workers" / "dreamer_worker"), str(ROOT / "sdk" / "src"), str(ROOT / "benchmarks")]
EVERY_S = 5.0
NEVER_S = 1e6


def config_of(args: argparse.Namespace, folder: str) -> dict[str, Any]:
    return {
        **{"run_id": "BENCH", "script": "parallel", "logdir": folder, "outputs": ["jsonl"], "steps": 10**9},
        **{"env": args.env, "size": args.size, "envs": args.envs, "eval_envs": 0, "train_ratio": args.ratio},
        **{"batch_size": args.batch, "batch_length": args.length, "replay_gb": args.replay_gb},
        **{"actor_batch": args.actor_batch, "random_agent": args.random_agent},
        **{"log_every_s": EVERY_S, "report_every_s": NEVER_S, "save_every_s": NEVER_S},
        **{key: json.loads(value) for key, _, value in (change.partition("=") for change in args.set)},
    }


ALONE = """
import json, statistics, sys
from argparse import Namespace
from dreamer_learner import timed
from dreamer_worker.config import DreamerConfig
from dreamer_worker.factories import make_agent
config = DreamerConfig.from_dict(json.loads(sys.argv[1])).resolved()
args = Namespace(batch=config.batch_size, length=config.batch_length, updates=30, repeats=3, warmup=5)
times, first = timed(make_agent(config), args)
print(statistics.median(times), first)
"""


def measure_alone(config: dict[str, Any], variables: dict[str, str], limit_s: float) -> float | None:
    """Milliseconds of the update without the rest of the run."""
    command = [sys.executable, "-c", ALONE, json.dumps(config)]
    try:
        found = subprocess.run(command, env=variables, stdout=subprocess.PIPE, text=True, timeout=limit_s, check=True)
    except subprocess.SubprocessError as error:
        print(f"the update alone could not be measured: {error}", flush=True)
        return None
    ms, first = map(float, found.stdout.split()[-2:])
    print(f"the update alone: {ms:.2f} ms; {first:.0f} s to the first", flush=True)
    return ms


@contextmanager
def running(config: dict[str, Any], variables: dict[str, str]) -> Iterator[subprocess.Popen[bytes]]:
    path = Path(config["logdir"]) / "config.json"
    path.write_text(json.dumps(config))
    command = [sys.executable, "-m", "dreamer_worker.cli", "--config", str(path)]
    run = subprocess.Popen(command, env=variables, stdout=subprocess.DEVNULL, start_new_session=True)
    try:
        yield run
    finally:
        run.send_signal(signal.SIGTERM)
        try:
            run.wait(30)
        except subprocess.TimeoutExpired:
            os.killpg(run.pid, signal.SIGKILL)
            run.wait()


def lines_of(path: Path, run: subprocess.Popen[bytes], until: float) -> Iterator[dict[str, Any]]:
    """The run's lines of metrics as they arrive, until the time is up."""
    done = 0
    while time.monotonic() < until:
        if run.poll() is not None:
            raise SystemExit(f"The run ended with {run.returncode}; its output is above.")
        lines = path.read_text().splitlines(keepends=True) if path.exists() else []
        for line in lines[done:]:
            if line.endswith("\n"):
                done += 1
                yield json.loads(line)
        time.sleep(1.0)


def watch(path: Path, run: subprocess.Popen[bytes], args: argparse.Namespace) -> list[dict[str, Any]]:
    """The lines of the settled run."""
    until = time.monotonic() + 60 * args.minutes + args.start_s
    settled: list[dict[str, Any]] = []
    begun = None
    for line in lines_of(path, run, until):
        if "learner/timer/train/rate" not in line:
            continue
        print_progress(line)
        # The first updates are compilations, of the learner's and of each size of the actor's batches.
        if begun is None and line["counters/updates"] > 5:
            begun = line["time"] + args.settle_s
        if begun is not None and line["time"] >= begun:
            settled.append(line)
            if line["time"] - begun >= 60 * args.minutes:
                break
    return settled


def print_progress(line: dict[str, Any]) -> None:
    rate, wait = line["learner/timer/train/rate"], line.get("learner/timer/wait/share", 0.0)
    progress = f"{line['counters/updates']:8} updates {line['counters/env_steps']:9} steps {rate:8.2f} updates/s"
    print(f"{progress}, waits {100 * wait:5.1f} % {gpu_use()}", flush=True)


def gpu_use() -> str:
    if not shutil.which("nvidia-smi"):
        return ""
    query = ["nvidia-smi", "--query-gpu=utilization.gpu,memory.used", "--format=csv,noheader"]
    return "GPU " + subprocess.run(query, stdout=subprocess.PIPE, text=True).stdout.strip()


def print_table(lines: list[dict[str, Any]], alone_ms: float | None, args: argparse.Namespace) -> None:
    if len(lines) < 2:
        print("The run did not settle in time; the lines above are the only results.")
        return
    seconds = lines[-1]["time"] - lines[0]["time"]
    updates, steps = (
        (lines[-1][f"counters/{name}"] - lines[0][f"counters/{name}"]) / seconds for name in ("updates", "env_steps")
    )
    waits = mean(lines, "learner/timer/wait/share")
    print(f"\n{args.env}, {args.envs} envs, size {args.size}, ratio {args.ratio:g}, {seconds:.0f} s\n")
    print("| | |\n|---|---|")
    print(f"| updates/s | {updates:.2f} |\n| ms per update | {1e3 / max(updates, 1e-9):.2f} |")
    print(
        f"| env steps/s | {steps:.1f} |\n| replayed per env step | {updates * args.batch * args.length / steps:.1f} |"
    )
    print(f"| learner busy, by its own clock | {100 * (1 - waits):.1f} % |")
    if alone_ms:
        print(f"| learner busy, updates/s x {alone_ms:.2f} ms alone | {100 * updates * alone_ms / 1e3:.1f} % |")
    names = sorted({name for line in lines for name in line if _is_shown(name)})
    for name in names:
        print(f"| {name} | {mean(lines, name):.3g} |")


def _is_shown(name: str) -> bool:
    return name.endswith(("/share", "/mean_ms", "usage/cores", "usage/gigabytes", "actor/fps", "actor/envs"))


def mean(lines: list[dict[str, Any]], name: str) -> float:
    return statistics.fmean(float(line[name]) for line in lines if name in line)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--env", default="crafter_reward")
    parser.add_argument("--size", default="12m")
    parser.add_argument("--envs", type=int, default=16)
    parser.add_argument("--ratio", type=float, default=256.0)
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--length", type=int, default=64)
    parser.add_argument("--replay-gb", type=float, default=8.0)
    parser.add_argument("--actor-batch", type=int, default=-1)
    parser.add_argument(
        "--minutes", type=float, default=4.0, help="duration of the measurement, after the run has settled"
    )
    parser.add_argument("--settle-s", type=float, default=30.0, help="how long the run settles after its first updates")
    parser.add_argument(
        "--start-s", type=float, default=240.0, help="time limit for the first updates, including compilation"
    )
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="KEY=JSON",
        help="another setting of the run, as updates_per_call=4",
    )
    parser.add_argument("--metrics", metavar="FILE", help="copy the run's metrics.jsonl to this file")
    parser.add_argument("--no-alone", action="store_true", help="do not measure the update alone first")
    parser.add_argument("--random-agent", action="store_true", help="use the random agent: the processes without JAX")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        paths = [*PATHS, *filter(None, [os.environ.get("PYTHONPATH")])]
        kept = {"JAX_COMPILATION_CACHE_DIR": f"{folder}/compiled", "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0.5"}
        variables = {**kept, **os.environ, "PYTHONPATH": os.pathsep.join(paths)}
        config = config_of(args, folder)
        has_alone = not (args.no_alone or args.random_agent)
        alone_ms = measure_alone(config, variables, args.start_s) if has_alone else None
        path = Path(folder) / "metrics.jsonl"
        with running(config, variables) as run:
            lines = watch(path, run, args)
        if args.metrics:
            shutil.copy(path, args.metrics)
        print_table(lines, alone_ms, args)


if __name__ == "__main__":
    main()
