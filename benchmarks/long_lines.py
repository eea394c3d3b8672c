"""The cost of a 4 MB line in the tailer, from the spool to the request on the wire.

The baseline: the same line read from the file and parsed by json.loads.

python benchmarks/long_lines.py [--megabytes 4] [--rounds 5]
"""

import argparse
import json
import multiprocessing
import random
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from rig import table, verdict

from mosaic.tail.parse import Parser
from mosaic.tail.request import Requests
from mosaic.tail.spool_reader import Spool
from mosaic.wire import mosaic_pb2 as pb

RUN = "01JD0000000000000000000000"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--megabytes", type=float, default=4.0)
    parser.add_argument("--rounds", type=int, default=5)
    args = parser.parse_args()
    size = int(args.megabytes * 1e6)
    rows = [("a step line with", "bare", "tailer", "ratio", "above idle", "target", "")]
    for name, (line, keep) in lines(size).items():
        bare_s, ours_s = times(line, keep, args.rounds)
        above_mb = memory_mb(line, keep)
        good = ours_s <= 1.3 * bare_s and above_mb <= 100
        cells = (f"{bare_s * 1e3:.0f} ms", f"{ours_s * 1e3:.0f} ms", f"{ours_s / bare_s:.2f} ×", f"{above_mb:.0f} MB")
        rows.append((name, *cells, "≤ 1.3 ×, ≤ 100 MB", verdict(good)))
    table(f"Lines of {size:,} bytes, CPU and memory (medians of {args.rounds})", rows)


def lines(size: int) -> "dict[str, tuple[bytes, bool]]":
    """Kinds of long lines, and whether the config keeps their observation."""
    chance = random.Random(1)
    pixels = _grow(size, lambda: [chance.randrange(256) for _ in range(3)])
    floats = _grow(size, lambda: chance.random())
    holes = _grow(size, lambda: chance.choice([chance.random(), float("nan"), float("-inf")]))
    names = {f"agent {number} [{{": number / 7 for number in range(size // 40)}
    return {
        "pixels, nested": (_step(observation=pixels), False),
        "pixels, kept": (_step(observation=pixels), True),
        "floats, flat": (_step(observation=floats), False),
        "NaN and infinities": (_step(observation=holes), False),
        "NaN, kept": (_step(observation=holes), True),
        "one long text": (_step(observation="Zm9v" * (size // 4)), False),
        "many names in info": (_step(info=names), False),
        "a metric of many values": (_line(type="metric", step=1, values=names), False),
    }


def times(line: bytes, keep: bool, rounds: int) -> "tuple[float, float]":
    """CPU seconds of a bare json.loads and of the tailer, measured alternately."""
    with tempfile.TemporaryDirectory() as folder:
        path = _spool(Path(folder), line)
        taken = [
            (_cpu_s(lambda: json.loads(path.read_bytes())), _cpu_s(lambda: tail(path, keep))) for _ in range(rounds)
        ]
    return statistics.median(bare for bare, _ in taken), statistics.median(ours for _, ours in taken)


def memory_mb(line: bytes, keep: bool) -> float:
    """The peak memory of a separate process, above its initial memory."""
    with tempfile.TemporaryDirectory() as folder, multiprocessing.get_context("spawn").Pool(1) as pool:
        return float(pool.apply(_above_idle_mb, (_spool(Path(folder), line), keep)))


def tail(path: Path, keep: bool) -> int:
    """Turn a whole spool into requests on the wire; return their size in bytes."""
    requests = Requests(RUN, Parser(RUN, keep_observations=keep))
    spool, sent = Spool(path), 0
    while piece := spool.read():
        sent += sum(len(request.SerializeToString()) for _, request in requests.small(pb.STDOUT, piece))
    spool.close()
    return sent


def _above_idle_mb(path: Path, keep: bool) -> float:
    Path("/proc/self/clear_refs").write_text("5")  # resets the peak, which is inherited from the parent
    before = _high_water_mb()
    tail(path, keep)
    return _high_water_mb() - before


def _high_water_mb() -> float:
    return int(Path("/proc/self/status").read_text().partition("VmHWM:")[2].split()[0]) / 1024


def _cpu_s(work: Callable[[], object]) -> float:
    start = time.process_time()
    work()
    return time.process_time() - start


def _grow(size: int, value: Callable[[], object]) -> "list[object]":
    """A list whose JSON has about `size` bytes."""
    some = [value() for _ in range(1000)]
    return [value() for _ in range(size * 1000 // len(json.dumps(some)))]


def _step(**fields: object) -> bytes:
    return _line(type="step", step_index=1, reward=0.5, **fields)


def _line(**fields: object) -> bytes:
    return json.dumps(fields).encode() + b"\n"


def _spool(folder: Path, line: bytes) -> Path:
    path = folder / "spool"
    path.write_bytes(line)
    return path


if __name__ == "__main__":
    main()
