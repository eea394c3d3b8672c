"""Several Dreamer runs side by side on one device: seeds of a task, or the same task with other settings.

    python benchmarks/dreamer_seeds.py --out curves walker:0 walker:1 walker:2      three seeds of one recipe
    python benchmarks/dreamer_seeds.py --out curves --minutes 25 walker:0 walker2023:0
    python benchmarks/dreamer_curve.py curves/walker-0.jsonl curves/walker-1.jsonl --task dmc_walker_walk

Each run is `dreamer_worker.cli` with `--script parallel` in processes of its own. The lines of its episodes are copied
to OUT/RECIPE-SEED.jsonl every half minute, so an interrupted benchmark still has the curve so far; a line per run shows
its progress. A run that is in OUT already goes on from its last checkpoint, which is written when the minutes are over:
a curve may be made in pieces. dreamer_system.py describes what must be on the path. Start nvidia-cuda-mps-control
before several runs on one card: without it they share the card in time slices, and all together are slower than two.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dreamer_system import PATHS

EVERY_S = 30.0
NEVER_S = 1e6


def atari100k(game: str) -> dict[str, Any]:
    # Episodes of 16 envs span thousands of the run's steps: the last 20,000 complete the row around step 100,000.
    return {"suite": "atari100k", "env": f"atari100k_{game}", "size": "12m", "envs": 16, "steps": 120_000}


RECIPES: dict[str, dict[str, Any]] = {
    # Today's presets.
    "walker": {"suite": "dmc_proprio", "env": "dmc_walker_walk"},
    "cartpole": {"suite": "dmc_proprio", "env": "dmc_cartpole_swingup"},
    "cheetah": {"suite": "dmc_proprio", "env": "dmc_cheetah_run"},
    **{game: atari100k(game) for game in ("boxing", "breakout", "krull", "ms_pacman")},
    "crafter": {"suite": "crafter", "env": "crafter_reward", "size": "12m", "envs": 16},
    # To test this program on a small machine.
    "debug": {"env": "dummy_cont", "size": "debug", "envs": 2, "batch_size": 4, "batch_length": 8, "train_ratio": 8},
    # Closer to the settings of 2023 behind the published DMC curves: one step is two frames.
    "walker2023": {
        **{"suite": "dmc_proprio", "env": "dmc_walker_walk", "env_options": {"repeat": 2}},
        **{"envs": 4, "train_ratio": 512, "size": "12m"},
    },
}
# The same with the actor's gradient of 2023.
RECIPES["dynamics2023"] = {**RECIPES["walker2023"], "agent": {"learning": {"actor_gradient": "dynamics"}}}


@dataclass
class Training:
    name: str
    process: subprocess.Popen[bytes]
    metrics: Path

    def episodes(self) -> list[str]:
        lines = self.metrics.read_text().splitlines() if self.metrics.exists() else []
        return [line for line in lines if '"episode"' in line]

    def progress(self) -> str:
        episodes = self.episodes()
        newest = json.loads(episodes[-1]) if episodes else {"step": 0, "score": float("nan")}
        ended = "" if self.process.poll() is None else f", ended with {self.process.returncode}"
        return f"{self.name}: step {newest['step']}, {len(episodes)} episodes, score {newest['score']:.1f}{ended}"


def start(name: str, out: Path, steps: int, agent: dict[str, Any]) -> Training:
    recipe, _, seed = name.partition(":")
    folder = out / "runs" / f"{recipe}-{seed}"
    folder.mkdir(parents=True, exist_ok=True)
    config = {
        **{"run_id": f"{recipe}-{seed}", "script": "parallel", "logdir": str(folder), "outputs": ["jsonl"]},
        **{"seed": int(seed or 0), "eval_envs": 0, "replay_gb": 4.0, "log_every_s": 10.0},
        **{"report_every_s": NEVER_S, "save_every_s": NEVER_S},
        **RECIPES[recipe],
        "steps": min(steps, RECIPES[recipe].get("steps", steps)),
        "agent": {**RECIPES[recipe].get("agent", {}), **agent},
    }
    (folder / "config.json").write_text(json.dumps(config))
    paths = [*PATHS, *filter(None, [os.environ.get("PYTHONPATH")])]
    # By default JAX reserves three quarters of the card for the first process.
    kept = {"XLA_PYTHON_CLIENT_PREALLOCATE": "false", "JAX_COMPILATION_CACHE_DIR": str(out / "compiled")}
    command = [sys.executable, "-m", "dreamer_worker.cli", "--config", str(folder / "config.json")]
    with (folder / "words.log").open("ab") as words:
        process = subprocess.Popen(
            command,
            env={**kept, **os.environ, "PYTHONPATH": os.pathsep.join(paths)},
            stdout=words,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    return Training(f"{recipe}-{seed}", process, folder / "metrics.jsonl")


def keep(trainings: Sequence[Training], out: Path) -> None:
    for training in trainings:
        (out / f"{training.name}.jsonl").write_text("".join(f"{line}\n" for line in training.episodes()))
        print(f"{time.strftime('%H:%M:%S')} {training.progress()}", flush=True)


def end(training: Training) -> None:
    training.process.send_signal(signal.SIGTERM)
    try:
        training.process.wait(20)
    except subprocess.TimeoutExpired:
        os.killpg(training.process.pid, signal.SIGKILL)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("runs", nargs="+", metavar="RECIPE:SEED", help=f"recipes: {', '.join(RECIPES)}")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--minutes", type=float, default=25.0)
    parser.add_argument("--steps", type=int, default=10**7, help="maximum number of steps of each run")
    parser.add_argument(
        "--agent", type=json.loads, default={}, metavar="JSON", help="groups of agent settings, for all"
    )
    args = parser.parse_args()
    if unknown := {name.partition(":")[0] for name in args.runs} - set(RECIPES):
        parser.error(f"there is no recipe {min(unknown)!r}. Available: {', '.join(RECIPES)}")
    until = time.monotonic() + 60 * args.minutes
    trainings = [start(name, args.out, args.steps, args.agent) for name in args.runs]
    try:
        while time.monotonic() < until and any(training.process.poll() is None for training in trainings):
            time.sleep(min(EVERY_S, max(0.0, until - time.monotonic())))
            keep(trainings, args.out)
    finally:
        for training in trainings:
            end(training)
        keep(trainings, args.out)


if __name__ == "__main__":
    main()
