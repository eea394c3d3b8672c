"""`mosaic runs` with 10,000 runs in the registry, compared with a bare interpreter start.

python benchmarks/listing.py [--runs 10000] [--rounds 10]
"""

import argparse
import os
import subprocess
import sys
import time

from rig import MOSAIC, fill_registry, lab, p50, table, verdict


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=10_000)
    parser.add_argument("--rounds", type=int, default=10)
    args = parser.parse_args()
    with lab() as rig:
        rig.stop_daemon()
        fill_registry(rig.root.registry, args.runs, lambda number: {})
        rig.restart_daemon()
        env = {**os.environ, "MOSAIC_HOME": str(rig.root.path)}
        bare, listed, everything = [], [], []
        for _ in range(args.rounds):
            bare.append(took_ms([sys.executable, "-c", "print(1)"], env))
            listed.append(took_ms([str(MOSAIC), "runs"], env))
            everything.append(took_ms([str(MOSAIC), "runs", "--all", "--json"], env))
    table(
        f"A listing with {args.runs:,} runs, wall p50 of {args.rounds}",
        [
            ("", "ms", "× bare", "target", ""),
            ("bare python -c print", f"{p50(bare):.0f}", "1.0", "", ""),
            (
                "mosaic runs",
                f"{p50(listed):.0f}",
                f"{p50(listed) / p50(bare):.1f}",
                "≤ 300 ms",
                verdict(p50(listed) <= 300),
            ),
            ("mosaic runs --all --json", f"{p50(everything):.0f}", f"{p50(everything) / p50(bare):.1f}", "", ""),
        ],
    )


def took_ms(command: list[str], env: dict[str, str]) -> float:
    start = time.perf_counter()
    subprocess.run(command, env=env, stdout=subprocess.DEVNULL, check=True)
    return (time.perf_counter() - start) * 1e3


if __name__ == "__main__":
    main()
