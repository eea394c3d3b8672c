"""Ctrl-C while following, on a real terminal: the command runs under a pseudo-terminal against a scripted daemon."""

import os
import select
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest
from scripted_daemon import RUN_ID, TOKEN, ScriptedDaemon, ScriptedService

from mosaic.wire import mosaic_pb2 as pb

UNDER_A_TERMINAL = "import pty, sys; raise SystemExit(pty.spawn(sys.argv[1:]) >> 8)"
CTRL_C = b"\x03"


class Following(ScriptedService):
    """One run that executes until it is cancelled."""

    async def SubmitRun(self, request, context):
        self.state = pb.EXECUTING
        return pb.RunInfo(run_id=RUN_ID, name="cartpole", state=self.state)

    async def CancelRun(self, request, context):
        self.state = pb.CANCELLED
        return pb.RunInfo(run_id=RUN_ID, state=self.state)


@pytest.fixture
def daemon():
    folder = Path(tempfile.mkdtemp(prefix="mosaic-"))
    (folder / "token").write_text(TOKEN)
    daemon = ScriptedDaemon(folder / "daemon.sock", Following()).start()
    daemon.environment = {"MOSAIC_ADDRESS": daemon.target, "MOSAIC_TOKEN_FILE": str(folder / "token")}
    yield daemon
    daemon.close()
    shutil.rmtree(folder)


class Session:
    """`mosaic run` with its input and output."""

    def __init__(self, daemon, *prefix):
        command = [*prefix, sys.executable, "-m", "mosaic.cli.main", "run", "toy"]
        environment = {**os.environ, **daemon.environment, "TERM": "xterm"}
        self.process = subprocess.Popen(
            command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
        )
        self.read = b""

    def waits_for(self, text):
        deadline = time.monotonic() + 30
        while text not in self.read:
            assert time.monotonic() < deadline, f"no {text!r} in {self.read!r}"
            if select.select([self.process.stdout], [], [], 0.1)[0]:
                self.read += os.read(self.process.stdout.fileno(), 65536)

    def types(self, keys):
        os.write(self.process.stdin.fileno(), keys)

    def ends(self):
        code = self.process.wait(30)
        self.process.stdin.close()
        self.process.stdout.close()
        return code


@pytest.fixture
def start(daemon):
    sessions = []

    def make(*prefix):
        sessions.append(Session(daemon, *prefix))
        return sessions[-1]

    yield make
    for session in sessions:
        session.process.kill()
        session.process.wait()


def test_ctrl_c_and_d_lets_the_run_continue(daemon, start):
    session = start(sys.executable, "-c", UNDER_A_TERMINAL)
    session.waits_for(b"EXECUTING")
    session.types(CTRL_C)
    session.waits_for(b"[d/c]")
    session.types(b"d\n")
    session.waits_for(b"The run continues")

    assert session.ends() == 130
    assert daemon.service.state == pb.EXECUTING


def test_a_second_ctrl_c_lets_the_run_continue(daemon, start):
    session = start(sys.executable, "-c", UNDER_A_TERMINAL)
    session.waits_for(b"EXECUTING")
    session.types(CTRL_C)
    session.waits_for(b"[d/c]")
    session.types(CTRL_C)
    session.waits_for(b"The run continues. Watch")

    assert session.ends() == 130
    assert daemon.service.state == pb.EXECUTING


def test_ctrl_c_and_c_cancels_the_run_and_shows_its_end(daemon, start):
    session = start(sys.executable, "-c", UNDER_A_TERMINAL)
    session.waits_for(b"EXECUTING")
    session.types(CTRL_C)
    session.waits_for(b"[d/c]")
    session.types(b"c\n")
    session.waits_for(b"CANCELLED")

    assert session.ends() == 130
    assert daemon.service.state == pb.CANCELLED


def test_without_a_terminal_an_interrupt_detaches(daemon, start):
    session = start()
    session.waits_for(b"EXECUTING")
    session.process.send_signal(2)
    session.waits_for(b"Detached. The run continues")

    assert session.ends() == 130
    assert daemon.service.state == pb.EXECUTING


def test_a_run_that_succeeds_is_exit_code_0(daemon, start):
    session = start()
    session.waits_for(b"EXECUTING")
    daemon.service.state = pb.TERMINATED

    assert session.ends() == 0
