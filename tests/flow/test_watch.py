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
    """A run that continues until it is cancelled."""
    run = lab.submit("goes on", steps=1_000_000, rate=50, text_every=20)
    lab.wait_for(run, RunState.EXECUTING)
    yield run
    lab.client.cancel_run(run.run_id)
    lab.wait_until_over(run)


class Terminals:
    """Terminals with `mosaic` or with a shell."""

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
def open_terminal(lab):
    terminals = Terminals(lab)
    yield terminals
    for terminal in terminals.all:
        terminal.close()


def test_a_run_can_be_found_opened_and_cancelled(lab, live, open_terminal):
    terminal = open_terminal("watch")
    terminal.waits_for("? help")
    terminal.types("/goes")
    terminal.waits_for("/goes")
    terminal.types("\r")
    terminal.waits_for("filter: goes")
    terminal.types("\r")
    terminal.waits_for("EXECUTING: running")
    terminal.waits_for("toy/loss")
    terminal.waits_for("global_step=")
    terminal.types("c")
    terminal.waits_for(f"Cancel goes on ({live.run_id[:13]})? y/n")
    terminal.types("n")
    terminal.waits_for("esc back")
    assert lab.state(live) is RunState.EXECUTING
    terminal.types("cy")
    terminal.waits_for("CANCELLED: cancelled by request")
    terminal.types("q")

    assert terminal.ends()[0] == 0
    assert lab.state(live) is RunState.CANCELLED


def test_new_and_deleted_runs_appear_without_a_key(lab, open_terminal):
    terminal = open_terminal("watch", columns=140)
    terminal.waits_for("? help")
    run = lab.submit("visitor", steps=5)
    terminal.waits_for("visitor")
    lab.wait_until_over(run)
    terminal.types("\r")
    terminal.waits_for("TERMINATED: finished with exit code 0")
    lab.client.delete_run(run.run_id)
    terminal.waits_for(f"Run {run.run_id} was deleted.")
    terminal.types("q")

    assert terminal.ends()[0] == 0


@pytest.mark.parametrize("way", [signal.SIGTERM, signal.SIGHUP, "\x03", "q"])
def test_the_terminal_is_restored_however_the_view_ends(lab, open_terminal, way):
    terminal = open_terminal("watch")
    terminal.waits_for("? help")

    terminal.types(way) if isinstance(way, str) else terminal.process.send_signal(way)
    code, output = terminal.ends()

    assert code == {"q": 0, "\x03": 130, signal.SIGTERM: 143, signal.SIGHUP: 129}[way]
    for restored in ("\x1b[?1049l", "\x1b[?25h", "\x1b[?1000l"):
        assert restored in output
    assert "Traceback" not in output


def test_ctrl_z_restores_the_terminal_and_fg_shows_the_view_again(lab, open_terminal):
    shell = open_terminal.shell()
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


def test_a_resized_terminal_is_redrawn_immediately(lab, open_terminal):
    terminal = open_terminal("watch", columns=200)
    terminal.waits_for("q quit")

    terminal.resize(40, 12)
    terminal.process.send_signal(signal.SIGWINCH)
    narrow = terminal.waits_for("? help · q quit")
    terminal.types("q")

    assert narrow.count("\n") < 60
    assert terminal.ends()[0] == 0


def test_a_restart_of_the_daemon_is_reported_and_survived(lab, open_terminal):
    lab.wait_until_over(lab.submit("before", steps=3))
    terminal = open_terminal("watch")
    terminal.waits_for("before")
    lab.stop_daemon()
    terminal.waits_for("The daemon does not answer; waiting for it")
    lab.restart_daemon()
    terminal.waits_for("? help")
    lab.submit("after", steps=3)
    terminal.waits_for("after")
    terminal.types("q")

    assert terminal.ends()[0] == 0


def test_a_dumb_terminal_gets_plain_lines_until_no_run_is_live(lab, live, open_terminal):
    terminal = open_terminal("watch", TERM="dumb")
    output = terminal.waits_for("EXECUTING: running")
    lab.client.cancel_run(live.run_id)
    output += terminal.waits_for("CANCELLED: cancelled by request")

    code, rest = terminal.ends()

    assert code == 0
    assert "\x1b" not in output + rest
    assert [line for line in output.splitlines() if live.run_id in line]


def test_in_a_pipe_watch_prints_one_line_per_run_and_exits(lab):
    runs = [lab.wait_until_over(lab.submit(f"piped {number}", steps=3)) for number in range(2)]

    env = {**os.environ, "MOSAIC_HOME": str(lab.root.path)}
    listed = subprocess.run([MOSAIC, "watch"], env=env, capture_output=True, text=True, timeout=60, check=True).stdout
    one = subprocess.run(
        [MOSAIC, "watch", runs[0].run_id], env=env, capture_output=True, text=True, timeout=60, check=True
    ).stdout

    for run in runs:
        assert sum(run.run_id in line for line in listed.splitlines()) == 1
    assert "TERMINATED: finished with exit code 0" in one
    assert "3 env steps" in one


def test_the_output_of_a_worker_cannot_move_the_cursor(lab, open_terminal, tmp_path):
    evil = tmp_path / "evil.py"
    evil.write_text(
        "import json, time\n"
        "print('\\x1b[2J\\x1b]0;owned\\x07evil log', flush=True)\n"
        "print(json.dumps({'type': 'metric', 'name': '\\x1b[5;5Hevil metric', 'value': 1, 'step': 1}), flush=True)\n"
        "time.sleep(600)\n"
    )
    run = lab.submit_worker({"script": str(evil)}, name="evil")
    terminal = open_terminal("watch", run.run_id)
    output = terminal.waits_for("evil log") + terminal.waits_for("? help")
    terminal.types("q")
    output += terminal.ends()[1]
    lab.client.cancel_run(run.run_id)

    for escape in ("\x1b[2J", "owned", "\x1b[5;5H"):
        assert escape not in output
