"""A telemetry file with many rows: the cost of a commit, of the newest 4,096 events and of a 2,000-point curve.

    .venv/bin/python benchmarks/store.py [--rows 10_000_000] [--keep FILE]

Rows are written through RunStore.commit in batches of a thousand, as a tailer sends them. CPU time, not wall time: the
best of five for reads, the mean for commits.
"""

import argparse
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from mosaic.ingest.store import RunStore
from mosaic.wire import mosaic_pb2 as pb

RUN = "01JD0000000000000000000000"
BATCH = 1000
LINE = 120  # bytes of spool per event
BEGAN_NS = 1_790_000_000_000_000_000


def batch_at(first: int, start: int) -> pb.PublishTelemetryRequest:
    """Steps of eight environments, an episode every 200 and a metric line of two values every 100."""
    request = pb.PublishTelemetryRequest(run_id=RUN, start=start, end=start + BATCH * LINE)
    for i in range(first, first + BATCH):
        event = request.events.add(ts_ns=BEGAN_NS + i * 100_000)
        if i % 200 == 199:
            event.episode.episode_index = i // 200
            event.episode.total_reward = float(i % 7)
            event.episode.steps = 200
        elif i % 100 == 99:
            event.metric.names.extend(["losses/value", "charts/SPS"])
            event.metric.values.extend([1.0 / (i + 1), 1000.0])
            event.metric.step = i
        else:
            event.step.step_index = i
            event.step.reward = (i * 7919 % 1000) / 1000
            event.step.env_index = i % 8
            event.step.episode_index = i // 1600
    return request


def build(store: RunStore, rows: int) -> tuple[float, float]:
    """CPU µs per event inside commit: over the whole build, and over its last tenth."""
    offset = store.cursor().stdout_offset
    spent = late = 0.0
    for first in range(0, rows, BATCH):
        request = batch_at(first, offset)
        began = time.process_time()
        offset = store.commit(request).next_offset
        cost = time.process_time() - began
        spent += cost
        late += cost if first >= rows * 0.9 else 0.0
    return spent / rows * 1e6, late / (rows * 0.1) * 1e6


def cpu_ms(read: Callable[[], object]) -> float:
    best = float("inf")
    for _ in range(5):
        began = time.process_time()
        read()
        best = min(best, time.process_time() - began)
    return best * 1e3


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--keep", type=Path, help="build the file here and keep it")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        measure(args.keep or Path(folder) / "telemetry.sqlite", args.rows)


def measure(path: Path, rows: int) -> None:
    store = RunStore(path, RUN)
    mean, late = build(store, rows)
    middle = rows // 2
    table = [
        ("commit, µs per event", mean, "of the daemon's 20"),
        ("commit, µs per event, last tenth", late, ""),
        ("tail of 4,096, ms", cpu_ms(lambda: store.tail(4096)), "15"),
        ("tail of 4,096 steps, ms", cpu_ms(lambda: store.tail(4096, {"step"})), "15"),
        ("curve of 2,000 points, ms", cpu_ms(lambda: store.curve("step/reward", 2000)), "15"),
        (
            "the same, a window of 5,000 steps, ms",
            cpu_ms(lambda: store.curve("step/reward", 2000, middle, middle + 5000)),
            "15",
        ),
        ("a sparse metric's curve, ms", cpu_ms(lambda: store.curve("losses/value", 2000)), "15"),
    ]
    began = time.process_time()
    store.close(final=True)
    table.append(("final close, ms", (time.process_time() - began) * 1e3, ""))
    began = time.process_time()
    RunStore(path, RUN, read_only=True).summary()
    table.append(("open again, ms", (time.process_time() - began) * 1e3, ""))
    table.append(("bytes per row", path.stat().st_size / rows, ""))
    print(f"{rows:,} rows, CPU time")
    for what, value, target in table:
        print(f"  {what:<40} {value:>9.2f}   {'target ≤ ' + target if target else ''}")


if __name__ == "__main__":
    main()
