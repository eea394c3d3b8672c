"""The fault lab at length: many random schedules, each with its own MOSAIC, each checked.

    python benchmarks/faults.py --schedules N --minutes M --seed S [--first K] [--jobs 2] [--keep] [--evaluations]

Prints every schedule that broke a guarantee, with the options that repeat it (`--seed S --first K --schedules 1`), and
a table of how often each fault was injected. Exit code 1 if a guarantee was broken. `--evaluations`: of the real eval
worker (make .venv-eval/.ready), with the faults of operators.
"""

import argparse
import multiprocessing
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

# The same lab as in `make test`, which runs a few schedules.
sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "faults"))

from evaluation_schedule import make_evaluation
from evaluation_trial import run_evaluation
from preload import can_preload
from rig import p50, table
from schedule import make_schedule
from trial import Report, may_mount, run_trial

from mosaic.model.failpoints import POINTS


def main() -> int:
    args = _parser().parse_args()
    reports = []
    began = time.monotonic()
    for report in _reports(args):
        reports.append(report)
        if report.violations:
            _print_broken(report)
        if len(reports) % 25 == 0:
            broken = sum(bool(report.violations) for report in reports)
            print(f"{len(reports)} schedules, {broken} broken, {time.monotonic() - began:.0f} s", flush=True)
    _print_summary(reports, args.seed, time.monotonic() - began)
    return int(any(report.violations for report in reports))


def _reports(args: argparse.Namespace) -> Iterator[Report]:
    """Results as they arrive; no schedule starts after the time is up."""
    deadline = time.monotonic() + args.minutes * 60
    mounts, preload = may_mount(), can_preload()
    numbers = iter(range(args.first, args.first + args.schedules))

    def tasks() -> Iterator[tuple[int, int, bool, bool, bool, bool]]:
        for number in numbers:
            if time.monotonic() > deadline:
                return
            yield args.seed, number, mounts, preload, args.keep, args.evaluations

    # spawn, because a forked process with gRPC threads hangs.
    with multiprocessing.get_context("spawn").Pool(args.jobs, maxtasksperchild=50) as pool:
        running = []
        for task in tasks():
            running.append(pool.apply_async(_one, task))
            while len([one for one in running if not one.ready()]) >= args.jobs:
                time.sleep(0.02)
            done = [one for one in running if one.ready()]
            running = [one for one in running if one not in done]
            yield from (one.get() for one in done)
        yield from (one.get() for one in running)


def _one(seed: int, number: int, mounts: bool, preload: bool, keep: bool, is_evaluation: bool) -> Report:
    if is_evaluation:
        return run_evaluation(make_evaluation(seed, number), keep)
    return run_trial(make_schedule(seed, number, mounts, preload), keep)


def _print_broken(report: Report) -> None:
    print(f"\nBROKEN {report.schedule}")
    for violation in report.violations:
        print(f"  {violation}")
    print(f"  repeat with: --seed {report.schedule.seed} --first {report.schedule.number} --schedules 1", end="")
    print(f"; its folder: {report.kept}" if report.kept else "; add --keep to keep its folder", flush=True)


def _print_summary(reports: list[Report], seed: int, wall_s: float) -> None:
    done: Counter[str] = sum((report.done for report in reports), Counter())
    points = Counter(name.partition(":")[0] for name in done.elements() if name.partition(":")[0] in POINTS)
    faults = [(name, str(done[name])) for name in sorted(done) if name.partition(":")[0] not in POINTS]
    table("faults", [("fault", "times"), *faults])
    if points:
        _print_failpoints(done, points)
    runs = sum(len(report.schedule.runs) for report in reports)
    readopted = [seconds for report in reports for seconds in report.readopted_s]
    broken = [report for report in reports if report.violations]
    took = sum(times for name, times in done.items() if "too late" not in name)
    print(f"\nseed {seed}: {len(reports)} schedules, {runs} runs, {took} faults in {wall_s:.0f} s")
    if readopted:
        times = f"p50 {p50(readopted):.2f} s, longest {max(readopted):.2f} s (limit: 2 s)"
        print(f"re-adoption: {len(readopted)} times, {times}")
    if points:
        print(f"failpoints never reached: {', '.join(name for name in POINTS if not points[name]) or 'none'}")
    print(f"violations: {sum(len(report.violations) for report in broken)} in {len(broken)} schedules")


def _print_failpoints(done: Counter[str], points: Counter[str]) -> None:
    actions = {
        name: [(one.partition(":")[2], done[one]) for one in sorted(done) if one.startswith(f"{name}:")]
        for name in POINTS
    }
    words = {name: " ".join(f"{action} {times}" for action, times in actions[name]) for name in POINTS}
    table("failpoints", [("failpoint", "acted", "as"), *((name, str(points[name]), words[name]) for name in POINTS)])


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="faults", description=__doc__.partition("\n")[0])
    parser.add_argument("--schedules", type=int, default=100)
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--first", type=int, default=0, help="number of the first schedule")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--evaluations", action="store_true", help="evaluations instead of toy runs")
    parser.add_argument("--keep", action="store_true", help="keep the folders of broken schedules")
    return parser


if __name__ == "__main__":
    sys.exit(main())
