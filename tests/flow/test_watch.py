"""`mosaic watch` on real terminals, with the real daemon and toy runs."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from terminal import Terminal

from mosaic.model.states import RunState

MOSAIC = Path(sys.executable).with_name("mosaic")
UP, PGDN = "\x1b[A", "\x1b[6~"


@pytest.fixture(scope="module")
def lab(shared_lab):
    return shared_lab


@pytest.fixture
def live(lab):
    """A run that goes on until it is cancelled."""
    run = lab.submit("goes on", steps=1_000_000, rate=50, text_every=20)
    lab.wait_for(run, RunState.EXECUTING)
    yield run
    lab.client.cancel_run(run.run_id)
    lab.wait_until_over(run)


class People:
    """Those who sit down at terminals, with `mosaic` or with a shell."""

    def __init__(self, lab):
        self._env = {"MOSAIC_HOME": str(lab.root.path), "PS1": "$ "}
        self.all = []

    def __call__(self, *words, columns=80, rows=24, **env):
        self.all.append(Terminal([MOSAIC, *words], {**self._env, **env}, columns, rows))
        return self.all[-1]

    def shell(self):
        self.all.append(Terminal(["bash", "--norc", "-i"], self._env))
        return self.all[-1]


@pytest.fixture
def person(lab):
    people = People(lab)
    yield people
    for somebody in people.all:
        somebody.close()


def test_a_run_is_found_opened_cancelled_and_seen_to_end(lab, live, person):
    somebody = person("watch")
    somebody.waits_for("? help")
    somebody.types("/goes")
    somebody.waits_for("/goes")
    somebody.types("\r")
    somebody.waits_for("filter: goes")
    somebody.types("\r")
    somebody.waits_for("EXECUTING: running")
    somebody.waits_for("toy/loss")
    somebody.waits_for("global_step=")
    somebody.types("c")
    somebody.waits_for(f"Cancel goes on ({live.run_id[:13]})? y/n")
    somebody.types("n")
    somebody.waits_for("esc back")
    assert lab.state(live) is RunState.EXECUTING
    somebody.types("cy")
    somebody.waits_for("CANCELLED: cancelled by request")
    somebody.types("q")

    assert somebody.ends()[0] == 0
    assert lab.state(live) is RunState.CANCELLED


def test_new_runs_and_deleted_ones_are_seen_without_a_key(lab, person):
    somebody = person("watch", columns=140)
    somebody.waits_for("? help")
    run = lab.submit("visitor", steps=5)
    somebody.waits_for("visitor")
    lab.wait_until_over(run)
    somebody.types("\r")
    somebody.waits_for("TERMINATED: finished by itself")
    lab.client.delete_run(run.run_id)
    somebody.waits_for(f"Run {run.run_id} was deleted.")
    somebody.types("q")

    assert somebody.ends()[0] == 0


@pytest.mark.parametrize("way", [signal.SIGTERM, signal.SIGHUP, "\x03", "q"])
def test_the_terminal_is_as_before_however_the_view_is_left(lab, person, way):
    somebody = person("watch")
    somebody.waits_for("? help")

    somebody.types(way) if isinstance(way, str) else somebody.process.send_signal(way)
    code, said = somebody.ends()

    assert code == {"q": 0, "\x03": 130, signal.SIGTERM: 143, signal.SIGHUP: 129}[way]
    for restored in ("\x1b[?1049l", "\x1b[?25h", "\x1b[?1000l"):
        assert restored in said
    assert "Traceback" not in said


def test_ctrl_z_gives_the_terminal_back_and_fg_takes_it_again(lab, person):
    shell = person.shell()
    shell.types(f"{MOSAIC} watch\r")
    shell.waits_for("? help")
    shell.types("\x1a")
    left = shell.waits_for("Stopped")
    shell.types("fg\r")
    shell.waits_for("\x1b[?1049h")
    shell.waits_for("? help")
    shell.types("q")
    shell.waits_for("\x1b[?1049l")
    shell.types("exit\r")

    assert "\x1b[?1000l" in left
    assert "\x1b[?1049l" in left
    assert shell.ends()[0] == 0


def test_another_size_is_drawn_at_once(lab, person):
    somebody = person("watch", columns=200)
    somebody.waits_for("q leave")

    somebody.resize(40, 12)
    somebody.process.send_signal(signal.SIGWINCH)
    narrow = somebody.waits_for("? help · q leave")
    somebody.types("q")

    assert narrow.count("\n") < 60
    assert somebody.ends()[0] == 0


def test_a_restart_of_the_daemon_is_said_and_survived(lab, person):
    lab.wait_until_over(lab.submit("before", steps=3))
    somebody = person("watch")
    somebody.waits_for("before")
    lab.stop_daemon()
    somebody.waits_for("No daemon answers; waiting for one")
    lab.restart_daemon()
    somebody.waits_for("? help")
    lab.submit("after", steps=3)
    somebody.waits_for("after")
    somebody.types("q")

    assert somebody.ends()[0] == 0


def test_a_dumb_terminal_gets_plain_lines_until_no_run_is_live(lab, live, person):
    somebody = person("watch", TERM="dumb")
    said = somebody.waits_for("EXECUTING: running")
    lab.client.cancel_run(live.run_id)
    said += somebody.waits_for("CANCELLED: cancelled by request")

    code, rest = somebody.ends()

    assert code == 0
    assert "\x1b" not in said + rest
    assert [line for line in said.splitlines() if live.run_id in line]


def test_a_pipe_gets_one_line_per_run_and_an_end(lab):
    runs = [lab.wait_until_over(lab.submit(f"piped {number}", steps=3)) for number in range(2)]

    env = {**os.environ, "MOSAIC_HOME": str(lab.root.path)}
    listed = subprocess.run([MOSAIC, "watch"], env=env, capture_output=True, text=True, timeout=60, check=True).stdout
    one = subprocess.run(
        [MOSAIC, "watch", runs[0].run_id], env=env, capture_output=True, text=True, timeout=60, check=True
    ).stdout

    for run in runs:
        assert sum(run.run_id in line for line in listed.splitlines()) == 1
    assert "TERMINATED: finished by itself, exit code 0" in one
    assert "3 env steps" in one


def test_lines_of_a_worker_cannot_move_the_cursor(lab, person, tmp_path):
    evil = tmp_path / "evil.py"
    evil.write_text(
        "import json, time\n"
        "print('\\x1b[2J\\x1b]0;owned\\x07evil log', flush=True)\n"
        "print(json.dumps({'type': 'metric', 'name': '\\x1b[5;5Hevil metric', 'value': 1, 'step': 1}), flush=True)\n"
        "time.sleep(600)\n"
    )
    run = lab.submit_worker({"script": str(evil)}, name="evil")
    somebody = person("watch", run.run_id)
    said = somebody.waits_for("evil log") + somebody.waits_for("? help")
    somebody.types("q")
    said += somebody.ends()[1]
    lab.client.cancel_run(run.run_id)

    for escape in ("\x1b[2J", "owned", "\x1b[5;5H"):
        assert escape not in said
