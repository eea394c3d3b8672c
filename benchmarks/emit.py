"""The cost of a line of telemetry in the worker: mosaic_sdk.emit compared with tensorboardX, both writing to disk.

    .venv/bin/python benchmarks/emit.py [ROUNDS]

Rounds are interleaved and their order is rotated, so that other load on the machine affects all of them equally.
Medians are over all calls; ratios are within this run.
"""

import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable

from mosaic_sdk.emit import Emitter
from tensorboardX import SummaryWriter  # type: ignore[import-untyped]

CALLS = 1000  # per round
YARDSTICK = "tensorboardX add_scalar"
TARGETS = {"emit metric": 0.3, "emit step": 0.5}


def main() -> None:
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 30
    with tempfile.TemporaryDirectory(prefix="mosaic-bench-", dir=".") as folder:
        board = SummaryWriter(os.path.join(folder, "tensorboard"))
        costs = measure(subjects(folder, board), board, rounds)
        board.close()
    report(costs, rounds)


def subjects(folder: str, board: SummaryWriter) -> dict[str, Callable[[int], object]]:
    """The functions to measure; each takes the number of the call."""
    spool = os.open(os.path.join(folder, "worker.stdout.log"), os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    emitter = Emitter(spool, run_id="01ARZ3NDEKTSV4RRFFQ69G5FAV")
    return {
        YARDSTICK: lambda i: board.add_scalar("losses/policy_loss", 0.1234567 * i, i),
        "emit metric": lambda i: emitter.metric("losses/policy_loss", 0.1234567 * i, i),
        "emit metrics, 8 at once": lambda i: emitter.metrics({f"losses/{n}": 0.1234567 * i for n in "abcdefgh"}, i),
        "emit step": lambda i: emitter.step(
            i, 0.1234567 * i, episode_index=i // 200, terminated=False, truncated=False
        ),
        "emit step, observation of 4": lambda i: emitter.step(i, 1.0, action=1, observation=[0.1, 0.2, 0.3, 0.4]),
        "bare write(2) of 110 bytes": lambda i: os.write(spool, b"x" * 109 + b"\n"),
    }


def measure(subjects: dict[str, Callable[[int], object]], board: SummaryWriter, rounds: int) -> dict[str, list[int]]:
    costs: dict[str, list[int]] = {name: [] for name in subjects}
    for number in range(rounds):
        order = list(subjects) if number % 2 else list(reversed(subjects))
        for name in order:
            costs[name] += time_calls(subjects[name], number * CALLS)
            board.flush()  # its thread must not still be writing in the next round
    return costs


def time_calls(call: Callable[[int], object], first: int) -> list[int]:
    clock = time.perf_counter_ns
    costs = []
    for i in range(first, first + CALLS):
        start = clock()
        call(i)
        costs.append(clock() - start)
    return costs


def report(costs: dict[str, list[int]], rounds: int) -> None:
    yardstick = statistics.median(costs[YARDSTICK])
    print(f"{rounds} rounds of {CALLS} calls each; p50 and p99 in µs; ratio of p50 to {YARDSTICK}")
    print(f"{'what':<28}{'p50':>8}{'p99':>9}{'ratio':>8}{'target':>8}")
    for name, values in costs.items():
        p50, p99 = statistics.median(values), statistics.quantiles(values, n=100)[98]
        target = f"≤ {TARGETS[name]}" if name in TARGETS else ""
        print(f"{name:<28}{p50 / 1000:>8.2f}{p99 / 1000:>9.1f}{p50 / yardstick:>8.2f}{target:>8}")


if __name__ == "__main__":
    main()
