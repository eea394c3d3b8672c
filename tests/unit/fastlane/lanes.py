"""Real processes at the other end of a lane."""

import contextlib
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
SDK = ROOT / "sdk" / "src"
AUTOWRAP = SDK / "mosaic_sdk" / "autowrap"
GYM_GUI = ROOT / "sdk" / "gym_gui" / "src"


def segments(run_id):
    """All files of a run in /dev/shm."""
    return sorted(name for name in os.listdir("/dev/shm") if run_id in name)


class Scripts:
    """Python processes, each the leader of a group that is killed at the end."""

    def __init__(self, folder):
        self.folder = folder
        self.started = []

    def start(self, text, *args, env=None, path=(SDK,), python=sys.executable):
        clean = {"PATH": os.environ["PATH"], "PYTHONPATH": os.pathsep.join(map(str, path)), **(env or {})}
        process = subprocess.Popen(
            [python, "-c", text, *args],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=clean,
            cwd=self.folder,
            start_new_session=True,
            text=True,
        )
        self.started.append(process)
        return process

    def run(self, text, *args, timeout_s=60, **kwargs):
        """stdout and stderr of a script that must succeed."""
        process = self.start(text, *args, **kwargs)
        out, err = process.communicate(timeout=timeout_s)
        assert process.returncode == 0, err
        return out, err

    def close(self):
        for process in self.started:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.communicate()


def wait_until(done, timeout_s=30):
    deadline = time.monotonic() + timeout_s
    while not done():
        assert time.monotonic() < deadline, f"waited {timeout_s} s in vain"
        time.sleep(0.005)
