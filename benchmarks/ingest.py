"""The cost of an event, from the worker's print to the store and one subscriber.

python benchmarks/ingest.py [--events 100000] [--only steady] [--quick]
"""

import argparse
import json
import sqlite3
import tempfile
import threading
import time
from pathlib import Path

from rig import Lab, LifeCpu, cpu_s, lab, p50, rss_mb, table, ticked_cpu_s, verdict

PARTS = ("burst", "steady", "silent", "memory", "many")
QUIET = {"metrics_every": 0, "episode_length": 10_000_000}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--events", type=int, default=100_000)
    parser.add_argument("--only", choices=PARTS, help="measure only this part")
    parser.add_argument("--quick", action="store_true", help="a tenth of everything")
    args = parser.parse_args()
    events = args.events // 10 if args.quick else args.events
    with lab() as rig:
        rig.wait_until_over(rig.submit(steps=10))  # warm up imports and files
        parts = {
            "burst": lambda: burst(rig, events, floor(events)),
            "steady": lambda: steady(rig, 1_000 if args.quick else 10_000),
            "silent": lambda: silent(rig, 5 if args.quick else 30),
            "memory": lambda: memory(rig, 1 if args.quick else 10, events),
            "many": lambda: many(rig, 8 if args.quick else 32),
        }
        for name in [args.only] if args.only else PARTS:
            parts[name]()


def floor(events: int) -> float:
    """The same work in one bare process: json.loads and a batched insert, per event."""
    line = json.dumps({"event_type": "step", "step_index": 12345, "reward": 0.25, "episode_index": 3})
    with tempfile.TemporaryDirectory() as folder:
        db = sqlite3.connect(Path(folder) / "floor.sqlite")
        db.execute("PRAGMA journal_mode=WAL")
        db.execute("CREATE TABLE steps (seq INTEGER PRIMARY KEY, step, reward, episode)")
        start = time.process_time()
        for first in range(0, events, 1000):
            rows = []
            for seq in range(first, first + 1000):
                event = json.loads(line)
                rows.append((seq, event["step_index"], event["reward"], event["episode_index"]))
            with db:
                db.executemany("INSERT INTO steps VALUES (?, ?, ?, ?)", rows)
        used = time.process_time() - start
        db.close()
    return used / events * 1e6


def burst(rig: Lab, events: int, floor_us: float) -> None:
    daemon = rig.daemon_pid()
    before = ticked_cpu_s(daemon)
    run = rig.submit(steps=events, rate=0, **QUIET)
    seen: list[int] = []
    reader = threading.Thread(target=lambda: seen.extend(e.seq for e in rig.client.stream_steps(run.run_id)))
    reader.start()
    tailer = LifeCpu(rig.tailer_pid(run))
    end = rig.wait_until_over(run, timeout_s=300)
    reader.join(60)
    tailer_us = tailer.join() / events * 1e6
    daemon_us = (ticked_cpu_s(daemon) - before) / events * 1e6
    table(
        f"A burst of {events:,} steps, then exit (CPU per event; floor: json.loads + batched insert {floor_us:.1f} µs)",
        [
            ("", "µs", "× floor", "target", ""),
            (
                "tailer, whole life",
                f"{tailer_us:.1f}",
                f"{tailer_us / floor_us:.1f}",
                "≤ 10 µs",
                verdict(tailer_us <= 10),
            ),
            (
                "daemon, 1 subscriber",
                f"{daemon_us:.1f}",
                f"{daemon_us / floor_us:.1f}",
                "≤ 20 µs",
                verdict(daemon_us <= 20),
            ),
            ("stored", f"{end.summary.steps:,}", "", f"{events:,}", verdict(end.summary.steps == events)),
            ("delivered", f"{len(seen):,}", "", f"{events:,}", verdict(len(seen) == events)),
        ],
    )


def steady(rig: Lab, events: int) -> None:
    daemon = rig.daemon_pid()
    run = rig.submit(steps=events, rate=1000, **QUIET)
    late_ms: list[float] = []
    rig.wait_until_run(run, lambda now: now.summary.steps > 0, "the first step")
    before = ticked_cpu_s(daemon)
    first = 0
    for event in rig.client.stream_steps(run.run_id, tail=1):
        first = first or event.step_index
        late_ms.append((time.time_ns() - event.ts_ns) / 1e6)
    counted = events - first
    daemon_us = (ticked_cpu_s(daemon) - before) / counted * 1e6
    late_ms.sort()
    table(
        f"{events:,} steps at 1,000/s",
        [
            ("", "", "target", ""),
            ("print → subscriber, p50", f"{p50(late_ms):.1f} ms", "≤ 10 ms", verdict(p50(late_ms) <= 10)),
            ("print → subscriber, p99", f"{late_ms[int(len(late_ms) * 0.99)]:.1f} ms", "", ""),
            ("daemon CPU per event", f"{daemon_us:.0f} µs", "≤ 100 µs", verdict(daemon_us <= 100)),
        ],
    )


def silent(rig: Lab, seconds: int) -> None:
    run = rig.submit(steps=1_000_000, hang_at=1, **QUIET)
    rig.wait_until_run(run, lambda now: now.summary.steps > 0, "the first step")
    holder, tailer = rig.holder_pid(run), rig.tailer_pid(run)
    time.sleep(2)
    before = cpu_s(holder) + cpu_s(tailer)
    time.sleep(seconds)
    share = (cpu_s(holder) + cpu_s(tailer) - before) / seconds * 100
    rig.client.cancel_run(run.run_id)
    rig.wait_until_over(run)
    table(
        f"A silent run for {seconds} s",
        [("", "", "target", ""), ("holder and tailer", f"{share:.3f} % of a core", "≤ 0.2 %", verdict(share <= 0.2))],
    )


def memory(rig: Lab, bursts: int, events: int) -> None:
    daemon = rig.daemon_pid()
    before = rss_mb(daemon)
    for _ in range(bursts):
        rig.wait_until_over(rig.submit(steps=events, rate=0, **QUIET), timeout_s=300)
    table(
        f"The daemon's memory over {bursts * events:,} events",
        [("", ""), ("before", f"{before:.0f} MB"), ("after", f"{rss_mb(daemon):.0f} MB")],
    )


def many(rig: Lab, runs: int) -> None:
    start = time.monotonic()
    all_runs = [rig.submit(steps=2_000, rate=0, **QUIET) for _ in range(runs)]
    ends = [rig.wait_until_over(run, timeout_s=600) for run in all_runs]
    good = sum(str(end.state) == "TERMINATED" and end.summary.steps == 2_000 for end in ends)
    table(
        f"{runs} runs at once",
        [
            ("", "", "target", ""),
            ("TERMINATED with every event", f"{good}", f"{runs}", verdict(good == runs)),
            ("all finished after", f"{time.monotonic() - start:.1f} s", "", ""),
        ],
    )


if __name__ == "__main__":
    main()
