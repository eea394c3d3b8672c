"""One daemon, an endless series of runs and kills: its memory and its number of descriptors must not grow.

    python benchmarks/soak.py --minutes 30 [--seed 1]

Every turn submits three toy runs, watches one, kills a tailer, a holder or a worker of another, waits until all are
over, and deletes two. A watched run that the machine starved is printed with its reason, and is not a failure; one that
ended well and whose events were not all delivered is.
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

from mosaic.client.run import Run
from mosaic.model.states import RunState

FLAT_MB = 8.0  # an allocator may keep this much; a leak of one kB per run exceeds it in an hour
FLAT_FDS = 4
LOST = "events were lost"
OVER_WITHIN_S = 300.0  # on a machine that is shared with others


def main() -> int:
    parser = argparse.ArgumentParser(prog="soak", description=__doc__.partition("\n")[0])
    parser.add_argument("--minutes", type=float, default=30.0)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    notes: list[str] = []
    with lab() as rig:
        pid = rig.daemon_pid()
        samples = [(turn, rss_mb(pid), _descriptors(pid)) for turn in _turns(rig, args.minutes, args.seed, notes)]
        same = rig.daemon_pid() == pid
    print("\n".join(notes))
    return _print_summary(samples, same) or int(any(note.startswith(LOST) for note in notes))


def _turns(rig: Lab, minutes: float, seed: int, notes: list[str]) -> Iterator[int]:
    rng = random.Random(seed)
    deadline = time.monotonic() + minutes * 60
    turn = 0
    while time.monotonic() < deadline:
        turn += 1
        notes += [f"{note} (turn {turn})" for note in _turn(rig, rng)]
        yield turn


def _turn(rig: Lab, rng: random.Random) -> Iterator[str]:
    """What was odd about it."""
    runs = [rig.submit(steps=300, rate=600) for _ in range(3)]
    stream = rig.client.stream_events(runs[0].run_id)
    first = next(stream, None)
    with contextlib.suppress(AssertionError, OSError, LookupError):  # it may have ended by now
        find = rng.choice((rig.tailer_pid, rig.holder_pid, rig.root_pid))
        os.kill(find(runs[1]), signal.SIGKILL)
    events = sum(1 for _ in stream) + (first is not None)
    ends = [rig.wait_until_over(run, OVER_WITHIN_S) for run in runs]
    yield from _odd(ends[0], events)
    for run in runs[:2]:
        rig.client.delete_run(run.run_id)


def _odd(watched: Run, events: int) -> Iterator[str]:
    if watched.state is not RunState.TERMINATED:
        yield f"a watched run is {watched.state}: {watched.reason.partition(chr(10))[0]}"
    elif events != watched.summary.events or watched.summary.steps != 300:
        yield f"{LOST}: {events} events of {watched.summary.events} delivered, {watched.summary.steps} steps of 300"


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
