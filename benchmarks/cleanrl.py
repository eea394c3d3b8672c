"""CleanRL under MOSAIC beside the bare script, in interleaved pairs: CPU per step, unwatched and watched; time to the
first step.

python benchmarks/cleanrl.py [--python ENV/bin/python] [--pairs 20] [--only ppo_upstream] [--skip-start]

CPU is that of the worker's whole tree (user and system). What it takes to start is taken out: each measurement is a
long run less a short one of the same kind. The environment is the installed worker's, or that of --python.
"""

import argparse
import os
import random
import resource
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from mosaic_sdk.fastlane import FastLaneReader
from mosaic_sdk.lab.trial import Trial
from rig import lab, p50, table, verdict

from mosaic.client import TrainerClient
from mosaic.model.rundir import StateRoot

# name: the bare module, the environment, a short and a long run, hyperparameters
CASES: dict[str, tuple[str, str, int, int, dict[str, Any]]] = {
    "ppo_upstream": ("cleanrl.ppo", "CartPole-v1", 512, 20_480, {}),
    "dqn": ("cleanrl.dqn", "CartPole-v1", 400, 12_000, {"learning_starts": 300}),
    "sac_continuous_action": ("cleanrl.sac_continuous_action", "Pendulum-v1", 300, 2_000, {"learning_starts": 200}),
}
BOUND, AIM, WATCHED, START = 0.97, 0.99, 0.85, 1.15
_HZ = 30


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--python", default="")
    parser.add_argument("--pairs", type=int, default=20)
    parser.add_argument("--only", choices=list(CASES))
    parser.add_argument("--skip-start", action="store_true")
    args = parser.parse_args()
    python = args.python or str(StateRoot.from_environment().envs / "cleanrl" / "bin" / "python")
    os.environ["OMP_NUM_THREADS"] = "1"
    names = [args.only] if args.only else list(CASES)
    rows = [row for name in names for row in cpu_rows(name, python, args.pairs)]
    table(f"CleanRL: bare CPU per step ÷ CPU per step under MOSAIC, {args.pairs} interleaved pairs", [HEAD, *rows])
    if not args.skip_start:
        start_table(python, max(3, args.pairs // 4))


HEAD = ("", "bare µs/step", "under MOSAIC", "ratio", "95 % bound", "target", "")


def cpu_rows(name: str, python: str, pairs: int) -> list[tuple[str, ...]]:
    watched = name == "ppo_upstream"
    bare, quiet, seen = [], [], []
    for _ in range(pairs):
        sides: list[tuple[list[float], Callable[[int], float]]] = [
            (bare, lambda steps: bare_cpu_s(name, python, steps)),
            (quiet, lambda steps: worker_cpu_s(name, python, steps)),
        ]
        if watched:
            sides.append((seen, lambda steps: worker_cpu_s(name, python, steps, is_watched=True)))
        random.shuffle(sides)  # neither side is always the one that finds the caches cold
        for found, measure in sides:
            found.append(per_step_us(name, measure))
    rows = [row(name, bare, quiet, BOUND)]
    return rows + ([row(f"{name}, watched at {_HZ} Hz", bare, seen, WATCHED)] if watched else [])


def row(title: str, bare: list[float], under: list[float], target: float) -> tuple[str, ...]:
    ratios = [one / other for one, other in zip(bare, under, strict=True)]
    bound = lower_bound(ratios)
    return (
        title,
        f"{p50(bare):.0f}",
        f"{p50(under):.0f}",
        f"{p50(ratios):.3f}",
        f"{bound:.3f}",
        f"≥ {target}",
        verdict(bound >= target),
    )


def per_step_us(name: str, measure: Callable[[int], float]) -> float:
    _, _, short, long, _ = CASES[name]
    return (measure(long) - measure(short)) / (long - short) * 1e6


def lower_bound(ratios: list[float], rounds: int = 2000) -> float:
    """The lower end of a 95 % interval of the median, by resampling."""
    dice = random.Random(1)
    medians = sorted(statistics.median(dice.choices(ratios, k=len(ratios))) for _ in range(rounds))
    return medians[int(rounds * 0.025)]


def bare_cpu_s(name: str, python: str, steps: int) -> float:
    module, env_id, _, _, params = CASES[name]
    flags = {"total_timesteps": steps, "env_id": env_id, "cuda": False, "seed": 1, **params}
    argv = [word for key, value in flags.items() for word in ("--" + key.replace("_", "-"), str(value))]
    with tempfile.TemporaryDirectory() as folder, children_cpu() as cpu:
        subprocess.run(
            [python, "-W", "ignore", "-m", module, *argv],
            cwd=folder,
            check=True,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
    return cpu[0]


def worker_cpu_s(name: str, python: str, steps: int, is_watched: bool = False) -> float:
    """The worker as the daemon starts it, frames on; `is_watched`: with somebody who looks at them."""
    with Trial("cleanrl_worker.cli", worker_config(name, steps), python) as trial, children_cpu() as cpu:
        trial.start()
        with watching(trial.run_id) if is_watched else nobody():
            code = trial.wait(3600)
        assert code == 0, trial.last_words
    return cpu[0]


def worker_config(name: str, steps: int) -> dict[str, Any]:
    _, env_id, _, _, params = CASES[name]
    return {
        "algo": name,
        "env_id": env_id,
        "total_timesteps": steps,
        "seed": 1,
        "extras": {"algo_params": params},
    }


@contextmanager
def children_cpu() -> Iterator[list[float]]:
    """CPU seconds of all children that end inside."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    used = [0.0]
    yield used
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    used[0] = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


@contextmanager
def nobody() -> Iterator[None]:
    yield


@contextmanager
def watching(run_id: str) -> Iterator[None]:
    stop = threading.Event()
    thread = threading.Thread(target=_look, args=(run_id, stop), daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


def _look(run_id: str, stop: threading.Event) -> None:
    reader = None
    while not stop.wait(1 / _HZ):
        try:
            reader = reader or FastLaneReader.attach(run_id)
            reader.latest_frame()
        except Exception:  # not there yet, or no more
            reader = None


def start_table(python: str, rounds: int) -> None:
    """`mosaic run` to the first episode's end, and bare `python -m cleanrl.ppo` to the same."""
    bare, through = [], []
    with lab() as rig:
        rig.root.envs.mkdir(parents=True, exist_ok=True)
        (rig.root.envs / "cleanrl").symlink_to(Path(python).parent.parent)
        for _ in range(rounds):
            bare.append(bare_first_s(python))
            through.append(mosaic_first_s(rig.client))
    ratio = p50(through) / p50(bare)
    table(
        f"Start → the first episode that ppo on CartPole tells of, p50 of {rounds}",
        [
            ("", "s", "× bare", "target", ""),
            ("bare python -m cleanrl.ppo", f"{p50(bare):.2f}", "1.0", "", ""),
            ("through MOSAIC", f"{p50(through):.2f}", f"{ratio:.2f}", f"≤ {START}", verdict(ratio <= START)),
        ],
    )


def bare_first_s(python: str) -> float:
    argv = [python, "-u", "-W", "ignore", "-m", "cleanrl.ppo", "--cuda", "False", "--seed", "1"]
    with tempfile.TemporaryDirectory() as folder:
        start = time.perf_counter()
        with subprocess.Popen(argv, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as child:
            assert child.stdout
            next(line for line in child.stdout if "episodic_return" in line)
            took = time.perf_counter() - start
            child.kill()
    return took


def mosaic_first_s(client: TrainerClient) -> float:
    worker = {"module": "cleanrl_worker.cli", "config": worker_config("ppo_upstream", 10_000_000)}
    start = time.perf_counter()
    run = client.submit_run({"metadata": {"worker": worker}})
    next(client.stream_episodes(run.run_id))
    took = time.perf_counter() - start
    client.cancel_run(run.run_id)
    while not client.get_run(run.run_id).state.is_over:
        time.sleep(0.05)
    return took


if __name__ == "__main__":
    sys.exit(main())
