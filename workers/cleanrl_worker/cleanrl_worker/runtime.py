"""Starts the launcher in its own process and supervises it: heartbeats, stopping it, reporting how it ended.

The runtime's process imports no RL library. It stays responsive whatever the script does, and it survives a script
that crashes its interpreter, so it can report the crash.
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

# Algorithm name → importable module, for all that can run here.
DEFAULT_ALGO_REGISTRY: dict[str, str] = {name: found.module for name, found in ALGORITHMS.items() if found.is_available}

HEARTBEAT_S = 30.0
# The launcher saves and exits in less. MOSAIC kills the whole process tree after 10 s.
_GRACE_S = 9.0
_REFUSED = 2


class TrainingFailed(WorkFailed):
    """The training failed; the message is the library's error."""


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
        # Also one heartbeat at the end, so that even a short training reports how far it got.
        heart = Heartbeat(
            self._heartbeat_s, progress=lambda: link.step, emitter=self._emitter, total=lambda: link.total
        )
        try:
            with heart:
                code = self._watch(link)
            # A process that was killed has not reported, but the link still has its last step.
            outcome = {"steps": link.step, **link.read_report()}
            if code == 0:
                self._emitter.heartbeat(link.step, **({"total": link.total} if link.total else {}))
        finally:
            link.close()
            remove_empty(self.run_dir / "runs")
        summary = self._judge(code, outcome)
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
            # MOSAIC signals the whole process tree; a user may signal only this process. It ignores a second SIGTERM.
            child.send_signal(signal.SIGTERM)
            _wait_or_kill(child)
            raise
        finally:
            if child.poll() is None:
                child.kill()
                child.wait()

    def _judge(self, code: int, outcome: dict[str, Any]) -> dict[str, Any]:
        if code == 0:
            return {"algo": self.config.algo, "env_id": self.config.env_id, **outcome}
        if outcome.get("error"):
            raise (ConfigError if code == _REFUSED else TrainingFailed)(outcome["error"])
        if outcome.get("stopped"):
            raise WorkerStopped
        raise TrainingFailed(f"{self.config.algo}: its process {_describe_end(code)} at step {outcome['steps']}.")


def environment(config: CleanRLWorkerConfig, run_dir: Path) -> dict[str, str]:
    """The environment variables of the launcher's process. Variables that the user has set are kept."""
    env = dict(os.environ)
    env.setdefault("OMP_NUM_THREADS", str(config.num_threads))
    env.setdefault("WANDB_DIR", str(run_dir))
    if "WANDB_API_KEY" not in env:
        env.setdefault("WANDB_MODE", "offline")
    env.setdefault("WANDB_SILENT", "true")
    # By default torch leaves a folder in TMPDIR.
    env.setdefault("TORCHINDUCTOR_CACHE_DIR", str(run_dir / ".cache"))
    # Frames are rendered in memory: pygame must not look for a display. (seams.py chooses MuJoCo's renderer: with
    # MUJOCO_GL set and no such device, importing mujoco fails.)
    env.setdefault("SDL_VIDEODRIVER", "dummy")
    env.setdefault("PYGAME_HIDE_SUPPORT_PROMPT", "1")
    env[WorkerEnv.OBSERVE] = "0"  # the launcher reports itself, also when an observed script starts it
    env.update(fastlane.environment(config))
    return env


def prepare_folders(run_dir: Path, config: CleanRLWorkerConfig) -> None:
    """Create the run's folders. What a script writes to `runs/` goes to the first one (seams.redirect_logs)."""
    logs = (run_dir / config.tensorboard_dir).resolve()
    if logs != run_dir and run_dir not in logs.parents:
        raise ConfigError(f"extras.tensorboard_dir: {config.tensorboard_dir} is outside the run's folder.")
    for folder in (logs, run_dir / "checkpoints", run_dir / "videos"):
        folder.mkdir(parents=True, exist_ok=True)


def remove_empty(folder: Path) -> None:
    """Remove the folder and its subfolders, if they are empty."""
    for part in (*folder.glob("*"), folder):
        with suppress(OSError):
            part.rmdir()


def _wait_or_kill(child: "subprocess.Popen[bytes]") -> None:
    try:
        child.wait(_GRACE_S)
    except subprocess.TimeoutExpired:
        child.kill()
        child.wait()


def _describe_end(code: int) -> str:
    if code >= 0:
        return f"ended with exit code {code} and no message"
    try:
        return f"was killed by {signal.Signals(-code).name}"
    except ValueError:
        return f"was killed by signal {-code}"
