"""The adversary at length: every file of the trust table with every damage, as each user, then random cases.

    python benchmarks/adversary.py [--cases 2000] [--seed 1] [--first 0] [--jobs 2] [--minutes 240] [--journal FILE]
    python benchmarks/adversary.py --seed S --case N --user root        one case again

Verdicts are appended to the journal; the same command continues after the last one. Prints every violation with the
options that repeat it, and at the end the tables for docs/reliability.md. Exit code 1 if a promise was broken.
"""

import argparse
import json
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

# The same adversary as in `make test`, which plays about 60 cases.
sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "faults"))

from adversary import Case, make_case, walked
from adversary_session import Session, users
from adversary_trial import ABSENT, IMPOSSIBLE, REACHED

BUILD = Path(__file__).parents[1] / "build"
PER_SESSION = 25
COUNTS = "cases | reached the file | impossible | not in this layout | broken |\n|---|---|---|---|---|---|"
Task = tuple[int, str, int]  # its place in the journal, the user, the number of the case


class Journal:
    """Verdicts on the disk: a long run can be stopped and continued."""

    def __init__(self, path: Path, seed: int) -> None:
        self.path = path
        self.verdicts: dict[int, dict[str, Any]] = {}
        self._lock = threading.Lock()
        path.parent.mkdir(parents=True, exist_ok=True)
        for line in path.read_text().splitlines() if path.exists() else ():
            try:
                verdict = json.loads(line)
            except ValueError:
                continue  # the last line of a run that was killed
            if verdict["case"]["seed"] == seed:
                self.verdicts[verdict["index"]] = verdict

    def add(self, index: int, verdict: dict[str, Any]) -> None:
        with self._lock:
            self.verdicts[index] = verdict | {"index": index}
            with self.path.open("a") as file:
                file.write(json.dumps(self.verdicts[index]) + "\n")


def main() -> int:
    args = _parser().parse_args()
    if args.case is not None:
        return _play_one(args)
    journal = Journal(args.journal or BUILD / f"adversary-{args.seed}.jsonl", args.seed)
    began, deadline = time.monotonic(), time.monotonic() + args.minutes * 60
    todo = [task for task in _tasks(args) if task[0] not in journal.verdicts]
    print(f"{len(todo)} cases to play, {len(journal.verdicts)} in {journal.path}", flush=True)

    def work(chunk: list[Task]) -> None:
        if time.monotonic() > deadline:
            return
        for (index, _, _), verdict in zip(chunk, _play(args.seed, chunk), strict=True):
            journal.add(index, verdict)
            _report(verdict)
        broken = sum(bool(one["violations"]) for one in journal.verdicts.values())
        print(f"{len(journal.verdicts)} cases, {broken} broken, {time.monotonic() - began:.0f} s", flush=True)

    with ThreadPoolExecutor(args.jobs) as pool:
        list(pool.map(work, _chunks(todo)))
    _print_summary(list(journal.verdicts.values()), args.seed, time.monotonic() - began)
    return int(any(one["violations"] for one in journal.verdicts.values()))


def _tasks(args: argparse.Namespace) -> Iterator[Task]:
    """The whole table once per user, then random cases, in turn for each user."""
    table, who = len(walked()), users()
    for index in range(args.first, args.first + args.cases):
        if index < table * len(who):
            yield index, who[index // table], index % table
        else:
            yield index, who[index % len(who)], table + index - table * len(who)


def _chunks(tasks: list[Task]) -> Iterator[list[Task]]:
    """Cases of one user; a session costs a start."""
    for user in users():
        mine = [task for task in tasks if task[1] == user]
        yield from (mine[at : at + PER_SESSION] for at in range(0, len(mine), PER_SESSION))


def _play(seed: int, chunk: list[Task]) -> Iterator[dict[str, Any]]:
    return Session(chunk[0][1]).verdicts([make_case(seed, number) for _, _, number in chunk])


def _play_one(args: argparse.Namespace) -> int:
    task = (0, args.user or users()[0], args.case)
    verdicts = list(_play(args.seed, [task]))
    for verdict in verdicts:
        print(f"{Case(**verdict['case'])}: {verdict['outcome']} {verdict['note']} ({verdict['wall_s']} s)")
        _report(verdict)
    return int(any(verdict["violations"] for verdict in verdicts))


def _report(verdict: dict[str, Any]) -> None:
    if not verdict["violations"]:
        return
    case = Case(**verdict["case"])
    words = "\n".join(f"  {violation}" for violation in verdict["violations"])
    again = f"--seed {case.seed} --case {case.number} --user '{verdict['user']}'"
    print(f"\nBROKEN {case} as {verdict['user']}\n{words}\n  repeat with: {again}", flush=True)


def _print_summary(verdicts: list[dict[str, Any]], seed: int, wall_s: float) -> None:
    print(f"\nseed {seed}: {len(verdicts)} cases, {wall_s:.0f} s in this session\n")
    groups = {
        "user": lambda one: one["user"],
        "damage": lambda one: one["case"]["damage"],
        "file": lambda one: f"`{one['case']['place']}`",
    }
    for title, name_of in groups.items():
        print(f"| {title} | {COUNTS}")
        for name in dict.fromkeys(map(name_of, verdicts)):
            print(_row(name, [one for one in verdicts if name_of(one) == name]))
        print()


def _row(name: str, verdicts: list[dict[str, Any]]) -> str:
    outcomes = Counter(one["outcome"] for one in verdicts)
    broken = sum(bool(one["violations"]) for one in verdicts)
    counts = (len(verdicts), outcomes[REACHED], outcomes[IMPOSSIBLE], outcomes[ABSENT], broken)
    return f"| {name} | {' | '.join(f'{count:,}' for count in counts)} |"


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="adversary", description=__doc__.partition("\n")[0])
    parser.add_argument("--cases", type=int, default=2_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--first", type=int, default=0, help="index of the first case")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--minutes", type=float, default=240.0, help="no session starts after this time")
    parser.add_argument("--journal", type=Path, help="default: build/adversary-SEED.jsonl")
    parser.add_argument("--case", type=int, help="play only the case with this number")
    parser.add_argument("--user", choices=("root", "ordinary user"), help="of --case")
    return parser


if __name__ == "__main__":
    sys.exit(main())
