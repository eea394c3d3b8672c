"""Adapts the libraries that a script uses, in memory and before it runs: its writer, its envs, its replay buffer."""

import functools
import importlib
import os
import sys
from pathlib import Path
from typing import Any

from cleanrl_worker.config import CleanRLWorkerConfig
from cleanrl_worker.ends import Ends
from cleanrl_worker.fit import check_env, flat, register_for
from cleanrl_worker.link import Link
from cleanrl_worker.registry import GYMNASIUM, SHIM, VECTOR, Algorithm

RUNS = "runs"  # the folder in which every script writes its logs


def prepare(algorithm: Algorithm, config: CleanRLWorkerConfig) -> None:
    """Check that the algorithm supports the environment, and patch incompatibilities between old and new libraries."""
    if algorithm.gym in (GYMNASIUM, SHIM):
        render_in_memory(config.env_id)
    if not config.curriculum_schedule:  # wrappers/tasks.py checks the stages of a curriculum
        check_env(algorithm, config.env_id)
    if config.capture_video:
        os.environ["CLEANRL_CAPTURE_VIDEO"] = "1"
    if algorithm.gym in (GYMNASIUM, SHIM) and algorithm.takes:
        register_for(config.env_id)
        if algorithm.takes == VECTOR and algorithm.module.startswith("cleanrl."):
            _make_flat()
    if algorithm.name in ("c51_atari", "c51_atari_jax"):
        _patch_buffer()


def render_in_memory(env_id: str) -> None:
    """Let MuJoCo render without a display through EGL; without an EGL device nothing is changed."""
    if "MUJOCO_GL" in os.environ or not _is_mujoco(env_id):
        return
    os.environ["MUJOCO_GL"] = "egl"  # read when mujoco is imported
    try:
        importlib.import_module("mujoco.egl")
    except Exception:  # noqa: BLE001  # without a library or device it raises ImportError, AttributeError, EGLError …
        for name in ("MUJOCO_GL", "PYOPENGL_PLATFORM"):
            os.environ.pop(name, None)
        for name in [name for name in sys.modules if name.partition(".")[0] in ("mujoco", "OpenGL")]:
            del sys.modules[name]


def _is_mujoco(env_id: str) -> bool:
    register_for(env_id)
    import gymnasium

    spec = gymnasium.registry.get(env_id)
    return env_id.startswith("dm_control/") or "mujoco" in str(spec.entry_point if spec else "")


def observe_scalars(link: Link, config: CleanRLWorkerConfig, ends: Ends) -> None:
    from torch.utils.tensorboard import SummaryWriter

    from cleanrl_worker.telemetry import Scalars

    def on_step(step: int) -> None:
        if step > link.step:
            link.step = step

    Scalars(on_step=on_step, stop_on_nan=config.stop_on_nan, ends=ends).observe(SummaryWriter)


def redirect_logs(folder: str) -> None:
    """Redirect what a script logs to `runs/` into `folder`. Not by a symlink: TensorBoard would list the run twice.

    The script's own folder is still created, because a script that saves its model writes it there.
    """
    from torch.utils.tensorboard import SummaryWriter

    make = SummaryWriter.__init__

    @functools.wraps(make)
    def make_elsewhere(writer: Any, log_dir: Any = None, *args: Any, **options: Any) -> None:
        if log_dir is not None and Path(log_dir).parts[:1] == (RUNS,):
            Path(log_dir).mkdir(parents=True, exist_ok=True)
            log_dir = str(Path(folder, *Path(log_dir).parts[1:]))
        make(writer, log_dir, *args, **options)

    SummaryWriter.__init__ = make_elsewhere  # type: ignore[method-assign, assignment]


def _make_flat() -> None:
    """Let gymnasium.make flatten Dict observations: the networks of these scripts only accept vectors."""
    import gymnasium

    make = gymnasium.make

    @functools.wraps(make)
    def make_flat(*args: Any, **options: Any) -> Any:
        return flat(make(*args, **options))

    gymnasium.make = make_flat


def _patch_buffer() -> None:
    """Drop one of two options that Stable-Baselines3 no longer accepts together and that these scripts both set.

    The one that saves half of the memory (28 GB) stays, so a game that is cut by its time limit counts as terminated.
    """
    from stable_baselines3.common.buffers import ReplayBuffer

    make = ReplayBuffer.__init__

    @functools.wraps(make)
    def make_without_timeouts(buffer: Any, *args: Any, **options: Any) -> None:
        if options.get("optimize_memory_usage") and options.get("handle_timeout_termination", True):
            options["handle_timeout_termination"] = False
            print("cleanrl_worker: this replay buffer treats time limits as the end of a game.", file=sys.stderr)
        make(buffer, *args, **options)

    ReplayBuffer.__init__ = make_without_timeouts  # type: ignore[method-assign, assignment]
