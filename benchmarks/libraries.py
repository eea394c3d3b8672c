"""Unmodified scripts, observed and bare: CPU time per env step, and what a script pays that uses no library.

python benchmarks/libraries.py [--python .venv-observe/bin/python] [--lives 10] [--pairs 10] [--only gymnasium]

Both sides run in one process, in turn and in random order: two processes of the same script differ by 3 to 5 % until
they exit, which is more than the observer costs. Each process ("life") contributes pairs of windows; the interval
resamples lives, and pairs within a life, so that windows of one process do not count as independent. A window is longer
than the pauses between two writes of the observer. `--plant 0.1` wastes 10 % on the observed side: what the benchmark
would say of an observer that costs that much.

`--instructions` counts instructions under valgrind instead, which a busy machine does not change. They are not time: a
cache miss counts as nothing. What the observer does by the clock weighs too much there, as the script runs slower.
"""

import argparse
import json
import os
import random
import re
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from rig import p50, table, verdict

ROOT = Path(__file__).parents[1]
AUTOWRAP = ROOT / "sdk" / "src" / "mosaic_sdk" / "autowrap"
LIFE = Path(__file__).with_name("observed_life.py")
START_MS = 30

GYMNASIUM = """
import gymnasium
env = gymnasium.make("CartPole-v1")
env.reset(seed=1)
env.action_space.seed(1)
def run():
    for _ in range(20_000):
        observation, reward, terminated, truncated, info = env.step(env.action_space.sample())
        if terminated or truncated:
            env.reset()
    return 20_000
"""
STABLE_BASELINES3 = """
import torch
from stable_baselines3 import PPO
torch.set_num_threads(1)
model = PPO("MlpPolicy", "CartPole-v1", n_steps=512, seed=1, device="cpu")
def run():
    model.learn(512, reset_num_timesteps=False)
    return 512
"""
FRAMES = {"GYM_GUI_FASTLANE_ONLY": "1"}
CASES = {
    "gymnasium": (GYMNASIUM, {}, "a Gymnasium loop", 0.95),
    "frames": (GYMNASIUM, FRAMES, "… with frames nobody watches", None),
    "sb3": (STABLE_BASELINES3, {}, "SB3 PPO", 0.97),
}
Pairs = list[tuple[float, float]]  # CPU µs per step, bare and observed


def environment(is_observed: bool, folder: str) -> dict[str, str]:
    env = {"PATH": os.environ["PATH"], "HOME": folder, "OMP_NUM_THREADS": "1", "SDL_VIDEODRIVER": "dummy"}
    env |= {"PYTHONPATH": str(AUTOWRAP), "MOSAIC_RUN_ID": "01ARZ3NDEKTSV4RRFFQ69G5FAV", "MOSAIC_RUN_DIR": folder}
    return env | ({"MOSAIC_OBSERVE": "1"} if is_observed else {})


def compare(script: str, python: str, lives: int, pairs: int, plant: float = 0.0, **variables: str) -> list[Pairs]:
    with tempfile.TemporaryDirectory() as folder:
        return [live(script, python, pairs, plant, folder, variables) for _ in range(lives)]


def live(script: str, python: str, pairs: int, plant: float, folder: str, variables: dict[str, str]) -> Pairs:
    with open(os.path.join(folder, "stdout.log"), "ab") as out:  # a file, as in a run
        ended = subprocess.run(
            [python, "-W", "ignore", LIFE, script, str(pairs), str(plant)],
            env=environment(True, folder) | variables,
            cwd=folder,
            stdout=out,
            stderr=subprocess.PIPE,
            text=True,
        )
    if ended.returncode:
        raise RuntimeError(ended.stderr)
    found = json.loads(ended.stderr.splitlines()[-1])
    if not found["hooks"]:
        raise RuntimeError("Nothing in this script was observed.")
    return [(bare, observed) for bare, observed in found["pairs"]]


def ratios(lives: list[Pairs]) -> list[list[float]]:
    return [[bare / observed for bare, observed in pairs] for pairs in lives]


def lower_bound(lives: list[list[float]], rounds: int = 2000) -> float:
    """The lower end of a 95 % interval of the median ratio: lives are resampled, and the pairs within each."""
    dice = random.Random(1)

    def resampled() -> float:
        chosen = dice.choices(lives, k=len(lives))
        return statistics.median(one for life in chosen for one in dice.choices(life, k=len(life)))

    return sorted(resampled() for _ in range(rounds))[int(rounds * 0.025)]


def row(title: str, lives: list[Pairs], target: float | None) -> tuple[str, ...]:
    found = ratios(lives)
    bound = lower_bound(found)
    bare = p50([one for pairs in lives for one, _ in pairs])
    more = p50([observed - one for pairs in lives for one, observed in pairs])
    numbers = (f"{bare:.2f}", f"{more:+.3f}", f"{p50([one for life in found for one in life]):.3f}", f"{bound:.3f}")
    return (title, *numbers, f"≥ {target}" if target else "", verdict(bound >= target) if target else "")


# The first window is counted in both of two processes, so that their difference has no imports in it.
COUNTED = """
import os, sys
names = {"__name__": "__main__"}
exec(compile(sys.argv[1], "<script>", "exec"), names)
print("steps", sum(names["run"]() for _ in range(int(sys.argv[2]))), file=sys.stderr, flush=True)
os._exit(0)
"""
VALGRIND = ("valgrind", "--tool=cachegrind", "--cache-sim=no", "--cachegrind-out-file=/dev/null")


def count(script: str, python: str, is_observed: bool, windows: int, variables: dict[str, str]) -> tuple[int, int]:
    """Instructions and steps of a process that runs this many windows."""
    with tempfile.TemporaryDirectory() as folder:
        ended = subprocess.run(
            [*VALGRIND, python, "-W", "ignore", "-c", COUNTED, script, str(windows)],
            env=environment(is_observed, folder) | variables | {"PYTHONHASHSEED": "0"},
            cwd=folder,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
    return read_counts(ended.stderr)


def read_counts(stderr: str) -> tuple[int, int]:
    instructions = re.search(r"I +refs: +([\d,]+)", stderr)
    steps = re.search(r"^steps (\d+)$", stderr, re.MULTILINE)
    if not (instructions and steps):
        raise RuntimeError(stderr)
    return int(instructions[1].replace(",", "")), int(steps[1])


def per_step(fewer: tuple[int, int], more: tuple[int, int]) -> float:
    """Instructions per step of the windows that only the second process ran."""
    return (more[0] - fewer[0]) / (more[1] - fewer[1])


def instructions_row(title: str, script: str, python: str, variables: dict[str, str]) -> tuple[str, ...]:
    bare, observed = (
        per_step(*(count(script, python, is_observed, windows, variables) for windows in (1, 2)))
        for is_observed in (False, True)
    )
    return (title, f"{bare:,.0f}", f"{observed - bare:+,.0f}", f"{bare / observed:.3f}")


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
    parser.add_argument("--lives", type=int, default=10, help="processes for each script")
    parser.add_argument("--pairs", type=int, default=10, help="pairs of windows in each process")
    parser.add_argument("--plant", type=float, default=0.0, metavar="SHARE", help="slow the observed side down")
    parser.add_argument("--only", choices=list(CASES))
    parser.add_argument("--instructions", action="store_true", help="count instructions with valgrind, not CPU time")
    args = parser.parse_args()
    cases = [CASES[name] for name in ([args.only] if args.only else list(CASES))]
    if args.instructions:
        counted = [instructions_row(title, script, args.python, more) for script, more, title, _ in cases]
        table("Observed scripts: instructions per step", [("", "bare", "more", "ratio"), *counted])
        return
    rows = [("", "bare µs/step", "more", "ratio", "95 % bound", "target", "")]
    for script, variables, title, target in cases:
        rows.append(row(title, compare(script, args.python, args.lives, args.pairs, args.plant, **variables), target))
    size = f"{args.lives} processes × {args.pairs} pairs"
    table(f"Observed scripts: bare CPU per step ÷ observed CPU per step, {size}", rows)
    head = ("", "bare CPU ms", "observed", "target", "")
    table("A script that uses no library", [head, start_row(args.python, 20)])


if __name__ == "__main__":
    sys.exit(main())
