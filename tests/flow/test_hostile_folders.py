"""One run that damages its own folder beside a healthy one: it ends, every verb answers, the other does not notice."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from lab import Lab, wait_until
from oddities import ODDITIES, ORDINARY

from mosaic.model.states import RunState

S = RunState
MOSAIC = Path(sys.executable).with_name("mosaic")
TESTS = Path(__file__).parents[1]
OWN = ("analytics.json", "provenance.json", "checkpoints", "videos", "tensorboard", "eval_summary.json", "report.html")
OWN += ("logs/worker.stdout.log", "logs/worker.stderr.log", "logs/tailer.log", "logs/holder.log")
# In the folders of runs that older versions started, these say how the run is doing.
CONTROL = ("exit.json", "started.json", "launch.json", "owner.lock", "tail.lock", "commands.jsonl")
# Damages its folder, says so on stdout, and then prints a line that must be stored all the same.
HOSTILE = """
import os, sys, time
from pathlib import Path
sys.path.insert(0, {tests!r})
from oddities import plant
here = Path(os.environ["MOSAIC_RUN_DIR"])
for name in {names!r}:
    try:
        plant(here / name, {oddity!r})
    except OSError as error:
        print(name, error, file=sys.stderr)
print("damaged", flush=True)
time.sleep({stays_s})
print("the last line", flush=True)
"""
CLOSED = """
import os, sys, time
here = os.environ["MOSAIC_RUN_DIR"]
print("damaged", flush=True)
for folder in ("checkpoints", "logs", "."):
    os.chmod(os.path.join(here, folder), 0)
time.sleep({stays_s})
print("the last line", flush=True)
"""


def type_in(lab, *words):
    # Not the cache of the whole machine: `du` would walk it, while other programs install.
    env = {**os.environ, "MOSAIC_HOME": str(lab.root.path), "NO_COLOR": "1", "UV_CACHE_DIR": str(lab.root.path / "uv")}
    done = subprocess.run([MOSAIC, *words], env=env, capture_output=True, text=True, timeout=60)
    assert "Traceback" not in done.stderr, done.stderr
    return done


def assert_every_verb_answers(lab, run):
    for words in (
        ("runs", "--all"),
        ("show", run.run_id),
        ("du",),
        ("du", "--json"),
        ("gc",),
        ("gc", "--old-checkpoints"),
    ):
        started = time.monotonic()
        done = type_in(lab, *words)
        assert done.returncode == 0, (words, done.stdout, done.stderr)
        assert time.monotonic() - started < 30, words
    assert run.run_id[:8] in type_in(lab, "runs", "--all").stdout


@pytest.mark.timeout(120)
@pytest.mark.parametrize("oddity", ["fifo", "folder", "link to /dev/zero", "sparse file"])
def test_a_run_that_damages_its_folder_ends_with_all_its_output(lab, script, oddity):
    text = HOSTILE.format(tests=str(TESTS), names=OWN, oddity=oddity, stays_s=1)
    healthy = lab.submit(steps=1_000_000, rate=200)
    lab.wait_for(healthy, S.EXECUTING)
    run = lab.submit_worker({"script": script("hostile.py", text)})

    lab.wait_until_run(run, lambda now: "damaged" in lab.text(run).decode() or now.state.is_over, "the damage")
    before = lab.client.get_run(healthy.run_id).summary.steps
    end = lab.wait_until_over(run, timeout_s=40)

    assert (end.state, end.telemetry) == (S.TERMINATED, "")
    assert b"the last line" in lab.text(run)
    assert_every_verb_answers(lab, run)
    wait_until(lambda: lab.client.get_run(healthy.run_id).summary.steps > before, 10, "the healthy run to go on")
    assert lab.client.health().healthy
    assert type_in(lab, "rm", run.run_id, "--yes").returncode == 0
    assert not Path(run.run_dir).exists()
    lab.client.cancel_run(healthy.run_id)
    assert lab.wait_until_over(healthy).state is S.CANCELLED


@pytest.mark.timeout(120)
@pytest.mark.parametrize("oddity", ["fifo", "folder", "link to /dev/zero", "sparse file"])
def test_a_run_ends_with_a_reason_whatever_it_puts_beside_its_files(lab, script, oddity):
    text = HOSTILE.format(tests=str(TESTS), names=CONTROL, oddity=oddity, stays_s=1)
    healthy = lab.submit(steps=1_000_000, rate=200)
    lab.wait_for(healthy, S.EXECUTING)
    run = lab.submit_worker({"script": script("hostile.py", text)})

    end = lab.wait_until_over(run, timeout_s=60)

    assert end.state is S.TERMINATED or end.reason
    assert_every_verb_answers(lab, run)
    assert type_in(lab, "rm", run.run_id, "--yes").returncode == 0
    before = lab.client.get_run(healthy.run_id).summary.steps
    wait_until(lambda: lab.client.get_run(healthy.run_id).summary.steps > before, 10, "the healthy run to go on")


@pytest.mark.timeout(120)
def test_a_run_that_damages_its_folder_can_be_cancelled_by_the_next_daemon_too(lab, script):
    text = HOSTILE.format(tests=str(TESTS), names=OWN, oddity="fifo", stays_s=600)
    run = lab.submit_worker({"script": script("hostile.py", text)}, limits={"grace_s": 0.5})
    lab.wait_until_run(run, lambda _: "damaged" in lab.text(run).decode(), "the damage")
    lab.kill_daemon()
    lab.restart_daemon()

    lab.client.cancel_run(run.run_id)
    end = lab.wait_until_over(run, timeout_s=40)

    assert end.state is S.CANCELLED
    assert_every_verb_answers(lab, run)


@pytest.mark.timeout(180)
def test_an_ordinary_users_run_that_closes_its_folder_ends_with_all_its_output(home):
    """This test again, as a user whom modes concern."""
    os.chmod(home, 0o755)
    mine = home / "home"
    mine.mkdir()
    user = None
    if os.geteuid() == 0:
        os.chown(mine, ORDINARY, ORDINARY)
        user = ORDINARY
    env = {**os.environ, "HOME": str(mine), "TMPDIR": str(mine), "PYTHONPATH": str(TESTS)}
    words = [sys.executable, __file__, str(mine)]
    as_user = {"user": user, "group": user, "extra_groups": []} if user else {}
    try:
        done = subprocess.run(words, env=env, timeout=150, capture_output=True, text=True, cwd="/", **as_user)
    except PermissionError:
        pytest.skip(f"{sys.executable} is in a folder that only root can enter.")

    assert done.returncode == 0, done.stdout + done.stderr


def close_folders_as_this_user(home: Path) -> None:
    (home / "root").mkdir()
    program = home / "hostile.py"
    program.write_text(CLOSED.format(stays_s=1))
    lab = Lab(home / "root")
    try:
        healthy = lab.submit(steps=1_000_000, rate=200)
        run = lab.submit_worker({"script": str(program)})
        end = lab.wait_until_over(run, timeout_s=60)
        assert end.state is S.TERMINATED, end
        assert b"the last line" in lab.text(run)
        # And after its end, as another program of this user could.
        for folder in ("checkpoints", "logs", "."):
            (Path(run.run_dir) / folder).chmod(0)
        lab.stop_daemon()
        lab.restart_daemon()
        assert_every_verb_answers(lab, run)
        usage = {row.get("run_id"): row for row in json.loads(type_in(lab, "du", "--json").stdout)}
        assert "cannot be read" in usage[run.run_id]["note"]
        assert usage[healthy.run_id]["note"] == ""
        assert type_in(lab, "rm", run.run_id, "--yes").returncode == 0
        assert not Path(run.run_dir).exists()
        lab.client.cancel_run(healthy.run_id)
        assert lab.wait_until_over(healthy).state is S.CANCELLED
    finally:
        lab.close()


assert set(ODDITIES) > {"fifo", "folder", "link to /dev/zero", "sparse file"}

if __name__ == "__main__":
    close_folders_as_this_user(Path(sys.argv[1]))
