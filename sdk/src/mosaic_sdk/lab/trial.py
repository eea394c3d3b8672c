"""One start of a worker, as the daemon would start it, with its output and what it leaves behind."""

import json
import os
import signal
import subprocess
import sys
import time
import uuid
from typing import Any, Callable, Dict, List, Mapping, Optional, Sequence, Set, Tuple, Union

from mosaic_sdk.lab import processes
from mosaic_sdk.lab.ground import Ground
from mosaic_sdk.lab.warm import Forked, WarmPython
from mosaic_sdk.names import EPISODE, EVENT_KEY, KIND_KEYS, KINDS, STEP, TelemetryEnv, VideoModes, WorkerEnv

_NOT_INHERITED = ("PYTHONUNBUFFERED", "PYTHONHOME", "VIRTUAL_ENV", "OLDPWD")
_POLL_S = 0.01


class Trial:
    """Use it in a `with` block: at its end no process of the worker is left."""

    def __init__(
        self,
        module: str,
        config: Mapping[str, Any],
        python: str = sys.executable,
        env: Optional[Mapping[str, str]] = None,
        arguments: Sequence[str] = (),
        config_text: Optional[str] = None,
        program: Sequence[str] = (),
        warm: Optional[WarmPython] = None,
    ) -> None:
        """`config_text`: the content of the config file instead of `config`; `program`: what Python runs instead."""
        self.run_id = "LAB" + uuid.uuid4().hex[:23].upper()
        self.ground = Ground(env or {})
        document = {"run_id": self.run_id, "worker_id": "lab", "extras": {}, **config}
        with open(self.ground.config_file, "w") as output:
            output.write(json.dumps(document) if config_text is None else config_text)
        self._module, self._arguments = module, ["--config", self.ground.config_file, *arguments]
        self._warm = warm
        self._argv = [python, *(program or ("-m", module, *self._arguments))]
        self._env = self._environment(env or {})
        self._other_children: Set[int] = set()
        self._child: Union["subprocess.Popen[bytes]", Forked, None] = None
        self.leftovers: List[str] = []

    def __enter__(self) -> "Trial":
        processes.subreaper(True)
        self._other_children = processes.children()
        return self

    def __exit__(self, *_: object) -> None:
        self._sweep()
        processes.subreaper(False)
        self.ground.clear()

    def start(self, stdin: int = subprocess.DEVNULL) -> None:
        with open(self.stdout_file, "ab") as out, open(self.stderr_file, "ab") as err:
            if self._warm is not None:
                fds = [out.fileno(), err.fileno()]
                self._child = self._warm.start(self._module, self._arguments, self.ground.run, self._env, fds)
                return
            self._child = subprocess.Popen(
                self._argv,
                cwd=self.ground.run,
                env=self._env,
                stdin=stdin,
                stdout=out,
                stderr=err,
                start_new_session=True,
            )

    def run(self, limit_s: float) -> "Trial":
        """Start it and wait for its end; a worker that takes longer is killed, and `code` is None."""
        self.start()
        self.wait(limit_s)
        return self

    def wait(self, limit_s: float) -> Optional[int]:
        """The exit code (minus the number of a signal), or None after the limit."""
        assert self._child is not None
        try:
            self._child.wait(limit_s)
        except subprocess.TimeoutExpired:
            return None
        if not self.leftovers:
            self.leftovers = self._left_behind()
        return self._child.returncode

    def wait_for(self, condition: Callable[[], bool], limit_s: float) -> bool:
        """Whether the condition became true before the limit and while the worker ran."""
        assert self._child is not None
        deadline = time.monotonic() + limit_s
        while not condition():
            if time.monotonic() > deadline or self._child.poll() is not None:
                return condition()
            time.sleep(_POLL_S)
        return True

    def terminate(self) -> None:
        assert self._child is not None
        self._child.send_signal(signal.SIGTERM)

    def send(self, command: Mapping[str, Any]) -> None:
        """Write a line to its stdin; ignored if it has exited."""
        assert self._child is not None
        assert self._child.stdin is not None
        try:
            self._child.stdin.write(json.dumps(command).encode() + b"\n")
            self._child.stdin.flush()
        except BrokenPipeError:
            pass

    @property
    def pid(self) -> int:
        assert self._child is not None
        return self._child.pid

    @property
    def code(self) -> Optional[int]:
        return self._child.poll() if self._child else None

    @property
    def ended(self) -> str:
        """How it ended, as text."""
        if self.code is None:
            return "it did not end in time"
        return f"exit code {self.code}" if self.code >= 0 else f"killed by signal {-self.code}"

    @property
    def stdout_file(self) -> str:
        return os.path.join(self.ground.run, "logs", "worker.stdout.log")

    @property
    def stderr_file(self) -> str:
        return os.path.join(self.ground.run, "logs", "worker.stderr.log")

    @property
    def stdout(self) -> bytes:
        with open(self.stdout_file, "rb") as file:
            return file.read()

    @property
    def last_words(self) -> str:
        with open(self.stderr_file, errors="replace") as file:
            lines = [line.strip() for line in file if line.strip()]
        return lines[-1] if lines else ""

    def objects(self) -> List[Dict[str, Any]]:
        """Every whole line that is a JSON object, in order."""
        found = []
        for line in self.stdout.split(b"\n")[:-1]:
            try:
                value = json.loads(line)
            except (ValueError, RecursionError):
                continue
            if isinstance(value, dict):
                found.append(value)
        return found

    def events(self, name: str = "") -> List[Dict[str, Any]]:
        return [line for line in self.objects() if EVENT_KEY in line and name in ("", line[EVENT_KEY])]

    def measurements(self) -> List[Dict[str, Any]]:
        return [line for line in self.objects() if kind_of(line) in KINDS]

    def rewards(self, most: int) -> List[Tuple[Any, ...]]:
        """The first rewards and returns, to compare two runs."""
        found = [(kind_of(line), line.get("reward", line.get("total_reward"))) for line in self.measurements()]
        return [pair for pair in found if pair[0] in (STEP, EPISODE)][:most]

    def warm_python(self, python: str, modules: Sequence[str]) -> WarmPython:
        """A process in this trial's folders that imports the modules: other trials are forked from it."""
        return WarmPython(python, modules, self._env, self.ground.run, self.stderr_file)

    def _left_behind(self) -> List[str]:
        alive = [f"process {pid} ({processes.command_of(pid)})" for pid in self._survivors()]
        return alive + [f"/dev/shm/{name}" for name in self._segments()]

    def _survivors(self) -> List[int]:
        ours = processes.children() - self._other_children
        return sorted(pid for pid in (ours | processes.naming(self.run_id)) - {os.getpid()} if processes.lives(pid))

    def _segments(self) -> List[str]:
        return [name for name in os.listdir("/dev/shm") if self.run_id in name]

    def _sweep(self) -> None:
        if self._child is not None:
            self._child.kill()
            self._child.wait()
            if self._child.stdin:
                self._child.stdin.close()
        for pid in self._survivors():
            processes.end(pid)
        for name in self._segments():
            os.unlink(os.path.join("/dev/shm", name))

    def _environment(self, more: Mapping[str, str]) -> Dict[str, str]:
        env = {name: value for name, value in os.environ.items() if name not in _NOT_INHERITED}
        env.update(
            {
                **self.ground.variables,
                WorkerEnv.RUN_ID: self.run_id,
                WorkerEnv.RUN_DIR: self.ground.run,
                WorkerEnv.WORKER_ID: "lab",
                WorkerEnv.CHECKPOINT_DIR: os.path.join(self.ground.run, "checkpoints"),
                WorkerEnv.CONFIG_FILE: self.ground.config_file,
                TelemetryEnv.FASTLANE_ONLY: "1",
                TelemetryEnv.FASTLANE_SLOT: "0",
                TelemetryEnv.FASTLANE_VIDEO_MODE: VideoModes.SINGLE,
                TelemetryEnv.FASTLANE_GRID_LIMIT: "4",
                "CUDA_VISIBLE_DEVICES": "",
                **more,
            }
        )
        sdk = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
        # Absolute, because the worker's working directory is its run folder.
        given = [os.path.abspath(part) for part in env.get("PYTHONPATH", "").split(os.pathsep) if part]
        env["PYTHONPATH"] = os.pathsep.join([os.path.join(sdk, "autowrap"), *given])
        return env


def kind_of(line: Mapping[str, Any]) -> str:
    return str(next((line[key] for key in KIND_KEYS if key in line), ""))
