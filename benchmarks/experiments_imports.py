"""Importing event files: CPU of client and daemon per file, beside TensorBoard's own reader.

    .venv/bin/python benchmarks/experiments_imports.py [--scalars 1_000_000] [--tensorboard .venv-observe/bin/python]

Two files: nine tags at each step, as CleanRL logs them, and one tag at a million different steps, the worst case. CPU
time, not wall time. TensorBoard (its EventFileLoader, which only decodes) is given a tenth of a file: it is slow.
"""

import argparse
import contextlib
import os
import sqlite3
import struct
import subprocess
import tempfile
import time
from pathlib import Path

import numpy as np
from rig import cpu_s, lab, table, verdict

from mosaic.imports.crc32c import checksum, masked, masked_checksums
from mosaic.imports.scan import Scan, open_source

TAGS = ("charts/SPS", "charts/episodic_return", "charts/learning_rate", "losses/approx_kl", "losses/clipfrac")
TAGS += ("losses/entropy", "losses/explained_variance", "losses/policy_loss", "losses/value_loss")
BEGAN = 1_700_000_000.0
MOST_CPU_S = 10.0
THEIRS = """
import sys, time
from tensorboard.backend.event_processing.event_file_loader import EventFileLoader
begun = time.process_time()
count = sum(1 for event in EventFileLoader(sys.argv[1]).Load() if event.HasField("summary"))
print(count, time.process_time() - begun)
"""


def varint(value: int) -> bytes:
    data = bytearray()
    while value >= 0x80:
        data.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*data, value])


def event(number: int, step: int, tag: str) -> bytes:
    value = b"\x0a" + varint(len(tag)) + tag.encode() + b"\x15" + struct.pack("<f", number % 1000)
    summary = b"\x0a" + varint(len(value)) + value
    return (
        b"\x09"
        + struct.pack("<d", BEGAN + number / 1000)
        + b"\x10"
        + varint(step)
        + b"\x2a"
        + varint(len(summary))
        + summary
    )


def write(path: Path, scalars: int, tags: tuple[str, ...]) -> None:
    """Write an event file. Checksums are computed together, because one by one takes minutes."""
    events = [event(i, i // len(tags), tags[i % len(tags)]) for i in range(scalars)]
    sums = np.zeros(scalars, dtype=np.uint32)
    lengths = np.array([len(one) for one in events])
    for length in np.unique(lengths):
        places = np.nonzero(lengths == length)[0]
        rows = np.frombuffer(b"".join(events[i] for i in places), dtype=np.uint8).reshape(len(places), length)
        sums[places] = masked_checksums(rows)
    heads = {n: struct.pack("<QI", n, masked(checksum(n.to_bytes(8, "little")))) for n in set(lengths.tolist())}
    with path.open("wb") as file:
        for one, found in zip(events, sums.tolist(), strict=True):
            file.write(heads[len(one)] + one + found.to_bytes(4, "little"))


def ours(daemon: "object", folder: Path) -> tuple[float, float, float, int]:
    """CPU seconds of the client and of the daemon, wall seconds, and the number of points of the first curve."""
    scan = Scan()
    scan.add(folder)
    found, client, pid = scan.found[0], daemon.client, daemon.daemon_pid()  # type: ignore[attr-defined]
    document = {"metadata": {"run_name": folder.name}, "imported": {"format": found.format, "path": str(found.path)}}
    before, begun, start = cpu_s(pid), time.process_time(), time.perf_counter()
    done = client.import_run(found.format, found.path, lambda cursor: open_source(found, cursor), lambda _: document)
    spent = time.process_time() - begun, cpu_s(pid) - before, time.perf_counter() - start
    name = client.curve_names(done.run_id)[0]
    return *spent, sum(client.query_curve(done.run_id, name).count)


def bare(path: Path, rows: int) -> float:
    """CPU seconds of a plain insert of so many rows, the baseline where TensorBoard is not installed."""
    path.unlink(missing_ok=True)
    with contextlib.closing(sqlite3.connect(path)) as db:
        db.execute("CREATE TABLE metrics (seq INTEGER PRIMARY KEY, ts_ns INTEGER, step INTEGER, value REAL)")
        begun = time.process_time()
        with db:
            db.executemany("INSERT INTO metrics VALUES (?, ?, ?, ?)", ((i, i, i, float(i)) for i in range(rows)))
        return time.process_time() - begun


def theirs(python: str, folder: Path) -> float:
    path = next(folder.glob("*tfevents*"))
    words = subprocess.run([python, "-c", THEIRS, str(path)], capture_output=True, text=True, check=True).stdout.split()
    return float(words[1]) / int(words[0])


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--scalars", type=int, default=1_000_000)
    parser.add_argument("--tensorboard", default=".venv-observe/bin/python", help="a Python that has TensorBoard")
    args = parser.parse_args()
    rows = []
    with tempfile.TemporaryDirectory() as place, lab() as daemon:
        for title, tags in (("nine tags per step", TAGS), ("one tag", ("charts/episodic_return",))):
            folder, part = Path(place, title.replace(" ", "-")), Path(place, f"part-{len(tags)}")
            for each, many in ((folder, args.scalars), (part, args.scalars // 10)):
                each.mkdir()
                write(each / "events.out.tfevents.1", many, tags)
            client_s, daemon_s, wall_s, points = ours(daemon, folder)
            floor_s = bare(Path(place, "bare"), args.scalars // 10) * 10
            total = client_s + daemon_s
            peer = theirs(args.tensorboard, part) * args.scalars if os.path.exists(args.tensorboard) else float("nan")
            ok = total <= MOST_CPU_S * args.scalars / 1e6
            rows.append((title, f"{client_s:.1f} s", f"{daemon_s:.1f} s", f"{total:.1f} s", f"{wall_s:.1f} s",
                         f"{total / floor_s:.1f}", f"{peer:.1f} s", f"{total / peer:.2f}",
                         f"{points:,}", verdict(ok)))  # fmt: skip
    headings = (
        "file",
        "client",
        "daemon",
        "both",
        "wall",
        "× bare insert",
        "TensorBoard reads",
        "ratio",
        "points of a curve",
        "≤ 10 s per million",
    )
    table(f"Import of {args.scalars:,} scalars (CPU)", [headings, *rows])


if __name__ == "__main__":
    main()
