"""`mosaic runs --where` with 10,000 runs, compared with a bare interpreter start and with `mosaic runs`.

python benchmarks/experiments_ask.py [--runs 10000] [--rounds 10]

The CPU time of the daemon and of the command is printed beside the wall time: on a busy machine only it counts.
"""

import argparse
import os
import random
import resource
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rig import MOSAIC, cpu_s, fill_registry, lab, p50, table, verdict

from mosaic.ingest.index import Index
from mosaic.model.run import RunSummary

TARGET_MS = 300
COLUMNS = ("--columns", "learning_rate,seed,return", "--sort", "-return")
QUESTIONS = {
    "algo, env and return": ("--where", "algo=ppo and env_id~CartPole and return>400", *COLUMNS),
    "a setting": ("--where", "learning_rate>=0.001", *COLUMNS),
    "a metric": ("--where", "losses/value_loss<0.5", *COLUMNS),
    "either, of all runs": ("--where", "return>400 or learning_rate=0.001 or charts/SPS>900", *COLUMNS),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=10_000)
    parser.add_argument("--rounds", type=int, default=10)
    args = parser.parse_args()
    with lab() as rig:
        rig.stop_daemon()
        fill(rig.root.registry, rig.root.index, args.runs)
        rig.restart_daemon()
        env = {**os.environ, "MOSAIC_HOME": str(rig.root.path)}
        commands = {
            "bare python -c print": [sys.executable, "-c", "print(1)"],
            "mosaic runs": [str(MOSAIC), "runs"],
            **{f"--where: {name}": [str(MOSAIC), "runs", *words] for name, words in QUESTIONS.items()},
        }
        pid = rig.daemon_pid()
        took: dict[str, list[tuple[float, float, float]]] = {name: [] for name in commands}
        for _ in range(args.rounds + 1):
            for name, command in commands.items():
                took[name].append(measure(command, env, pid))
    report(args.runs, args.rounds, {name: each[1:] for name, each in took.items()})  # the first fills caches


def report(runs: int, rounds: int, took: dict[str, list[tuple[float, float, float]]]) -> None:
    bare = p50([wall for wall, _, _ in next(iter(took.values()))])
    rows: list[Sequence[str]] = [("", "wall ms", "× bare", "daemon CPU ms", "command CPU ms", "target", "")]
    for name, each in took.items():
        wall, daemon, command = (p50([one[n] for one in each]) for n in range(3))
        is_asked = name.startswith("--where")
        met = (f"≤ {TARGET_MS} ms", verdict(wall <= TARGET_MS)) if is_asked else ("", "")
        rows.append((name, f"{wall:.0f}", f"{wall / bare:.1f}", f"{daemon:.0f}", f"{command:.0f}", *met))
    table(f"Questions about {runs:,} runs, p50 of {rounds}", rows)


def fill(registry_file: Path, index_file: Path, runs: int) -> None:
    """Runs that are over, with the 40 settings and 25 metrics of a usual training."""
    chance = random.Random(0)
    run_ids = fill_registry(registry_file, runs, lambda number: settings_of(number, chance))
    index = Index(index_file)
    for run_id in run_ids:
        index.put(run_id, summary(chance))
    index.close()


def settings_of(number: int, chance: random.Random) -> dict[str, Any]:
    algo, env_id = chance.choice(("ppo", "dqn", "sac")), chance.choice(("CartPole-v1", "Acrobot-v1", "Hopper-v4"))
    settings = {"algo": algo, "env_id": env_id, "seed": number % 10, "total_timesteps": 500_000}
    settings["extras.algo_params.learning_rate"] = chance.choice((1e-4, 3e-4, 1e-3, 3e-3))
    return settings | {f"extras.algo_params.parameter_{n}": n / 7 for n in range(35)}


def summary(chance: random.Random) -> RunSummary:
    values = {f"losses/loss_{n}": chance.random() for n in range(23)}
    values |= {"losses/value_loss": chance.random(), "charts/SPS": chance.random() * 1000}
    returns = [chance.random() * 500 for _ in range(60)]
    return RunSummary(
        events=9000, steps=500_000, episodes=2000, env_steps=500_000, last_values=values, recent_returns=returns,
        return_trace=returns, mean_return=returns[-1], mean_over=100, last_return=returns[0],
    )  # fmt: skip


def measure(command: list[str], env: dict[str, str], pid: int) -> tuple[float, float, float]:
    """Wall time, CPU time of the daemon and of the command, in ms."""
    daemon, children, start = cpu_s(pid), _children_s(), time.perf_counter()
    subprocess.run(command, env=env, stdout=subprocess.DEVNULL, check=True)
    wall = time.perf_counter() - start
    return wall * 1e3, (cpu_s(pid) - daemon) * 1e3, (_children_s() - children) * 1e3


def _children_s() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


if __name__ == "__main__":
    main()
