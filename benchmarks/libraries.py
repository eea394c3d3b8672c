"""Unmodified scripts, observed and bare: CPU time per env step, and what a script pays that uses no library.

python benchmarks/libraries.py [--python .venv-observe/bin/python] [--pairs 20] [--only gymnasium]

Each side is a process that runs a window of steps when it is told to and reports the CPU time of it (user and system,
all threads). Only one runs at a time, in random order, so that both have the same load; they are restarted every few
windows, because the memory layout of a process can change its speed until it exits. stdout is a file, as in a run.
"""

import argparse
import os
import random
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from rig import p50, table, verdict

ROOT = Path(__file__).parents[1]
AUTOWRAP = ROOT / "sdk" / "src" / "mosaic_sdk" / "autowrap"
PER_START = 5
START_MS = 30

MEASURE = """
import sys, time
def serve(run):
    run()
    print("ready", file=sys.stderr, flush=True)
    for _ in sys.stdin:
        start = time.process_time()
        steps = run()
        print((time.process_time() - start) / steps * 1e6, file=sys.stderr, flush=True)
"""
GYMNASIUM = """
import gymnasium
env = gymnasium.make("CartPole-v1")
env.reset(seed=1)
env.action_space.seed(1)
def run():
    for _ in range(30_000):
        observation, reward, terminated, truncated, info = env.step(env.action_space.sample())
        if terminated or truncated:
            env.reset()
    return 30_000
serve(run)
"""
STABLE_BASELINES3 = """
import torch
from stable_baselines3 import PPO
torch.set_num_threads(1)
model = PPO("MlpPolicy", "CartPole-v1", seed=1, device="cpu")
def run():
    model.learn(2048, reset_num_timesteps=False)
    return 2048
serve(run)
"""
CASES = {"gymnasium": (GYMNASIUM, "a Gymnasium loop", 0.95), "sb3": (STABLE_BASELINES3, "SB3 PPO", 0.97)}


class Side:
    """A process with a script, observed or not."""

    def __init__(self, script: str, python: str, is_observed: bool, folder: str) -> None:
        with open(os.path.join(folder, f"stdout-{is_observed}.log"), "ab") as out:
            self._process = subprocess.Popen(
                [python, "-W", "ignore", "-c", MEASURE + script],
                stdin=subprocess.PIPE,
                stdout=out,
                stderr=subprocess.PIPE,
                env=environment(is_observed, folder),
                cwd=folder,
                text=True,
            )

    def __enter__(self) -> "Side":
        self._answer(lambda line: line == "ready")
        return self

    def __exit__(self, *_: object) -> None:
        assert self._process.stdin
        self._process.stdin.close()
        self._process.wait(60)

    def us_per_step(self) -> float:
        assert self._process.stdin
        self._process.stdin.write("go\n")
        self._process.stdin.flush()
        return float(self._answer(lambda line: line[:1].isdigit()))

    def _answer(self, is_meant) -> str:
        assert self._process.stderr
        for line in self._process.stderr:
            if is_meant(line.strip()):
                return line
        raise RuntimeError("The script ended.")


def environment(is_observed: bool, folder: str) -> dict[str, str]:
    env = {"PATH": os.environ["PATH"], "HOME": folder, "OMP_NUM_THREADS": "1", "SDL_VIDEODRIVER": "dummy"}
    env |= {"PYTHONPATH": str(AUTOWRAP), "MOSAIC_RUN_ID": "01ARZ3NDEKTSV4RRFFQ69G5FAV", "MOSAIC_RUN_DIR": folder}
    return env | ({"MOSAIC_OBSERVE": "1"} if is_observed else {})


def compare(script: str, python: str, pairs: int) -> tuple[list[float], list[float]]:
    bare: list[float] = []
    observed: list[float] = []
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(-(-pairs // PER_START)):
            with Side(script, python, False, folder) as one, Side(script, python, True, folder) as other:
                for _ in range(PER_START):
                    turns = [(one, bare), (other, observed)]
                    for side, found in random.sample(turns, 2):
                        found.append(side.us_per_step())
    return bare, observed


def lower_bound(ratios: list[float], rounds: int = 2000) -> float:
    """The lower end of a 95 % interval of the median, by resampling."""
    dice = random.Random(1)
    medians = sorted(statistics.median(dice.choices(ratios, k=len(ratios))) for _ in range(rounds))
    return medians[int(rounds * 0.025)]


def row(title: str, bare: list[float], observed: list[float], target: float) -> tuple[str, ...]:
    ratios = [one / other for one, other in zip(bare, observed, strict=True)]
    bound = lower_bound(ratios)
    numbers = (f"{p50(bare):.2f}", f"{p50(observed):.2f}", f"{p50(ratios):.3f}", f"{bound:.3f}")
    return (title, *numbers, f"≥ {target}", verdict(bound >= target))


def start_cpu_ms(python: str, is_observed: bool, folder: str) -> float:
    """The CPU time of a script that uses the standard library only."""
    argv = [python, "-c", "import argparse, json, email.message, http.client, logging, random"]
    process = subprocess.Popen(argv, env=environment(is_observed, folder))
    _, _, used = os.wait4(process.pid, 0)
    process.returncode = 0
    return (used.ru_utime + used.ru_stime) * 1000


def start_row(python: str, pairs: int) -> tuple[str, ...]:
    bare, more = [], []
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(pairs):
            bare.append(start_cpu_ms(python, False, folder))
            more.append(start_cpu_ms(python, True, folder) - bare[-1])
    return ("start", f"{p50(bare):.1f}", f"{p50(more):+.1f}", f"≤ {START_MS}", verdict(p50(more) <= START_MS))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--python", default=str(ROOT / ".venv-observe" / "bin" / "python"))
    parser.add_argument("--pairs", type=int, default=20)
    parser.add_argument("--only", choices=list(CASES))
    args = parser.parse_args()
    rows = [("", "bare µs/step", "observed", "ratio", "95 % bound", "target", "")]
    for name in [args.only] if args.only else list(CASES):
        script, title, target = CASES[name]
        rows.append(row(title, *compare(script, args.python, args.pairs), target))
    table(f"Observed scripts: bare CPU per step ÷ observed CPU per step, {args.pairs} interleaved pairs", rows)
    head = ("", "bare CPU ms", "observed", "target", "")
    table("A script that uses no library", [head, start_row(args.python, args.pairs)])


if __name__ == "__main__":
    sys.exit(main())
