"""One daemon, an endless series of runs and kills: its memory and its number of descriptors must not grow.

    python benchmarks/soak.py --minutes 30 [--seed 1]

Every turn submits three toy runs, watches one, kills a tailer, a holder or a worker, waits until all are over, and
deletes two.
"""

import argparse
import contextlib
import os
import random
import signal
import statistics
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from rig import Lab, lab, rss_mb, table, verdict

FLAT_MB = 8.0  # an allocator may keep this much; a leak of one kB per run exceeds it in an hour
FLAT_FDS = 4


def main() -> int:
    parser = argparse.ArgumentParser(prog="soak", description=__doc__.partition("\n")[0])
    parser.add_argument("--minutes", type=float, default=30.0)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    with lab() as rig:
        pid = rig.daemon_pid()
        samples = [(turn, rss_mb(pid), _descriptors(pid)) for turn in _turns(rig, args.minutes, args.seed)]
        same = rig.daemon_pid() == pid
    return _print_summary(samples, same)


def _turns(rig: Lab, minutes: float, seed: int) -> Iterator[int]:
    rng = random.Random(seed)
    deadline = time.monotonic() + minutes * 60
    turn = 0
    while time.monotonic() < deadline:
        _turn(rig, rng)
        turn += 1
        yield turn


def _turn(rig: Lab, rng: random.Random) -> None:
    runs = [rig.submit(steps=300, rate=600) for _ in range(3)]
    stream = rig.client.stream_events(runs[0].run_id)
    next(stream)
    with contextlib.suppress(AssertionError, OSError, LookupError):  # it may have ended by now
        find = rng.choice((rig.tailer_pid, rig.holder_pid, rig.root_pid))
        os.kill(find(runs[1]), signal.SIGKILL)
    for _ in stream:
        pass
    for run in runs:
        rig.wait_until_over(run)
    for run in runs[:2]:
        rig.client.delete_run(run.run_id)


def _descriptors(pid: int) -> int:
    return len(list(Path(f"/proc/{pid}/fd").iterdir()))


def _print_summary(samples: list[tuple[int, float, int]], same_daemon: bool) -> int:
    """The first quarter warms up; the second is compared with the last."""
    quarter = len(samples) // 4
    before, after = samples[quarter : 2 * quarter], samples[-quarter:]
    if not quarter:
        print("too few turns to compare; run for longer")
        return 1
    grown_mb = statistics.median(s[1] for s in after) - statistics.median(s[1] for s in before)
    grown_fds = statistics.median(s[2] for s in after) - statistics.median(s[2] for s in before)
    rows = [("turn", "RSS MB", "descriptors")]
    rows += [(str(turn), f"{rss:.1f}", str(fds)) for turn, rss, fds in samples[:: max(1, quarter // 2)]]
    table(f"soak: {len(samples)} turns, {3 * len(samples)} runs, one daemon: {same_daemon}", rows)
    ok = same_daemon and grown_mb <= FLAT_MB and grown_fds <= FLAT_FDS
    print(f"from the second quarter to the last: {grown_mb:+.1f} MB, {grown_fds:+.0f} descriptors  {verdict(ok)}")
    return int(not ok)


if __name__ == "__main__":
    sys.exit(main())
