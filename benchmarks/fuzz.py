"""Malformed lines through the parser: none may raise, and every byte is kept once.

    python benchmarks/fuzz.py --lines 1000000 --seed 1

Each round has its own seed, which a failure prints, so that it can be repeated alone.
"""

import argparse
import sys
import time
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "faults"))

from odd_lines import RUN_ID, OddLines, problem_with

from mosaic.tail.parse import Parser, Request

ROUND = 2_000


def fuzz(seed: int, lines: int, counts: "Counter[str]", seen: "set[int]") -> str:
    """Run one round; return the problem, or an empty text."""
    data = OddLines(seed).some(lines)
    if seed % 3 == 0:
        data = data[:-1]  # the last line was cut by a kill
    request = Request(run_id=RUN_ID)
    Parser(RUN_ID, keep_observations=seed % 2 == 0).parse(data, 0, 1, request)
    Request.FromString(request.SerializeToString())
    seen.update(map(hash, data.split(b"\n")))
    counts.update(event.WhichOneof("kind") for event in request.events)
    counts.update(lines=lines, bytes=len(data), rejects=len(request.rejects), texts=len(request.texts))
    return problem_with(data, request)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--lines", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    counts: Counter[str] = Counter()
    seen: set[int] = set()
    began = time.monotonic()
    for number in range(-(-args.lines // ROUND)):
        seed = args.seed * 1_000_003 + number
        if problem := fuzz(seed, ROUND, counts, seen):
            print(f"round seed {seed}: {problem}")
            return 1
    took_s = time.monotonic() - began
    print(f"seed {args.seed}: {counts['lines']:,} lines, {len(seen):,} of them distinct, {counts['bytes']:,} bytes")
    for name in ("step", "episode", "metric", "lifecycle", "rejects", "texts"):
        print(f"  {name:<10}{counts[name]:>12,}")
    print(f"  0 problems in {took_s:.1f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
