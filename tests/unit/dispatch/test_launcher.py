"""Which processes the local launcher takes for those of a run: never those of another root's."""

import asyncio
import os
import shutil
import subprocess
import sys

import pytest

from mosaic.dispatch.launcher import LocalLauncher
from mosaic.model import durable, procfs
from mosaic.model.rundir import StateRoot
from mosaic.model.ulid import new_ulid

SLEEP = "import sys; print(1, flush=True); sys.stdin.read()"


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


def started(process):
    pid = process.pid
    return {"root_pid": pid, "root_start_ticks": procfs.start_ticks(pid), "boot_id": procfs.boot_id()}


def clean_up(rundir, facts):
    while not LocalLauncher().kill_leftovers(rundir, facts):
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
    launcher.watch(rundir, lambda: None)
    try:
        return launcher.roots(), launcher.lives(rundir, {})
    finally:
        launcher.forget(rundir)


def write_start(rundir, process, secret="ours"):
    durable.write_json(rundir.launch, {"attempt": 1, "secret": "ours"})
    holder = {"attempt": 1, "secret": secret, "holder_pid": process.pid}
    durable.write_json(rundir.started, {**started(process), **holder})


def test_a_holder_that_holds_its_lock_is_watched_with_its_tree(rundir, worker):
    write_start(rundir, worker)
    lock = LocalLauncher().fence(rundir)

    assert asyncio.run(watched(rundir)) == ([worker.pid], True)

    os.close(lock)


def test_the_pid_of_a_dead_holder_may_belong_to_another_process(rundir, worker):
    """Nobody holds the lock, so what has the holder's number now is a stranger, which a cancel must not end."""
    write_start(rundir, worker)

    assert asyncio.run(watched(rundir)) == ([], False)


def test_the_tree_in_a_started_json_of_another_launch_is_not_kept(rundir, worker):
    launcher = LocalLauncher()
    write_start(rundir, worker, secret="of an earlier launch")

    launcher._keep_root(rundir)

    assert not launcher.lives(rundir, {})


def test_the_tailer_of_a_copied_run_reads_the_copy(rundir, copy, tmp_path):
    out = tmp_path / "words"
    code = f"import sys; open({str(out)!r}, 'w').write(' '.join(sys.argv[1:]))"
    argv = [sys.executable, "-c", code, "--run-dir", str(rundir.path), "--address", "a", "--root", "/original"]
    durable.write_json(copy.launch, {"tailer_argv": argv, "tailer_env": dict(os.environ)})
    launcher = LocalLauncher()

    launcher.tail(copy)
    launcher._tailers[copy.run_id].wait(20)

    assert out.read_text().split() == ["--run-dir", str(copy.path), "--address", "a", "--root", str(tmp_path / "copy")]
