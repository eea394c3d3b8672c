"""Cases in a process of its own, as any user: a hanging call, a memory limit and a user id stay in that process.

adversary_session.py BASE        reads cases as JSON lines, writes a verdict for each
"""

import ctypes
import json
import os
import resource
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from adversary import Case
from adversary_ground import Ground, remove_tree
from adversary_trial import LOST, Verdict, play
from ordinary_user import NOBODY, make_environment, python_for_nobody

CASES_PER_GROUND = 25
ADDRESS_SPACE = 6 << 30  # bytes: what reads a file without an end fails, and does not take the machine with it
PR_SET_PDEATHSIG = 1
ROOT, ORDINARY = "root", "ordinary user"
ME = ROOT if os.geteuid() == 0 else ORDINARY


def users() -> list[str]:
    """As whom cases can be played here: ourselves, and nobody if we are root."""
    return [ROOT, *([ORDINARY] if python_for_nobody() else [])] if ME == ROOT else [ORDINARY]


@dataclass
class Session:
    """A child that plays cases as `user`, and its folder."""

    user: str
    python_path: str = ""

    def verdicts(self, cases: Iterable[Case]) -> Iterator[dict[str, Any]]:
        base = Path(tempfile.mkdtemp(prefix="mosaic-s-"))
        python = sys.executable
        who: dict[str, Any] = {}
        if self.user != ME:
            python = make_environment(base / "python")
            os.chown(base, NOBODY, NOBODY)
            who = {"user": NOBODY, "group": NOBODY, "extra_groups": []}
        child = subprocess.Popen(
            [python, __file__, str(base)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=self._environment(base),
            text=True,
            **who,
        )
        try:
            yield from self._talk(child, list(cases))
        finally:
            child.kill()
            child.wait()
            _kill_all_of(base)
            remove_tree(base)

    def _talk(self, child: "subprocess.Popen[str]", cases: list[Case]) -> Iterator[dict[str, Any]]:
        assert child.stdin
        assert child.stdout
        child.stdin.write("".join(json.dumps(case.to_dict()) + "\n" for case in cases))
        child.stdin.close()
        count = 0
        for line in child.stdout:
            count += 1
            yield json.loads(line) | {"user": self.user}
        for case in cases[count:]:  # the child died
            lost = Verdict(case.to_dict(), LOST, violations=["the session ended before this case"])
            yield lost.to_dict() | {"user": self.user}

    def _environment(self, base: Path) -> dict[str, str]:
        mine = {name: value for name, value in os.environ.items() if not name.startswith(("MOSAIC_", "XDG_"))}
        mine |= {"HOME": str(base), "TMPDIR": str(base), "GRPC_ENABLE_FORK_SUPPORT": "0"}
        if self.python_path:
            mine["PYTHONPATH"] = self.python_path
        return mine


def _kill_all_of(base: Path) -> None:
    """What names the folder in its command line or environment was started by this session."""
    mark = str(base).encode()
    while found := [pid for pid in _pids() if mark in _about(pid)]:
        for pid in found:
            try:
                os.kill(pid, 9)
            except ProcessLookupError:
                pass


def _pids() -> list[int]:
    return [int(name) for name in os.listdir("/proc") if name.isdigit() and int(name) != os.getpid()]


def _about(pid: int) -> bytes:
    try:
        return b"".join(Path(f"/proc/{pid}/{name}").read_bytes() for name in ("cmdline", "environ"))
    except OSError:
        return b""


def main() -> None:
    resource.setrlimit(resource.RLIMIT_AS, (ADDRESS_SPACE, ADDRESS_SPACE))
    base = Path(sys.argv[1])
    _end_with_the_parent(base)
    cases = [Case(**json.loads(line)) for line in sys.stdin]
    while cases:
        batch, cases = cases[:CASES_PER_GROUND], cases[CASES_PER_GROUND:]
        played = play_on_one_ground(batch, base, sys.stdout)
        cases = batch[played:] + cases
    sys.stdout.flush()
    os._exit(0)  # abandoned threads may wait for ever


def _end_with_the_parent(base: Path) -> None:
    """A test that is killed leaves neither processes nor FIFOs."""

    def leave(*_: object) -> None:
        _kill_all_of(base)
        remove_tree(base)
        os._exit(1)

    signal.signal(signal.SIGTERM, leave)
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)


def play_on_one_ground(batch: list[Case], base: Path, out: IO[str]) -> int:
    """Play until the ground is broken or used up; returns how many were played.

    The last verdict includes the bystanders'.
    """
    ground = Ground(base)
    last: Verdict | None = None
    for number, case in enumerate(batch):
        if last:
            print(json.dumps(last.to_dict()), file=out, flush=True)
        last = play(ground, case, sum(one.is_of_one_run for one in batch[number:]))
        if ground.is_broken or ground.is_used_up:
            break
    else:
        number = len(batch) - 1
    among = ", ".join(str(case.number) for case in batch[: number + 1])
    if last:
        last.violations += [f"{problem} (after the cases {among})" for problem in ground.close()]
        print(json.dumps(last.to_dict()), file=out, flush=True)
    return number + 1


if __name__ == "__main__":
    main()
