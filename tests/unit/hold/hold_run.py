"""A run folder with a real holder in it, for the tests of the holder."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

from mosaic.model.rundir import RunDir

SOURCE = Path(__file__).resolve().parents[3] / "src" / "mosaic"
DEADLINE_S = 30.0
NOBODY = 65534


def eventually(condition: Callable[[], Any], what: str) -> Any:
    """The first true value of `condition`; the test fails when there is none in time."""
    end = time.monotonic() + DEADLINE_S
    while not (value := condition()):
        assert time.monotonic() < end, f"timeout while waiting for {what}"
        time.sleep(0.005)
    return value


def alive(mark: str) -> list[int]:
    """Processes on this machine whose command line contains `mark`, in any pid namespace."""
    return [int(path.name) for path in Path("/proc").iterdir() if path.name.isdigit() and mark in _command_line(path)]


def _command_line(path: Path) -> str:
    try:
        return (path / "cmdline").read_text(errors="replace")
    except OSError:
        return ""


class HeldRun:
    """What a daemon does for one holder. With `uid` None it runs as the user who runs the tests."""

    def __init__(self, folder: Path, python: str, uid: int | None = None) -> None:
        self.dir = RunDir(folder / "trainer" / "runs" / "01RUN")
        self.python = python
        self.uid = uid
        self.mark = f"mark-{uuid.uuid4().hex}"  # in the command line of every process that matters to a test
        self.hold = str(SOURCE / "hold" / "__main__.py")
        self.processes: list[subprocess.Popen[bytes]] = []
        self.dir.make()
        self._folder = folder
        if uid is not None:
            self.hold = self._copy_source(folder)
        self.own()

    def own(self) -> None:
        """Give all files to the user of the run."""
        if self.uid is not None:
            subprocess.run(["chown", "-R", f"{self.uid}:{self.uid}", str(self._folder)], check=True)

    def _copy_source(self, folder: Path) -> str:
        # The checkout may be in a folder that this user cannot read.
        for part in ("__init__.py", "VERSION", "model", "hold"):
            source, target = SOURCE / part, folder / "src" / "mosaic" / part
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copytree(source, target) if source.is_dir() else shutil.copy(source, target)
        return str(folder / "src" / "mosaic" / "hold" / "__main__.py")

    def script(self, code: str) -> list[str]:
        """The argv of a marked Python process."""
        return [self.python, "-I", "-S", "-c", code, self.mark]

    def launch(self, argv: list[str], attempt: int = 1, **more: Any) -> None:
        value = {
            "version": 1,
            "run_id": self.mark,
            "attempt": attempt,
            "nonce": "n",
            "argv": argv,
            "env": {"PATH": os.environ["PATH"], "MOSAIC_RUN_ID": self.mark, "MOSAIC_RUN_DIR": str(self.dir.path)},
            "cwd": str(self.dir.path),
            "time_limit_s": None,
            "grace_s": 20.0,
            "pipe": False,
            "hold": "auto",
            "tailer_argv": [],
            "tailer_env": {},
            **more,
        }
        self.dir.launch.write_text(json.dumps(value))
        if self.uid is not None:
            os.chown(self.dir.launch, self.uid, self.uid)  # a holder reads only files of its own user

    def start(self, attempt: int = 1, before_exec: Callable[[], None] | None = None) -> "subprocess.Popen[bytes]":
        argv = [self.python, "-I", "-S", self.hold, "--run-dir", str(self.dir.path), "--attempt", str(attempt)]
        owner = {"user": self.uid, "group": self.uid, "extra_groups": []} if self.uid is not None else {}
        with open(self.dir.holder_log, "ab") as log:
            process = subprocess.Popen(
                argv, stdin=subprocess.DEVNULL, stderr=log, start_new_session=True, preexec_fn=before_exec, **owner
            )
        self.processes.append(process)
        return process

    def run(self, argv: list[str], **more: Any) -> dict[str, Any]:
        """Launch, wait until the holder has exited, and return exit.json."""
        self.launch(argv, **more)
        holder = self.start()
        assert holder.wait(DEADLINE_S) == 0, self.log
        return self.exit

    def printed(self, text: str) -> str:
        """Wait until the worker has printed `text`."""
        return eventually(lambda: text in self.stdout and self.stdout, f"{text!r} on stdout")

    def ended(self) -> dict[str, Any]:
        """Wait for exit.json."""
        eventually(self.dir.exit.is_file, "exit.json")
        return self.exit

    def clean_up(self) -> None:
        for process in self.processes:
            if process.poll() is None:
                process.send_signal(signal.SIGKILL)
                process.wait()
        eventually(lambda: not alive(self.mark), "the end of every process of this test")

    @property
    def stdout(self) -> str:
        return self.dir.stdout.read_text(errors="replace") if self.dir.stdout.exists() else ""

    @property
    def stderr(self) -> str:
        return self.dir.stderr.read_text(errors="replace")

    @property
    def log(self) -> str:
        return self.dir.holder_log.read_text()

    @property
    def exit(self) -> dict[str, Any]:
        value: dict[str, Any] = json.loads(self.dir.exit.read_text())
        return value

    @property
    def started(self) -> dict[str, Any]:
        value: dict[str, Any] = json.loads(self.dir.started.read_text())
        return value


def python_for(uid: int) -> str | None:
    """An interpreter that this user may execute: ours may be in root's home."""
    for python in (sys.executable, "/usr/bin/python3", "/usr/local/bin/python3"):
        check = [python, "-I", "-S", "-c", "import sys; sys.exit(sys.version_info < (3, 11))"]
        try:
            if subprocess.run(check, user=uid, stderr=subprocess.DEVNULL).returncode == 0:
                return python
        except OSError:
            continue
    return None
