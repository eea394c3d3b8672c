"""One case of the adversary on its ground: prove the damage, look at everybody else, end the victim, delete it."""

import contextlib
import os
import shutil
import signal
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from adversary import CANCEL, KILL_HOLDER, RESTART, WORKER, Case
from adversary_ground import Ground, Hangs, Insider, bounded
from damage import FOLDER, HUGE_BYTES, PASSWD, ZERO, inflict, look
from invariants import record_lines
from trust_table import path_of, read_table
from watch import still_alive

from mosaic.client.run import Run
from mosaic.model.errors import MosaicError
from mosaic.model.rundir import RunDir
from mosaic.model.states import RunState

REACHED, IMPOSSIBLE, ABSENT, LOST = "reached", "impossible", "not in this layout", "not played"
# What the worker prints is its own: nobody can say what a changed spool has lost.
ITS_OWN_WORDS = ("run.stdout", "run.stderr", "run.logs", "run.path")
# The registry mends itself, after a sentence; the rest of the root may refuse a start until the user has acted.
MENDS_ITSELF = ("root.registry", "root.registry-wal")
CONTENT = ("missing", "empty", "truncated", "flipped byte", "wrong type")
# What needs a regular file; and what a daemon may leave as it is, because it can serve with it.
OF_BYTES = ("empty", "truncated", "flipped byte", "wrong type", "huge", "another run's")
STAYS = (
    "FIFO",
    "directory",
    "link to itself",
    "link elsewhere",
    "link to /dev/zero",
    "huge",
    "other owner",
    "mode 000",
)
METRIC = "insider/step"
SAY_HOW_IT_IS = ("run.exit", "run.started", "run.owner_lock", "run.launch")
SWEEP_S = 2.5
HIDDEN_PLACES = {row.place for row in read_table() if "hidden" in row.writers}
NAMESPACE = "namespace"  # without one, everything of the same user can be written
FIRST_EVENTS = 3  # the run is live, and a stream without an end would wait
OUTSIDE = (PASSWD, ZERO, FOLDER)


@dataclass
class Verdict:
    case: dict[str, Any]
    outcome: str = ABSENT
    note: str = ""  # why it was impossible, or how the victim ended
    violations: list[str] = field(default_factory=list)
    wall_s: float = 0.0

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


def play(ground: Ground, case: Case, still_needed: int = 1) -> Verdict:
    verdict = Verdict(case.to_dict())
    began, outside = time.monotonic(), _outside()
    try:
        act = _play_on_a_run if case.is_of_one_run else _play_on_the_root
        act(ground, case, verdict, still_needed)
    except Exception as error:  # noqa: BLE001 - the edge: a case that cannot continue has found a problem
        ground.is_broken = True
        verdict.violations.append(f"the case could not continue: {type(error).__name__}: {_first_line(error)}")
    if changed := _outside() ^ outside:
        verdict.violations.append(f"something outside the state root changed: {sorted(changed)}")
    verdict.wall_s = round(time.monotonic() - began, 2)
    return verdict


# ---- a file of one run


def _play_on_a_run(ground: Ground, case: Case, verdict: Verdict, still_needed: int) -> None:
    if path_of(case.place, ground.root, ground.finished.rundir) is None:
        return
    victim = ground.victim(still_needed)
    daemons = ground.daemons()
    if not _damage(ground, case, victim, verdict):
        ground.give_back(victim)
        return
    verdict.violations += _answers_about(ground, victim)
    verdict.violations += ground.check()
    if ground.is_broken:
        return
    if case.then == RESTART:
        ground.kill_daemon()
        ground.connect()
    verdict.violations += _is_over_too_early(ground, case, victim)
    _continue(ground, case, victim)
    now = _wait_for_the_end(ground, victim, verdict)
    if now is None:
        return
    verdict.note = f"{now.state} {now.reason.partition(chr(10))[0]}".strip()
    verdict.violations += _judge_the_victim(ground, case, victim, now)
    verdict.violations += _delete(ground, victim)
    verdict.violations += ground.check(must_grow=case.then == RESTART)
    if case.then != RESTART and ground.daemons() != daemons:
        verdict.violations.append(f"the daemon {daemons} was replaced by {ground.daemons()}")


def _damage(ground: Ground, case: Case, victim: Insider, verdict: Verdict) -> bool:
    """Whether the damage reached the file; the verdict says so."""

    def place_in(rundir: RunDir) -> Path | None:
        return path_of(case.place, ground.root, rundir)

    path, donor = place_in(victim.rundir), ground.donor(case.place, place_in)
    assert path is not None
    before = look(path)
    act: Callable[[str, Path, Path], dict[str, Any]] = victim.damage if case.by == WORKER else inflict
    proof = act(case.damage, path, donor)
    is_elsewhere = proof["before"]["place"] != before["place"]
    if proof["refused"] or is_elsewhere:
        verdict.outcome = IMPOSSIBLE
        verdict.note = "hidden from the worker" if is_elsewhere else proof["refused"]
        return False
    verdict.outcome = REACHED
    if case.by == WORKER and case.place in HIDDEN_PLACES and NAMESPACE in _held_by(ground, victim):
        verdict.violations.append("the trust table says that the worker cannot write it")
    return True


def _held_by(ground: Ground, victim: Insider) -> str:
    return bounded("GetRun", lambda: ground.lab.client.get_run(victim.run.run_id)).held_by


def _answers_about(ground: Ground, victim: Insider) -> list[str]:
    """Whatever is asked about the victim is answered, or refused with a sentence."""
    run_id, client = victim.run.run_id, ground.lab.client
    questions: dict[str, Callable[[], object]] = {
        "GetRun": lambda: client.get_run(run_id),
        "QueryCurve": lambda: client.query_curve(run_id, METRIC, 100),
        "StreamRunEvents": lambda: list(client.stream_events(run_id, 0, FIRST_EVENTS)),
        "StreamRunLogs": lambda: list(client.stream_logs(run_id)),
    }
    found = []
    for name, question in questions.items():
        try:
            bounded(name, question)
        except Hangs as error:
            ground.is_broken = True
            found.append(f"{error}")
        except MosaicError as error:
            if name == "GetRun" or "Traceback" in str(error):
                found.append(f"{name} fails: {_first_line(error)}")
    return found


def _is_over_too_early(ground: Ground, case: Case, victim: Insider) -> list[str]:
    """Nothing has ended the victim yet. The dispatcher looks at every run once in its sweep."""
    deadline = time.monotonic() + (SWEEP_S if case.place in SAY_HOW_IT_IS else 0.0)
    while True:
        now = bounded("GetRun", lambda: ground.lab.client.get_run(victim.run.run_id))
        if now.state.is_over and (left := still_alive(victim.tree)):
            return [f"the victim is {now.state} '{_first_line(now.reason)}' and its processes {left} are alive"]
        if now.state.is_over or time.monotonic() > deadline:
            return []
        time.sleep(0.1)


def _continue(ground: Ground, case: Case, victim: Insider) -> None:
    if case.then == CANCEL:
        bounded("CancelRun", lambda: ground.lab.client.cancel_run(victim.run.run_id))
    elif case.then == KILL_HOLDER:
        with contextlib.suppress(ProcessLookupError):
            os.kill(victim.holder_pid, signal.SIGKILL)
    else:
        victim.finish()


def _wait_for_the_end(ground: Ground, victim: Insider, verdict: Verdict) -> Run | None:
    try:
        return ground.wait_until_over(victim)
    except (Hangs, MosaicError) as error:
        verdict.violations.append(f"the victim: {_first_line(error)}")
    # The rest of the case and the end of the ground do not wait for it.
    ground.is_broken = True
    for pid in still_alive(victim.tree):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    return None


def _judge_the_victim(ground: Ground, case: Case, victim: Insider, now: Run) -> list[str]:
    found = []
    if left := still_alive(victim.tree):
        found.append(f"the victim is {now.state} '{_first_line(now.reason)}' and its processes {left} are alive")
    if now.state is RunState.FAULTED and not now.reason:
        found.append("the victim is FAULTED without a reason")
    if case.then == CANCEL and now.state is RunState.TERMINATED:
        found.append("the victim was cancelled and is TERMINATED")
    if case.place not in ITS_OWN_WORDS and not now.telemetry:
        found += _missing_lines(ground, victim)
    return found


def _missing_lines(ground: Ground, victim: Insider) -> list[str]:
    """A run whose telemetry is said to be complete has all of its lines."""
    steps = sum(" step " in line for line in record_lines(victim.record))
    try:
        stored = bounded("StreamRunEvents", lambda: ground.lab.events(victim.run, "step"))
    except Hangs as error:
        ground.is_broken = True
        return [str(error)]
    except MosaicError:
        return []  # it says so
    if len(stored) < steps:
        return [f"the victim printed {steps} steps, {len(stored)} are stored, and its telemetry is said to be complete"]
    return []


def _delete(ground: Ground, victim: Insider) -> list[str]:
    run_id, rundir = victim.run.run_id, victim.rundir
    try:
        bounded("DeleteRun", lambda: ground.lab.client.delete_run(run_id), 30)
        listed = [run.run_id for run in bounded("ListRuns", ground.lab.client.list_runs).runs]
    except (Hangs, MosaicError) as error:
        return [f"rm: {_first_line(error)}"]
    left = [path for path in (rundir.path, getattr(rundir, "control", None)) if path and os.path.lexists(path)]
    found = [f"rm left {path}" for path in left]
    return found + (["rm left it in the listing"] if run_id in listed else [])


# ---- a file that all runs share


def _play_on_the_root(ground: Ground, case: Case, verdict: Verdict, still_needed: int) -> None:
    path = path_of(case.place, ground.root, ground.finished.rundir)
    if path is None:
        return
    if not os.path.lexists(path):
        verdict.outcome, verdict.note = IMPOSSIBLE, "it does not exist"
        return
    path = file_in(path, case.damage)
    original = _put_aside(ground, path)
    proof = inflict(case.damage, path, ground.donor(case.place, lambda _: None))
    if proof["refused"]:
        verdict.outcome, verdict.note = IMPOSSIBLE, proof["refused"]
        if proof["before"] != proof["after"]:
            # Not below a live daemon: one whose lock or registry has another inode ends.
            ground.kill_daemon()
            _put_back(original, path)
            ground.connect()
        return
    verdict.outcome = REACHED
    _ask_the_live_daemon(ground, verdict)
    ground.kill_daemon()
    try:
        ground.connect()
        verdict.note = "a new daemon serves"
    except Exception as error:  # noqa: BLE001 - the client must refuse in words, whatever it read
        verdict.note = f"refused: {_first_line(error)}"
        if not isinstance(error, MosaicError) or (case.place in MENDS_ITSELF and case.damage in CONTENT):
            verdict.violations.append(f"a new daemon: {type(error).__name__}: {_first_line(error)}")
        ground.kill_daemon()
        _put_back(original, path)
        ground.connect()
    verdict.violations += ground.check()
    # The daemon may serve with the damage as it is; the next case must find a whole file.
    ground.is_used_up = is_left(case, proof["after"], path)


def file_in(path: Path, damage: str) -> Path:
    """What changes the bytes of a file is done to the first one in a folder, such as a piece of the reserve."""
    if damage not in OF_BYTES or path.is_symlink() or not path.is_dir():
        return path
    return next(iter(sorted(path.iterdir())), path)


def is_left(case: Case, damaged: dict[str, Any], path: Path) -> bool:
    now = look(path)
    return case.damage in STAYS and (now["type"], now.get("inode")) == (damaged["type"], damaged.get("inode"))


def _ask_the_live_daemon(ground: Ground, verdict: Verdict) -> None:
    """It may refuse, but it does not hang, and the runs live on."""
    for name, question in {"GetHealth": ground.lab.client.health, "ListRuns": ground.lab.client.list_runs}.items():
        try:
            bounded(name, question)
        except Hangs as error:
            verdict.violations.append(f"the live daemon: {error}")
        except MosaicError:
            pass
    if dead := [one.run.run_id for one in ground.bystanders if not still_alive(one.tree)]:
        verdict.violations.append(f"the workers of {dead} are dead")


def _put_aside(ground: Ground, path: Path) -> Path:
    """A second name for a socket, a copy of a file or a folder, which must be whole."""
    original = ground.home / "aside" / f"{time.monotonic_ns()}"
    found = look(path)
    if found["type"] not in ("file", "folder", "socket or device") or found["size"] >= HUGE_BYTES:
        raise AssertionError(f"{path} was not whole before this case: {found}")
    if path.is_socket():
        os.link(path, original)
    elif path.is_dir():
        shutil.copytree(path, original, symlinks=True)
    else:
        shutil.copy2(path, original)
    return original


def _put_back(original: Path, path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        path.chmod(0o700)
        shutil.rmtree(path)
    elif original.is_dir() and os.path.lexists(path):
        path.unlink()
    original.replace(path)


def _outside() -> set[str]:
    """Names and bytes too: a daemon of root could write through a link without changing what the link leads to."""
    os.makedirs(FOLDER, exist_ok=True)
    names = {f"{FOLDER}/{name}" for name in os.listdir(FOLDER)}
    found = {path: os.stat(path) for path in OUTSIDE}
    facts = {f"{path} {one.st_mode:o} {one.st_uid} {one.st_ino}" for path, one in found.items()}
    return names | facts | {f"{found[PASSWD].st_size} {found[PASSWD].st_mtime_ns}"}


def _first_line(words: object) -> str:
    return str(words).partition("\n")[0][:300]
