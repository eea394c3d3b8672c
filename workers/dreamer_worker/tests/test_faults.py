"""Processes are killed and the run goes on: every count stays true."""

import os
import signal
from itertools import pairwise

import pytest
from dreamer_worker.checkpoint import Epochs

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

    assert run.wait() == 0, run.words
    told = run.lines
    assert told[-1]["event"] == "run_completed"
    summary = told[-1]["payload"]
    assert summary["restarts"] >= len(kills)
    assert summary["env_steps"] >= EVERY * (len(kills) + 2)
    check_counts(run)


def check_counts(run):
    """No count goes back, and nothing is counted twice."""
    steps = [line["step"] for line in run.metrics]
    assert steps == sorted(steps)
    for name in ("env_steps", "updates", "episodes", "eval_episodes"):
        values = [line[f"counters/{name}"] for line in run.metrics if f"counters/{name}" in line]
        assert values == sorted(values), name
    beats = [line["payload"]["progress"] for line in run.lines if line.get("event") == "heartbeat"]
    assert beats == sorted(beats)
    for kind in (False, True):
        episodes = [line["episode"] for line in run.metrics if line.get("eval") is kind]
        assert all(b == a + 1 for a, b in pairwise(episodes)), "an episode is missing or told twice"
    played = run.counters["env_steps"]
    inserts = [line["replay/limiter/inserts"] for line in run.metrics if "replay/limiter/inserts" in line]
    assert max(inserts) <= played


@pytest.mark.slow
@pytest.mark.parametrize("role", ["launcher", "group"])
def test_a_run_that_is_killed_whole_goes_on_from_its_last_checkpoint(run_of, role):
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
    assert run.wait() == 0, run.words
    assert [line["event"] for line in run.lines if "event" in line].count("checkpoint_loaded") == 1
    assert saved["env_steps"] + 200 <= run.counters["env_steps"] < saved["env_steps"] + 300
    assert run.counters["updates"] > saved["updates"]


def wait_until_gone(pids):
    """Of processes that nobody of ours can wait for."""
    import time

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

    assert run.wait() == 143, run.words
    wait_until_gone(children)
    epochs = Epochs(run.folder / "checkpoints")
    assert epochs.newest() == 1
    assert epochs.read(1)["counters"]["env_steps"] >= 300
    assert run.lines[-1]["event"] == "run_cancelled"


def test_a_run_is_stopped_while_its_processes_are_being_made(run_of):
    run = run_of(steps=1_000_000).start()
    run.until(lambda: len(run.children()) == 6)
    children = list(run.children().values())

    assert run.terminate().wait() == 143, run.words
    wait_until_gone(children)


@pytest.mark.slow
def test_an_env_that_cannot_play_ends_the_run_with_its_reason(run_of):
    run = run_of(env="dummy_crash", steps=1000).start()

    assert run.wait() == 1
    failed = next(line for line in run.lines if line.get("event") == "run_failed")
    assert "dummy_crash was asked for a third step" in failed["payload"]["error"]


def test_an_env_that_does_not_exist_ends_the_run_at_once(run_of):
    run = run_of(env="dummy_nonsense", steps=1000).start()

    assert run.wait() == 1
    failed = next(line for line in run.lines if line.get("event") == "run_failed")
    assert "There is no task dummy_nonsense" in failed["payload"]["error"]
