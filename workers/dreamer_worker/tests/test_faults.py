"""Processes are killed and the run continues: every count stays correct."""

import os
import signal
import subprocess
import sys
import time
from itertools import pairwise

import cloudpickle
import pytest
from dreamer_worker.checkpoint import Epochs
from dreamer_worker.life import write_work
from dreamer_worker.supervisor import Child, RoleFailed, Supervisor

ROLES = ("replay", "env1", "agent", "logger", "env0", "env2")
EVERY = 150
pytestmark = pytest.mark.timeout(400)


@pytest.mark.slow
def test_each_process_is_killed_twice_in_one_run_that_still_reaches_its_steps(run_of):
    kills = ROLES * 2
    run = run_of(steps=EVERY * (len(kills) + 2)).start()
    run.until(lambda: Epochs(run.folder / "checkpoints").committed())

    for number, role in enumerate(kills, start=1):
        run.played(EVERY * number)
        run.until(lambda role=role: role in run.children())
        os.kill(run.children()[role], signal.SIGKILL)

    assert run.wait() == 0, run.stderr
    lines = run.lines
    assert lines[-1]["event"] == "run_completed"
    summary = lines[-1]["payload"]
    assert summary["restarts"] >= len(kills)
    assert summary["env_steps"] >= EVERY * (len(kills) + 2)
    check_counts(run)


def check_counts(run):
    """No count decreases, and nothing is counted twice."""
    steps = [line["step"] for line in run.metrics]
    assert steps == sorted(steps)
    for name in ("env_steps", "updates", "episodes", "eval_episodes"):
        values = [line[f"counters/{name}"] for line in run.metrics if f"counters/{name}" in line]
        assert values == sorted(values), name
    beats = [line["payload"]["progress"] for line in run.lines if line.get("event") == "heartbeat"]
    assert beats == sorted(beats)
    for kind in (False, True):
        episodes = [line["episode"] for line in run.metrics if line.get("eval") is kind]
        assert all(b == a + 1 for a, b in pairwise(episodes)), "an episode is missing or reported twice"
    played = run.counters["env_steps"]
    inserts = [line["replay/limiter/inserts"] for line in run.metrics if "replay/limiter/inserts" in line]
    assert max(inserts) <= played


@pytest.mark.slow
@pytest.mark.parametrize("role", ["launcher", "group"])
def test_a_run_whose_processes_are_all_killed_continues_from_its_last_checkpoint(run_of, role):
    run = run_of(steps=1_000_000).start()
    run.played(300).until(lambda: len(Epochs(run.folder / "checkpoints").committed()) >= 2)
    children = run.children().values()

    if role == "launcher":
        run.process.kill()
    else:
        os.killpg(run.process.pid, signal.SIGKILL)
    run.process.wait()
    wait_until_gone(children)

    epochs = Epochs(run.folder / "checkpoints")
    saved = epochs.read(epochs.newest())["counters"]
    run.config.write_text(run.config.read_text().replace("1000000", str(saved["env_steps"] + 200)))
    run.start()
    assert run.wait() == 0, run.stderr
    assert [line["event"] for line in run.lines if "event" in line].count("checkpoint_loaded") == 1
    assert saved["env_steps"] + 200 <= run.counters["env_steps"] < saved["env_steps"] + 300
    assert run.counters["updates"] > saved["updates"]


def wait_until_gone(pids):
    """CPU time of processes that are not children of the test."""
    limit = time.monotonic() + 60
    while alive := [pid for pid in pids if os.path.exists(f"/proc/{pid}") and not is_zombie(pid)]:
        assert time.monotonic() < limit, f"still alive: {alive}"
        time.sleep(0.02)


def is_zombie(pid):
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True


@pytest.mark.slow
def test_sigterm_to_every_process_at_once_ends_the_tree_with_a_checkpoint(run_of):
    run = run_of(steps=1_000_000, save_every_s=1000).start()
    run.played(300)
    children = list(run.children().values())

    for pid in children:
        os.kill(pid, signal.SIGTERM)
    run.terminate()

    assert run.wait() == 143, run.stderr
    wait_until_gone(children)
    epochs = Epochs(run.folder / "checkpoints")
    assert epochs.newest() == 1
    assert epochs.read(1)["counters"]["env_steps"] >= 300
    assert run.lines[-1]["event"] == "run_cancelled"


def test_a_run_is_stopped_while_its_processes_start(run_of):
    run = run_of(steps=1_000_000).start()
    run.until(lambda: len(run.children()) == 6)
    children = list(run.children().values())

    assert run.terminate().wait() == 143, run.stderr
    wait_until_gone(children)


@pytest.mark.slow
def test_an_env_that_cannot_play_ends_the_run_with_its_reason(run_of):
    run = run_of(env="dummy_crash", steps=1000).start()

    assert run.wait() == 1
    failed = next(line for line in run.lines if line.get("event") == "run_failed")
    assert "dummy_crash raises at its third step" in failed["payload"]["error"]


def test_an_env_that_does_not_exist_ends_the_run_at_once(run_of):
    run = run_of(env="dummy_nonsense", steps=1000).start()

    assert run.wait() == 1
    failed = next(line for line in run.lines if line.get("event") == "run_failed")
    assert "no environment dummy_nonsense" in failed["payload"]["error"]


@pytest.mark.parametrize(
    ("failure", "words"),
    [("raises", "failed once, as requested"), pytest.param("hangs", "Timeout", marks=pytest.mark.slow)],
)
def test_an_env_that_fails_once_is_restarted_and_the_run_continues(run_of, tmp_path, monkeypatch, failure, words):
    monkeypatch.setenv("FLAKY_MARK", str(tmp_path / "mark"))
    options = {"env": "gym_flaky:Flaky-v0", "env_options": {"failure": failure}, "env_timeout_s": 20}
    run = run_of(**options, envs=1, eval_envs=0, steps=200)

    assert run.start().wait() == 0, run.stderr

    assert (tmp_path / "mark").exists()
    assert run.lines[-1]["payload"]["restarts"] == 1
    assert words in (run.folder / "stderr.log").read_text()


@pytest.mark.slow
def test_a_run_on_a_full_disk_continues_without_checkpoints(run_of, full_disk):
    # A block of images takes more than there is room for; logs and counters do not.
    run = run_of(env="dummy_image", steps=400, replay_gb=0.1)

    with full_disk(1_000_000):
        run.start()

    assert run.wait() == 0, run.stderr
    assert "this checkpoint was skipped" in run.stderr
    assert "without a last checkpoint" in run.stderr
    assert run.lines[-1]["payload"]["restarts"] == 0
    assert not list((run.folder / "checkpoints").rglob("*.tmp"))
    epochs = Epochs(run.folder / "checkpoints")  # the first ones, of few steps, found room
    assert {path.name for path in epochs.folder.glob("epoch-*")} == {epochs.path(n).name for n in epochs.committed()}


@pytest.mark.slow
def test_a_second_run_in_the_same_folder_is_refused_and_harms_nothing(run_of):
    first = run_of(steps=1_000_000).start().played(100)
    second = run_of(steps=1_000_000, logdir=str(first.folder)).start()

    assert second.wait() == 1

    failed = next(line for line in second.lines if line.get("event") == "run_failed")
    assert f"Another run is writing to {first.folder}." in failed["payload"]["error"]
    assert first.counters["launches"] == 1
    assert first.terminate().wait() == 143, first.stderr
    check_counts(first)


def test_a_process_that_hangs_exits_after_its_launcher_is_gone():
    script = "from dreamer_worker import life; life.LAST_RESORT_S = 0.5; life.main()"
    read, write = os.pipe()
    command = [sys.executable, "-c", script, str(write), "env0"]
    variables = {**os.environ, "PYTHONPATH": os.path.dirname(os.path.dirname(os.path.abspath(__file__)))}
    pipes = {"stdin": subprocess.PIPE, "stderr": subprocess.PIPE, "pass_fds": (write,)}
    orphan = subprocess.Popen(command, env=variables, **pipes)
    try:
        write_work(orphan.stdin, cloudpickle.dumps(lambda life: (life.ready(), time.sleep(10_000))))
        assert os.read(read, 1) == b"\x01"

        _, words = orphan.communicate(timeout=60)  # closes its stdin

        assert orphan.returncode == 1
        assert b"Timeout" in words
    finally:
        orphan.kill()
        orphan.wait()
        for end in (read, write):
            os.close(end)


@pytest.mark.parametrize(("name", "gives_up"), [("agent", True), ("env0", False)])
def test_an_agent_that_fails_after_minutes_of_compiling_each_time_is_given_up(name, gives_up):
    child = Child(name, print)
    child.has_been_ready = True
    child.error_text = lambda: "out of memory"
    now = time.monotonic()
    child.errors = [now - 500, now - 350, now - 200]
    supervisor = Supervisor([child])

    if gives_up:
        with pytest.raises(RoleFailed, match="agent process keeps failing: out of memory"):
            supervisor._restart(child, 1)
    else:
        supervisor._restart(child, 1)
        assert supervisor.restarts == 1


def test_script_train_on_a_full_disk_continues_without_checkpoints(run_of, full_disk):
    run = run_of(env="dummy_image", script="train", steps=400, replay_gb=0.1, save_every_s=1000)

    with full_disk(1_000_000):
        run.start()

    assert run.wait() == 0, run.stderr
    assert "this checkpoint was skipped" in run.stderr
    assert not list((run.folder / "checkpoints").glob("epoch-*"))
