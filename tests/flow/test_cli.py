"""Every verb as a user types it, against the real daemon."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

MOSAIC = Path(sys.executable).with_name("mosaic")


@pytest.fixture
def mosaic(lab):
    def call(*words, code=0, stdin=None):
        env = {**os.environ, "MOSAIC_HOME": str(lab.root.path), "NO_COLOR": "1"}
        done = subprocess.run([MOSAIC, *words], env=env, capture_output=True, text=True, timeout=60, input=stdin)
        assert done.returncode == code, done.stdout + done.stderr
        assert "Traceback" not in done.stderr
        return done.stdout if code == 0 else done.stdout + done.stderr

    return call


@pytest.fixture
def finished(mosaic):
    mosaic("run", "toy", "steps=120", "text_every=50", "--name", "a run")
    return json.loads(mosaic("runs", "--json"))[0]["run_id"]


def test_run_follows_to_the_end_and_prints_a_summary(mosaic):
    output = mosaic("run", "toy", "steps=100")

    assert "TERMINATED" in output
    assert "100 env steps" in output


def test_a_fault_is_exit_code_1_with_the_reason(mosaic):
    output = mosaic("run", "toy", "steps=100", "crash_at=5", code=1)

    assert "exit code 1" in output or "FAULTED" in output


def test_detached_runs_print_an_object_with_id_state_and_reason(mosaic):
    run = json.loads(mosaic("run", "toy", "steps=10", "--detach", "--json"))

    assert {"run_id", "state", "reason"} <= run.keys()


def test_submit_takes_a_file_and_standard_input(mosaic, tmp_path):
    config = json.dumps({"metadata": {"worker": {"module": "toy_worker.cli", "config": {"steps": 3}}}})
    (tmp_path / "config.json").write_text(config)

    from_file = json.loads(mosaic("submit", str(tmp_path / "config.json"), "--json"))
    from_stdin = json.loads(mosaic("submit", "-", "--json", stdin=config))

    assert from_file["run_id"] != from_stdin["run_id"]


def test_show_takes_a_prefix_and_json(mosaic, finished):
    shown = json.loads(mosaic("show", finished[:20], "--json"))

    assert (shown["run_id"], shown["state"], shown["reason"]) == (finished, "TERMINATED", "")
    assert "TERMINATED" in mosaic("show", finished)


def test_export_prints_typed_lines_with_seq(mosaic, finished):
    events = [json.loads(line) for line in mosaic("export", finished).splitlines()]

    assert [event["seq"] for event in events] == list(range(1, len(events) + 1))
    assert {event["type"] for event in events} == {"step", "episode", "metric", "lifecycle"}
    assert mosaic("export", finished, "--type", "step", "--format", "csv").count("\n") == 121


def test_logs_show_what_the_library_printed(mosaic, finished):
    assert len(mosaic("logs", finished).splitlines()) >= 2


def test_cancel_ends_a_run_and_rm_deletes_it(mosaic):
    run = json.loads(mosaic("run", "toy", "steps=1000000", "rate=10", "--detach", "--json"))["run_id"]

    mosaic("cancel", run, "--wait")

    assert json.loads(mosaic("show", run, "--json"))["state"] == "CANCELLED"
    mosaic("rm", run, "--yes")
    assert run in mosaic("show", run, code=1)


def test_other_verbs_work(mosaic, finished):
    assert finished in mosaic("du", "--json") or "a run" in mosaic("du")
    assert "Install what is included in MOSAIC with: mosaic worker install NAME …" in mosaic("worker", "list")
    assert json.loads(mosaic("worker", "list", "--json"))
    assert json.loads(mosaic("daemon", "status", "--json"))["healthy"]
    assert mosaic("curve", finished, "toy/loss")
    mosaic("gc")
    mosaic("doctor")


def test_runs_continue_when_the_daemon_stops(mosaic, lab):
    run = json.loads(mosaic("run", "toy", "steps=1000000", "rate=50", "--detach", "--json"))["run_id"]
    lab.wait_until_run(lab.client.get_run(run), lambda now: now.summary.steps > 5, "steps")

    mosaic("daemon", "stop")
    mosaic("daemon", "start")

    before = lab.client.get_run(run)
    assert str(before.state) == "EXECUTING"
    assert before.attempt == 1
    lab.wait_until_run(before, lambda now: now.summary.steps > before.summary.steps, "more steps")


@pytest.mark.parametrize(
    ("words", "code", "hint"),
    [
        (("run", "nosuch"), 1, "nosuch"),
        (("show", "01ZZZZ"), 1, "01ZZZZ"),
        (("run", "toy", "nokey"), 2, "key=value"),
        (("nosuchverb",), 2, "nosuchverb"),
        (("submit", "/nowhere.json"), 1, "/nowhere.json"),
    ],
)
def test_errors_are_a_sentence_and_an_exit_code(mosaic, words, code, hint):
    assert hint in mosaic(*words, code=code)
