"""The statistics that users see of a run, from the real daemon; and TensorBoard with run names."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import urllib.error
import urllib.request
from pathlib import Path

import pytest
from lab import Lab, wait_until

from mosaic.client.tensorboard import free_port
from mosaic.model.states import RunState

MOSAIC = Path(sys.executable).parent / "mosaic"
CLEANRL = Path(__file__).parents[2] / ".venv-cleanrl"

# A script that reports 900 of its 1,000 steps, like one that trains in whole batches, and evaluates in between.
SCRIPT = """
from mosaic_sdk import emit
emit.heartbeat(0, total=1000)
for number in range(9):
    emit.episode(number, float(number), 100, terminated=True, global_step=100 * (number + 1))
    for seed in range(3):
        emit.episode(seed, 500.0 + seed, 100, truncated=True, agent_id="eval", global_step=100 * (number + 1))
emit.heartbeat(900)
print('{"type": "step"}')
"""


@pytest.fixture(scope="module")
def home():
    path = Path(tempfile.mkdtemp(prefix="mosaic-"))
    yield path
    shutil.rmtree(path, ignore_errors=True)


@pytest.fixture(scope="module")
def lab(home):
    """One daemon for all tests."""
    lab = Lab(home)
    yield lab
    lab.close()


@pytest.fixture(scope="module")
def played(lab, tmp_path_factory):
    """A finished run of the script."""
    script = tmp_path_factory.mktemp("script") / "plays.py"
    script.write_text(SCRIPT)
    return lab.wait_until_over(lab.submit_worker({"script": str(script)}, name="it plays"))


def test_a_run_that_evaluates_itself_keeps_training_and_evaluation_apart(lab, mosaic, played):
    run = lab.client.get_run(played.run_id)
    s = run.summary

    assert (run.state, run.progress, s.env_steps) == (RunState.TERMINATED, 1.0, 900)
    assert (s.mean_return, s.mean_over, s.training_episodes) == (4.0, 9, 9)
    assert (s.eval_mean, s.eval_over, s.eval_episodes) == (501.0, 3, 27)
    shown = mosaic("show", played.run_id)
    for text in ("mean return 4 over the last 9 training episodes", "mean return 501 ± 2.5 over 3 episodes"):
        assert text in shown
    for text in ("900 of 1,000", "100%", "1 line; see why: mosaic logs"):
        assert text in shown
    assert "4 (9)" in mosaic("runs")


def test_episodes_are_exported_and_drawn_over_env_steps(mosaic, played):
    exported = [json.loads(line) for line in mosaic("export", played.run_id, "--type", "episode").splitlines()]
    curve = json.loads(mosaic("curve", played.run_id, "episode/return", "--json"))

    trained = [event for event in exported if event["agent_id"] != "eval"]
    assert [event["global_step"] for event in trained] == list(range(100, 1000, 100))
    assert {(event["terminated"], event["truncated"]) for event in trained} == {(True, False)}
    assert [(point["step"], point["mean"], point["axis"]) for point in curve] == [
        (100 * (number + 1), float(number), "env steps") for number in range(9)
    ]
    assert mosaic("curve", played.run_id, "eval/return").splitlines()[0].split()[:2] == ["ENV", "STEP"]


def test_an_evaluation_run_shows_its_mean_and_interval(lab, mosaic):
    trained = lab.wait_until_over(lab.submit(steps=200, episode_length=20, checkpoint_every=200))
    evaluation = {"mode": "policy_eval"}
    run = lab.wait_until_over(lab.submit(checkpoint=trained.run_id, eval_episodes=10, extras=evaluation))

    s = lab.client.get_run(run.run_id).summary

    assert (run.area, s.eval_episodes, s.eval_over, s.mean_over) == ("evals", 10, 10, 0)
    assert s.eval_interval > 0
    assert "±" in mosaic("runs")


def test_the_statistics_are_the_same_after_a_restart(lab, played):
    before = lab.client.get_run(played.run_id).summary
    lab.stop_daemon()
    lab.root.index.unlink()
    lab.restart_daemon()

    assert lab.client.get_run(played.run_id).summary == before


@pytest.mark.skipif(
    not (CLEANRL / ".ready").exists(), reason="TensorBoard is not installed: make .venv-cleanrl/.ready installs it"
)
def test_tensorboard_lists_runs_by_name(lab, played, home):
    from tensorboardX import SummaryWriter

    (home / "envs").mkdir(exist_ok=True)
    (home / "envs/cleanrl").symlink_to(CLEANRL)
    with SummaryWriter(str(lab.rundir(played).tensorboard)) as writer:
        writer.add_scalar("loss", 1.0, 1)
    port = free_port()
    env = {**os.environ, "MOSAIC_HOME": str(home)}
    board = subprocess.Popen(
        [MOSAIC, "tensorboard", "--all", "--port", str(port)], env=env, stdout=subprocess.PIPE, text=True
    )
    try:
        assert f"http://localhost:{port}/" in board.stdout.readline()
        wait_until(lambda: names_at(port) == [f"it-plays-{played.run_id[:13]}"], timeout_s=120)
    finally:
        board.terminate()
        board.wait(30)


def names_at(port):
    try:
        with urllib.request.urlopen(f"http://localhost:{port}/data/runs", timeout=10) as answer:
            return json.load(answer)
    except (urllib.error.URLError, ConnectionError, TimeoutError):
        return None
