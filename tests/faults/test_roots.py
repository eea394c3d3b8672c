"""A state root that is copied, moved or removed while its runs live, and folders with odd names."""

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from lab import Lab, alive, wait_until

from mosaic.client import TrainerClient
from mosaic.model.errors import MosaicError
from mosaic.model.rundir import StateRoot
from mosaic.model.states import RunState

MOSAIC = Path(sys.executable).parent / "mosaic"


@pytest.fixture
def lab(home):
    """The root is a folder inside `home`, so that copies and moved roots are removed with it."""
    lab = Lab(home / "original", ("--gpus", "1"))
    original = lab.root
    yield lab
    for path in home.iterdir():
        if path.is_dir() and not path.is_symlink():
            lab.root = StateRoot(path)
            lab.close()
    lab.root = original  # the processes of a root that was removed
    while pids := lab.processes():
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


@pytest.fixture
def run(lab):
    """A live run."""
    run = lab.submit(steps=100_000, rate=20, gpus={"requested": 1, "mandatory": True})
    return lab.wait_for(run, RunState.EXECUTING)


@pytest.fixture
def copy(lab, run, home):
    """A copy of the root, made while the daemon and a run are alive."""
    subprocess.run(["cp", "-a", lab.root.path, home / "copy"], check=True)
    return home / "copy"


def mosaic(home, *words):
    done = subprocess.run(
        [MOSAIC, *words], capture_output=True, text=True, env={**os.environ, "MOSAIC_HOME": str(home)}, timeout=60
    )
    return done.returncode, done.stdout + done.stderr


def is_untouched(lab, run):
    """Whether the daemon serves the original, and the run advances."""
    before = lab.client.get_run(run.run_id)
    lab.wait_until_run(run, lambda now: now.summary.events > before.summary.events, "another event", 20)
    return before.state is RunState.EXECUTING and alive(lab.root_pid(run)) and alive(lab.holder_pid(run))


def test_no_command_and_no_daemon_uses_a_copied_root(lab, run, copy):
    command = [sys.executable, "-m", "mosaic.daemon.server", "--root", str(copy)]
    daemon = subprocess.run(command, capture_output=True, text=True, timeout=20)
    verbs = (["daemon", "start"], ["runs"], ["daemon", "stop", "--kill-runs"], ["rm", run.run_id, "--yes"], ["gc"])
    refused = [mosaic(copy, *words) for words in verbs]

    assert daemon.returncode == 1
    for code, text in [(1, daemon.stderr), *refused]:
        assert code == 1
        assert len(text.splitlines()) == 1
        assert all(word in text for word in (str(copy), str(lab.root.path), "mosaic root adopt --copy"))
    assert is_untouched(lab, run)


def test_the_library_refuses_a_copied_root_too(lab, run, copy):
    with pytest.raises(MosaicError, match="mosaic root adopt --copy"):
        TrainerClient.connect(StateRoot(copy))

    assert is_untouched(lab, run)


def test_an_adopted_copy_leaves_the_original_alone(lab, run, copy):
    waiting = lab.submit(steps=10, gpus={"requested": 1, "mandatory": True})
    shutil.rmtree(copy)
    subprocess.run(["cp", "-a", lab.root.path, copy], check=True)

    code, text = mosaic(copy, "root", "adopt", "--copy", "--json")

    assert code == 0, text
    assert sorted(json.loads(text)["faulted"]) == sorted([run.run_id, waiting.run_id])
    with TrainerClient.connect(StateRoot(copy)) as client:
        assert (client.get_run(run.run_id).state, client.get_run(run.run_id).reason) == (
            RunState.FAULTED,
            "copied while running",
        )
        assert client.get_run(waiting.run_id).state is RunState.FAULTED
        assert [gpu.owner for gpu in client.health().gpus] == [""]
        assert client.health().root == str(copy)
        client.delete_run(run.run_id)
        client.shutdown(kill_runs=True)
    assert StateRoot(copy).token.read_bytes() != lab.root.token.read_bytes()
    assert Path(run.run_dir).is_dir()
    assert is_untouched(lab, run)


def test_a_copy_without_a_record_reaches_neither_the_daemon_nor_the_processes_of_the_original(lab, run, copy):
    # As in the copy of a root that an older version made: only the last line of defence is left.
    (copy / "place.json").unlink(missing_ok=True)

    with TrainerClient.connect(StateRoot(copy)) as client:
        assert client.health().pid != lab.daemon_pid()
        wait_until(lambda: client.get_run(run.run_id).state.is_over)
        client.delete_run(run.run_id)
        client.shutdown(kill_runs=True)

    assert Path(run.run_dir).is_dir()
    assert is_untouched(lab, run)


def test_a_root_that_was_moved_while_its_runs_live_continues_where_it_is(lab, run, home):
    pid, events = lab.daemon_pid(), lab.client.get_run(run.run_id).summary.events
    lab.root.path.rename(home / "moved")
    wait_until(lambda: not alive(pid), 10, "the end of the daemon whose root is gone")

    code, text = mosaic(home / "moved", "runs")
    assert (code, "mosaic root adopt --moved" in text) == (1, True), text
    code, text = mosaic(home / "moved", "root", "adopt")
    assert code == 0, text
    lab.root = StateRoot(home / "moved")
    lab.restart_daemon()

    lab.wait_until_run(run, lambda now: now.summary.events > events + 20, "events of a moved run", 20)
    assert alive(lab.holder_pid(run))
    lab.client.cancel_run(run.run_id)
    ended = lab.wait_until_over(run)
    assert (ended.state, ended.reason) == (RunState.CANCELLED, "cancelled by request")
    steps = [event["step_index"] for event in lab.events(run, "step")]
    assert steps == list(range(len(steps)))


def test_the_daemon_of_a_removed_root_ends_and_says_so(lab, run, home):
    pid, holder = lab.daemon_pid(), lab.holder_pid(run)
    log = lab.root.daemon_log.open()
    shutil.rmtree(lab.root.path, ignore_errors=True)

    wait_until(lambda: not alive(pid), 10, "the end of the daemon whose root is gone")

    assert "was removed, moved or replaced" in log.read()
    assert alive(holder)
    assert not lab.root.registry.exists()


def test_a_daemon_whose_root_is_overwritten_by_another_ends(lab, run, home):
    other = Lab(home / "other")
    pid = other.daemon_pid()
    other.client.close()

    subprocess.run(["cp", "-a", f"{lab.root.path}/.", home / "other"], check=True)

    wait_until(lambda: not alive(pid), 10, "the end of the daemon whose root was overwritten")
    assert is_untouched(lab, run)


def test_a_restored_root_is_refused_and_adopted_as_a_copy(lab, run, home):
    lab.stop_daemon()
    lab.root.path.rename(home / "away")
    subprocess.run(["cp", "-a", home / "away", lab.root.path], check=True)
    moved = StateRoot(home / "away").run("runs", run.run_id)

    code, text = mosaic(lab.root.path, "runs")
    assert (code, "restored or copied" in text) == (1, True), text
    code, text = mosaic(lab.root.path, "root", "adopt", "--moved")
    assert (code, "was not moved" in text) == (1, True), text
    assert mosaic(lab.root.path, "root", "adopt")[0] == 0
    lab.restart_daemon()

    assert lab.client.get_run(run.run_id).reason == "copied while running"
    assert alive(json.loads(moved.started.read_text())["root_pid"])


@pytest.mark.parametrize("name", ["a b#c?d%41,e", "jörg's state"])
def test_a_root_with_an_odd_name_works(home, name):
    lab = Lab(home / name)
    try:
        assert lab.wait_until_over(lab.submit(steps=20)).state is RunState.TERMINATED
        assert not (home / "a b").exists()
    finally:
        lab.close()


@pytest.mark.parametrize("name", ["daemon.addr", "daemon.json", "daemon.pid"])
def test_garbage_in_place_of_a_daemons_file_does_not_stop_clients(lab, name):
    path = lab.root.trainer / name
    path.unlink(missing_ok=True)
    os.mkfifo(path)

    with TrainerClient.connect(lab.root) as client:
        assert client.health().healthy
    lab.kill_daemon()
    lab.restart_daemon()

    assert lab.wait_until_over(lab.submit(steps=20)).state is RunState.TERMINATED


@pytest.mark.parametrize("words", [["runs", "--json"], ["daemon", "status", "--json"], ["du", "--json"]])
def test_a_daemon_of_another_version_is_reported_beside_the_json(lab, words):
    address = json.loads(lab.root.address.read_text())
    env = {**os.environ, "MOSAIC_HOME": str(lab.root.path), "PYTHONPATH": ""}
    code = (
        "import sys, mosaic; mosaic.__version__ = '9.9'; from mosaic.cli.main import main; sys.exit(main(sys.argv[1:]))"
    )

    done = subprocess.run([sys.executable, "-c", code, *words], capture_output=True, text=True, env=env, timeout=60)

    assert json.loads(done.stdout) is not None
    assert done.stderr.count(f"The daemon is version {address['mosaic']}, this command is 9.9") == 1
    assert done.stderr.count("\n") == 1
