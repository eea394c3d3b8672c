"""A real worker process: its stdout is an append-only file, as under MOSAIC."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
RUN_ID = "01ARZ3NDEKTSV4RRFFQ69G5FAV"


@dataclass
class Ended:
    code: int
    out: bytes
    err: str

    @property
    def lines(self) -> list[bytes]:
        return self.out.splitlines()

    @property
    def objects(self) -> list[dict]:
        return [json.loads(line) for line in self.lines]


class Bench:
    """Starts Python processes and ends those a test left running."""

    sdk = ROOT / "sdk" / "src"
    autowrap = sdk / "mosaic_sdk" / "autowrap"
    gym_gui = ROOT / "sdk" / "gym_gui" / "src"
    toy = ROOT / "workers" / "toy_worker"

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.out = folder / "stdout.log"
        self.err = folder / "stderr.log"
        self.started: list[subprocess.Popen] = []

    def start(self, *args, python=sys.executable, path=(sdk, toy), env=None, run_id=RUN_ID) -> subprocess.Popen:
        # Not our own environment: variables of the user who runs the tests would change the results.
        clean = {"PATH": os.environ["PATH"], "PYTHONPATH": os.pathsep.join(map(str, path)), **(env or {})}
        if run_id:
            clean["MOSAIC_RUN_ID"] = run_id
        with open(self.out, "ab") as out, open(self.err, "ab") as err:
            process = subprocess.Popen(
                [python, *map(str, args)],
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=err,
                env=clean,
                cwd=self.folder,
                start_new_session=True,
            )
        self.started.append(process)
        return process

    def run(self, *args, timeout_s=60, **kwargs) -> Ended:
        return self.end(self.start(*args, **kwargs), timeout_s)

    def script(self, text: str, **kwargs) -> Ended:
        return self.run("-c", text, **kwargs)

    def end(self, process: subprocess.Popen, timeout_s=60) -> Ended:
        code = process.wait(timeout_s)
        return Ended(code, self.out.read_bytes(), self.err.read_text(errors="replace"))

    def wait_for(self, text: bytes, process: subprocess.Popen, file: Path | None = None, timeout_s=30) -> None:
        """Until `text` is on stdout, or in `file`."""
        self.wait_until(lambda: text in (file or self.out).read_bytes(), process, timeout_s)

    def wait_until(self, condition: Callable[[], bool], process: subprocess.Popen, timeout_s=30) -> None:
        """Until `condition` holds, while `process` lives."""
        deadline = time.monotonic() + timeout_s
        while not condition():
            assert process.poll() is None, f"ended with {process.returncode}: {self.err.read_text()}"
            assert time.monotonic() < deadline, "it did not come"
            time.sleep(0.005)

    def close(self) -> None:
        for process in self.started:
            try:
                os.killpg(process.pid, signal.SIGKILL)  # it leads its own session, so no other process is in it
            except ProcessLookupError:
                pass
            process.wait()


@pytest.fixture
def bench(tmp_path):
    bench = Bench(tmp_path)
    yield bench
    bench.close()
