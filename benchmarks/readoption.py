"""Runs of a killed daemon: the time from the new daemon's lock to the next committed row of each. The limit is 2 s.

python benchmarks/readoption.py [--kills 10] [--runs 4]
"""

import argparse
import sys
import time

from rig import Lab, lab, p50, table, verdict

from mosaic.client.run import Run

PROMISED_S = 2.0


def main() -> int:
    parser = argparse.ArgumentParser(prog="readoption", description=__doc__.partition("\n")[0])
    parser.add_argument("--kills", type=int, default=10)
    parser.add_argument("--runs", type=int, default=4)
    args = parser.parse_args()
    with lab() as rig:
        runs = [rig.submit(steps=10_000_000, rate=200) for _ in range(args.runs)]
        for run in runs:
            rig.wait_until_run(run, lambda now: now.summary.steps > 0, "a step")
        waits_s = [wait_s for _ in range(args.kills) for wait_s in _kill_and_time(rig, runs)]
    ok = max(waits_s) <= PROMISED_S
    rows = [
        ("times", "p50 s", "longest s", "promised s"),
        (str(len(waits_s)), f"{p50(waits_s):.2f}", f"{max(waits_s):.2f}", "2"),
    ]
    table(f"re-adoption: {args.kills} kills of a daemon with {args.runs} live runs  {verdict(ok)}", rows)
    return int(not ok)


def _kill_and_time(rig: Lab, runs: list[Run]) -> list[float]:
    """Seconds from the lock, for each run."""
    rig.kill_daemon()
    before = [_stored(rig, run) for run in runs]
    rig.restart_daemon()
    locked_at = rig.root.pid.stat().st_mtime  # written when the lock is taken
    waits_s: dict[str, float] = {}
    while len(waits_s) < len(runs):
        for run, stored in zip(runs, before, strict=True):
            if run.run_id not in waits_s and _stored(rig, run) > stored:
                waits_s[run.run_id] = time.time() - locked_at
    return list(waits_s.values())


def _stored(rig: Lab, run: Run) -> int:
    return int(rig.table(run, "SELECT sum(next_offset) FROM cursor")[0][0])


if __name__ == "__main__":
    sys.exit(main())
