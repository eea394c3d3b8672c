"""`mosaic worker list` with 8 environments, warm, and an install of the toy worker, beside a bare interpreter start.

python benchmarks/worker_list.py [--environments 8] [--rounds 10]
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from rig import p50, table, verdict

MOSAIC = Path(sys.executable).with_name("mosaic")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--environments", type=int, default=8)
    parser.add_argument("--rounds", type=int, default=10)
    args = parser.parse_args()
    home = Path(tempfile.mkdtemp(prefix="mosaic-bench-"))
    env = {**os.environ, "MOSAIC_HOME": str(home)}
    try:
        took_ms([str(MOSAIC), "worker", "install", "toy"], env)  # builds the wheels
        installs = [took_ms([str(MOSAIC), "worker", "install", "toy", "--upgrade"], env) for _ in range(3)]
        multiply(home / "envs", args.environments)
        took_ms([str(MOSAIC), "worker", "list"], env)  # starts every worker once
        bare, listed = [], []
        for _ in range(args.rounds):
            bare.append(took_ms([sys.executable, "-c", "print(1)"], env))
            listed.append(took_ms([str(MOSAIC), "worker", "list"], env))
    finally:
        shutil.rmtree(home, ignore_errors=True)
    report(args, bare, listed, installs)


def multiply(envs: Path, count: int) -> None:
    """Copies under other names; each is read as a separate environment."""
    for number in range(1, count):
        shutil.copytree(envs / "toy", envs / f"toy@v{number}", symlinks=True)


def report(args: argparse.Namespace, bare: list[float], listed: list[float], installs: list[float]) -> None:
    table(
        f"Workers: {args.environments} environments, wall p50 of {args.rounds}; installs p50 of {len(installs)}",
        [
            ("", "ms", "× bare", "target", ""),
            ("bare python -c print", f"{p50(bare):.0f}", "1.0", "", ""),
            row("mosaic worker list", listed, bare, 300),
            row("mosaic worker install toy, warm cache", installs, bare, 10_000),
        ],
    )


def row(name: str, took: list[float], bare: list[float], target_ms: float) -> tuple[str, ...]:
    ratio = f"{p50(took) / p50(bare):.1f}"
    return name, f"{p50(took):.0f}", ratio, f"≤ {target_ms:,.0f} ms", verdict(p50(took) <= target_ms)


def took_ms(command: list[str], env: dict[str, str]) -> float:
    start = time.perf_counter()
    subprocess.run(command, env=env, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return (time.perf_counter() - start) * 1000


if __name__ == "__main__":
    main()
