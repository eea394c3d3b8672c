"""Which processes the local launcher takes for those of a run: never those of another root's."""

import asyncio
import os
import shutil
import subprocess
import sys

import pytest
from oddities import ODDITIES, plant

from mosaic.dispatch.launcher import Ref
from mosaic.dispatch.local_launcher import LocalLauncher
from mosaic.dispatch.situation import Case, situation
from mosaic.model import durable, procfs, shortage
from mosaic.model.rundir import StateRoot
from mosaic.model.ulid import new_ulid

SLEEP = "import sys; print(1, flush=True); sys.stdin.read()"
LOCK_AND_SLEEP = f"import fcntl, sys; lock = open(sys.argv[-1], 'w'); fcntl.flock(lock, fcntl.LOCK_EX); {SLEEP}"


@pytest.fixture
def rundir(tmp_path):
    rundir = StateRoot(tmp_path / "original").run("runs", new_ulid())
    rundir.make()
    return rundir


@pytest.fixture
def copy(rundir, tmp_path):
    shutil.copytree(tmp_path / "original", tmp_path / "copy")
    return StateRoot(tmp_path / "copy").run("runs", rundir.run_id)


@pytest.fixture
def worker(rundir):
    """A process of the run in the original root, as a dead holder leaves it: also with the holder's command line."""
    env = {"MOSAIC_RUN_ID": rundir.run_id, "MOSAIC_RUN_DIR": str(rundir.path)}
    command = [sys.executable, "-c", SLEEP, "--run-dir", str(rundir.path), "--attempt", "1"]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=env)
    assert process.stdout.readline() == b"1\n"
    yield process
    process.kill()
    process.communicate()


@pytest.fixture
def start_holder():
    """Starts a process with a holder's command line that holds the run's lock."""
    processes = []

    def start(rundir, code=LOCK_AND_SLEEP):
        command = [sys.executable, "-c", code, "--run-dir", str(rundir.path), "--attempt", "1", rundir.owner_lock]
        processes.append(subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE))
        assert processes[-1].stdout.readline() == b"1\n"
        return processes[-1]

    yield start
    for process in processes:
        with process:
            process.kill()


def started(process):
    pid = process.pid
    return {"root_pid": pid, "root_start_ticks": procfs.start_ticks(pid), "boot_id": procfs.boot_id()}


def clean_up(rundir, facts):
    while not LocalLauncher().settle(Ref(rundir, 1), facts):
        pass


def test_leftovers_of_this_root_are_killed(rundir, worker):
    clean_up(rundir, {})

    assert worker.wait(10) == -9


def test_leftovers_of_a_root_that_was_moved_are_killed(rundir, worker, tmp_path):
    (tmp_path / "original").rename(tmp_path / "moved")

    clean_up(StateRoot(tmp_path / "moved").run("runs", rundir.run_id), {})

    assert worker.wait(10) == -9


@pytest.mark.parametrize("with_facts", [False, True])
def test_processes_of_the_original_are_not_leftovers_of_a_copy(copy, worker, with_facts):
    clean_up(copy, started(worker) if with_facts else {})

    assert worker.poll() is None


def test_a_process_in_started_json_is_killed_by_its_own_root(rundir, worker):
    clean_up(rundir, started(worker))

    assert worker.wait(10) == -9


def test_a_process_from_before_the_tree_is_not_its_leftover(rundir, worker):
    tree = {**started(worker), "root_pid": 0, "root_start_ticks": procfs.start_ticks(worker.pid) + 1}

    clean_up(rundir, tree)

    assert worker.poll() is None


async def watched(rundir):
    """Which processes a daemon that watches the run takes for its holder, and whether the tree's root lives for it."""
    launcher = LocalLauncher()
    launcher.watch(Ref(rundir, 1), lambda: None)
    try:
        return launcher.roots(), launcher.lives(Ref(rundir, 1), {})
    finally:
        launcher.forget(Ref(rundir, 1))


def write_start(rundir, process, secret="ours"):
    durable.write_json(rundir.launch, {"run_id": rundir.run_id, "attempt": 1, "secret": "ours"})
    holder = {"attempt": 1, "secret": secret, "holder_pid": process.pid}
    durable.write_json(rundir.started, {**started(process), **holder})


def test_a_holder_that_holds_its_lock_is_watched_with_its_tree(rundir, worker):
    write_start(rundir, worker)
    lock = LocalLauncher().fence(Ref(rundir, 1))

    assert asyncio.run(watched(rundir)) == ([worker.pid], True)

    os.close(lock)


@pytest.mark.parametrize("oddity", ["nothing", *ODDITIES])
def test_a_live_holder_is_watched_whatever_lies_at_its_started_json(rundir, start_holder, oddity):
    durable.write_json(rundir.launch, {"run_id": rundir.run_id, "attempt": 1, "secret": "ours"})
    if oddity != "nothing":
        plant(rundir.started, oddity)
    holder = start_holder(rundir)

    assert asyncio.run(watched(rundir)) == ([holder.pid], False)


@pytest.mark.parametrize("oddity", ["nothing", *ODDITIES])
def test_a_holder_of_this_daemon_is_held_from_the_moment_it_has_its_lock(rundir, start_holder, oddity):
    launcher = LocalLauncher()
    late = launcher._spawned[rundir.run_id] = start_holder(rundir, SLEEP)
    if oddity != "nothing":
        plant(rundir.started, oddity)

    before = situation(Ref(rundir, 1), launcher).case
    late.kill()
    holder = launcher._spawned[rundir.run_id] = start_holder(rundir)

    assert before is Case.STARTING
    assert situation(Ref(rundir, 1), launcher).case is Case.HELD
    assert holder.poll() is None


def test_a_second_name_of_another_runs_lock_leads_to_no_other_holder(rundir, start_holder):
    other = StateRoot(rundir.path.parents[2]).run("runs", new_ulid())
    other.make()
    start_holder(other)
    os.link(other.owner_lock, rundir.owner_lock)

    assert asyncio.run(watched(rundir)) == ([], False)


@pytest.mark.parametrize("oddity", ODDITIES)
def test_a_run_whose_started_json_is_damaged_is_not_started_again(rundir, oddity):
    plant(rundir.started, oddity)

    assert situation(Ref(rundir, 1), LocalLauncher()).case is Case.ORPHANED


def test_a_tree_is_kept_as_soon_as_started_json_is_written(rundir, worker, start_holder):
    async def watch_before_and_after():
        launcher = LocalLauncher()
        launcher.watch(Ref(rundir, 1), lambda: None)
        durable.write_json(rundir.launch, {"run_id": rundir.run_id, "attempt": 1, "secret": "ours"})
        durable.write_json(rundir.started, {"attempt": 1, "secret": "ours", **started(worker)})
        before = launcher.lives(Ref(rundir, 1), {})
        launcher.watch(Ref(rundir, 1), lambda: None)
        after = launcher.lives(Ref(rundir, 1), {})
        launcher.forget(Ref(rundir, 1))
        return before, after

    start_holder(rundir)

    assert asyncio.run(watch_before_and_after()) == (False, True)


def test_what_a_watched_holder_lacked_is_known_after_its_exit(rundir, start_holder):
    async def wait_for_its_end():
        launcher, ended = LocalLauncher(), asyncio.Event()
        launcher._spawned[rundir.run_id] = holder = start_holder(
            rundir, f"{LOCK_AND_SLEEP}; sys.exit({shortage.EXIT_CODE})"
        )
        launcher.watch(Ref(rundir, 1), ended.set)
        holder.stdin.close()
        await ended.wait()
        return launcher.look(Ref(rundir, 1)).reason

    assert "descriptors" in asyncio.run(wait_for_its_end())


def test_the_pid_of_a_dead_holder_may_belong_to_another_process(rundir, worker):
    """Nobody holds the lock, so what has the holder's number now is a stranger, which a cancel must not end."""
    write_start(rundir, worker)

    assert asyncio.run(watched(rundir)) == ([], False)


def test_the_tree_in_a_started_json_of_another_launch_is_not_kept(rundir, worker):
    launcher = LocalLauncher()
    write_start(rundir, worker, secret="of an earlier launch")

    launcher._keep_root(rundir)

    assert not launcher.lives(Ref(rundir, 1), {})


def test_the_tailer_of_a_copied_run_reads_the_copy(rundir, copy, tmp_path):
    out = tmp_path / "words"
    code = f"import sys; open({str(out)!r}, 'w').write(' '.join(sys.argv[1:]))"
    argv = [sys.executable, "-c", code, "--run-dir", str(rundir.path), "--address", "a", "--root", "/original"]
    durable.write_json(copy.launch, {"tailer_argv": argv, "tailer_env": dict(os.environ)})
    launcher = LocalLauncher()

    launcher.tail(copy)
    launcher._tailers[copy.run_id].wait(20)

    assert out.read_text().split() == ["--run-dir", str(copy.path), "--address", "a", "--root", str(tmp_path / "copy")]
