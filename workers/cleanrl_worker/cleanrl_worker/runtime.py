"""Starts the launcher in a process of its own and looks after it: heartbeats, its stop, its end.

The runtime's process imports no library: it answers at once, whatever the script does, and a script that brings its
interpreter down takes the launcher with it, not the one who tells of it.
"""

import os
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

from mosaic_sdk import emit
from mosaic_sdk.cli import WorkerStopped, WorkFailed
from mosaic_sdk.config import ConfigError
from mosaic_sdk.heartbeat import Heartbeat
from mosaic_sdk.names import WorkerEnv

from cleanrl_worker import analytics, fastlane
from cleanrl_worker.config import CleanRLWorkerConfig
from cleanrl_worker.link import Link
from cleanrl_worker.registry import ALGORITHMS

# name → importable module, of all that can be run.
DEFAULT_ALGO_REGISTRY: dict[str, str] = {name: found.module for name, found in ALGORITHMS.items() if found.is_available}

HEARTBEAT_S = 30.0
# The launcher saves and leaves in less; MOSAIC kills the whole tree after 10 s.
_GRACE_S = 9.0
_REFUSED = 2


class TrainingFailed(WorkFailed):
    """The training ended before it was done; the text is the library's last word."""


class CleanRLWorkerRuntime:
    """One training, from the start of its process to analytics.json."""

    def __init__(
        self,
        config: CleanRLWorkerConfig,
        config_file: str,
        emitter: emit.Emitter | None = None,
        heartbeat_s: float = HEARTBEAT_S,
    ) -> None:
        self.config = config
        self.config_file = os.path.abspath(config_file)
        self.run_dir = Path(os.environ.get(WorkerEnv.RUN_DIR) or Path.cwd()).resolve()
        self._emitter = emitter or emit.stdout()
        self._heartbeat_s = heartbeat_s

    def run(self) -> dict[str, Any]:
        """Train to the end; returns the summary. Raises TrainingFailed or ConfigError."""
        prepare_folders(self.run_dir, self.config)
        link = Link.create()
        # First beat and last: a heartbeat of the end says how far it came, however short it was.
        heart = Heartbeat(
            self._heartbeat_s, progress=lambda: link.step, emitter=self._emitter, total=lambda: link.total
        )
        try:
            with heart:
                code = self._watch(link)
            # A process that was killed has reported nothing; how far it came is in the link all the same.
            told = {"steps": link.step, **link.read_report()}
            if code == 0:
                self._emitter.heartbeat(link.step, **({"total": link.total} if link.total else {}))
        finally:
            link.close()
            remove_empty(self.run_dir / "runs")
        summary = self._judge(code, told)
        analytics.write_manifest(self.config, self.run_dir, summary)
        return summary

    def _watch(self, link: Link) -> int:
        argv = [sys.executable, "-m", "cleanrl_worker.launcher", "--config", self.config_file, "--link", str(link.fd)]
        child = subprocess.Popen(
            argv,
            cwd=self.run_dir,
            env=environment(self.config, self.run_dir),
            stdin=subprocess.DEVNULL,
            pass_fds=(link.fd,),
        )
        try:
            return child.wait()
        except (WorkerStopped, KeyboardInterrupt):
            # MOSAIC signals the whole tree; who starts the worker by hand signals us alone. Twice is once to it.
            child.send_signal(signal.SIGTERM)
            _wait_or_kill(child)
            raise
        finally:
            if child.poll() is None:
                child.kill()
                child.wait()

    def _judge(self, code: int, told: dict[str, Any]) -> dict[str, Any]:
        if code == 0:
            return {"algo": self.config.algo, "env_id": self.config.env_id, **told}
        if told.get("error"):
            raise (ConfigError if code == _REFUSED else TrainingFailed)(told["error"])
        if told.get("stopped"):
            raise WorkerStopped
        raise TrainingFailed(f"{self.config.algo}: its process {_ended(code)} at step {told['steps']}.")


def environment(config: CleanRLWorkerConfig, run_dir: Path) -> dict[str, str]:
    """What the launcher's process is given beside our own variables; what the user has set stays."""
    env = dict(os.environ)
    env.setdefault("OMP_NUM_THREADS", str(config.num_threads))
    env.setdefault("WANDB_DIR", str(run_dir))
    if "WANDB_API_KEY" not in env:
        env.setdefault("WANDB_MODE", "offline")
    env.setdefault("WANDB_SILENT", "true")
    # Otherwise torch leaves a folder in TMPDIR.
    env.setdefault("TORCHINDUCTOR_CACHE_DIR", str(run_dir / ".cache"))
    # Frames are drawn in memory: pygame must not look for a display. (MuJoCo finds its own way, if there is one; with
    # MUJOCO_GL set and no such device it would not even be imported.)
    env.setdefault("SDL_VIDEODRIVER", "dummy")
    env.setdefault("PYGAME_HIDE_SUPPORT_PROMPT", "1")
    env.update(fastlane.environment(config))
    return env


def prepare_folders(run_dir: Path, config: CleanRLWorkerConfig) -> None:
    """The run's own folders; what a script writes into `runs` goes to the first (seams.redirect_logs)."""
    logs = (run_dir / config.tensorboard_dir).resolve()
    if logs != run_dir and run_dir not in logs.parents:
        raise ConfigError(f"extras.tensorboard_dir: {config.tensorboard_dir} lies outside the run's folder.")
    for folder in (logs, run_dir / "checkpoints", run_dir / "videos"):
        folder.mkdir(parents=True, exist_ok=True)


def remove_empty(folder: Path) -> None:
    """Remove the folder and those in it, as far as there is nothing in them."""
    for part in (*folder.glob("*"), folder):
        with suppress(OSError):
            part.rmdir()


def _wait_or_kill(child: "subprocess.Popen[bytes]") -> None:
    try:
        child.wait(_GRACE_S)
    except subprocess.TimeoutExpired:
        child.kill()
        child.wait()


def _ended(code: int) -> str:
    if code >= 0:
        return f"ended with exit code {code} and no word"
    try:
        return f"was killed by {signal.Signals(-code).name}"
    except ValueError:
        return f"was killed by signal {-code}"
