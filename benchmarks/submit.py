"""From SubmitRun to the worker's first byte, compared with bare `python -c print`, interleaved.

python benchmarks/submit.py [--rounds 20]
"""

import argparse
import os
import subprocess
import sys
import time

from rig import Lab, lab, p50, table, verdict


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=20)
    args = parser.parse_args()
    with lab() as rig:
        rig.wait_until_over(rig.submit(steps=1))
        bare, through = [], []
        for _ in range(args.rounds):
            bare.append(bare_start_ms())
            through.append(first_byte_ms(rig))
    ratio = p50(through) / p50(bare)
    table(
        f"Submit → the worker's first byte, p50 of {args.rounds}",
        [
            ("", "ms", "× bare", "target", ""),
            ("bare python -c print", f"{p50(bare):.0f}", "1.0", "", ""),
            ("through MOSAIC", f"{p50(through):.0f}", f"{ratio:.1f}", "≤ 120 ms", verdict(p50(through) <= 120)),
        ],
    )


def bare_start_ms() -> float:
    start = time.perf_counter()
    subprocess.run([sys.executable, "-c", "print(1)"], stdout=subprocess.DEVNULL, check=True)
    return (time.perf_counter() - start) * 1e3


def first_byte_ms(rig: Lab) -> float:
    start = time.perf_counter()
    run = rig.submit(steps=1, metrics_every=0)
    spool = rig.rundir(run).stdout
    while not (spool.exists() and os.stat(spool).st_size):
        time.sleep(0.0005)
    took = (time.perf_counter() - start) * 1e3
    rig.wait_until_over(run)
    return took


if __name__ == "__main__":
    main()
