"""Failpoints: they act as ordered, as often as ordered, and a worker never inherits them."""

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from lab import environ
from schedule import FLOOD, HABITS, Schedule, ToyRun
from trial import run_trial

import mosaic
from mosaic.model.failpoints import POINTS, Order, read_orders
from mosaic.model.states import RunState

VISIT = """
from mosaic.model.failpoints import failpoint
for _ in range(3):
    failpoint("claim.done")
    print("passed", flush=True)
"""


def visit(orders, folder=""):
    """Pass a failpoint three times in a process of its own."""
    variables = {"MOSAIC_FAILPOINTS": orders, "MOSAIC_FAILPOINTS_DIR": str(folder)}
    return subprocess.run([sys.executable, "-c", VISIT], env=os.environ | variables, capture_output=True, text=True)


def test_without_an_order_nothing_happens():
    assert visit("").stdout == "passed\n" * 3
    assert visit("claim.decided").stdout == "passed\n" * 3


def test_a_failpoint_acts_at_the_ordered_visit():
    process = visit("claim.done:kill:1:2")

    assert (process.returncode, process.stdout) == (-signal.SIGKILL, "passed\n" * 2)


def test_visits_are_counted_across_processes(tmp_path):
    first, second = visit("claim.done", tmp_path), visit("claim.done", tmp_path)

    assert (first.returncode, first.stdout) == (-signal.SIGKILL, "")
    assert (second.returncode, second.stdout) == (0, "passed\n" * 3)


@pytest.mark.parametrize(("action", "words"), [("full", "No space left"), ("eio", "Input/output error")])
def test_a_disk_error_is_an_oserror(action, words):
    process = visit(f"claim.done:{action}")

    assert process.returncode == 1
    assert words in process.stderr


def test_a_stopped_process_continues_after_sigcont():
    variables = {"MOSAIC_FAILPOINTS": "claim.done:stop"}
    with subprocess.Popen([sys.executable, "-c", VISIT], env=os.environ | variables, stdout=subprocess.PIPE) as process:
        _, status = os.waitpid(process.pid, os.WUNTRACED)
        process.send_signal(signal.SIGCONT)
        output, _ = process.communicate()

    assert os.WIFSTOPPED(status)
    assert output == b"passed\n" * 3


def test_orders_are_parsed_with_their_defaults():
    assert read_orders("lock.taken,punch.done:eio:2:3") == {
        "lock.taken": Order("kill"),
        "punch.done": Order("eio", 2, 3),
    }


@pytest.mark.parametrize("text", ["claim.dome", "claim.done:explode", "claim.done:kill:often"])
def test_a_mistyped_order_is_an_error(text):
    with pytest.raises(ValueError, match=r"failpoint|invalid literal"):
        read_orders(text)


def test_every_failpoint_is_in_the_code():
    source = "".join(path.read_text() for path in Path(mosaic.__file__).parent.rglob("*.py"))

    # Some are there twice: the submit of one run and that of many pass the same points.
    assert set(re.findall(r'failpoint\("([^"]+)"\)', source)) == set(POINTS)


def test_a_worker_never_inherits_failpoints(lab, monkeypatch):
    lab.stop_daemon()
    monkeypatch.setenv("MOSAIC_FAILPOINTS", "punch.done")
    lab.restart_daemon()
    run = lab.submit(steps=1_000_000, rate=100)
    lab.wait_for(run, RunState.EXECUTING)

    assert b"MOSAIC_FAILPOINTS=punch.done" in environ(lab.holder_pid(run))
    assert b"MOSAIC_FAILPOINTS=punch.done" in environ(lab.tailer_pid(run))
    with open(f"/proc/{lab.root_pid(run)}/task/{lab.root_pid(run)}/children") as children:
        assert b"FAILPOINTS" not in environ(int(children.read()))


@pytest.mark.parametrize("point", ["punch.open", "punch.done"])
def test_a_tailer_that_is_killed_while_it_punches_the_spool_loses_nothing(point):
    report = run_trial(Schedule(0, 0, 0, (ToyRun(FLOOD, 200, 400.0),), (), point))

    assert report.violations == []
    assert report.done[f"{point}:kill"] == 1


@pytest.mark.slow
@pytest.mark.parametrize(
    "point",
    [
        name
        for name in POINTS
        if not name.startswith(("punch", "delete", "cleanup", "cancel", "command", "import", "far"))
    ],
)
def test_a_kill_between_any_two_steps_of_a_calm_run_breaks_nothing(point):
    calm = next(habit for habit in HABITS if habit.name == "calm")

    report = run_trial(Schedule(0, 0, 1, (ToyRun(calm, 200, 400.0, gpus=1),), (), point))

    assert report.violations == []
    assert report.done[f"{point}:kill"] == 1
