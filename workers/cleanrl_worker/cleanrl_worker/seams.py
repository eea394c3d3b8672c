"""Where we take hold of a script's libraries, in memory and before it runs: its writer, its envs, its replay buffer."""

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

RUNS = "runs"  # where every script writes to, in its working directory


def prepare(algorithm: Algorithm, config: CleanRLWorkerConfig) -> None:
    """Check that the algorithm can take the environment, and help the two over what is only their age."""
    if algorithm.gym in (GYMNASIUM, SHIM):
        draw_in_memory(config.env_id)
    if not config.curriculum_schedule:  # its stages are checked by those who know them
        check_env(algorithm, config.env_id)
    if config.capture_video:
        os.environ["CLEANRL_CAPTURE_VIDEO"] = "1"
    if algorithm.gym in (GYMNASIUM, SHIM) and algorithm.takes:
        register_for(config.env_id)
        if algorithm.takes == VECTOR and algorithm.module.startswith("cleanrl."):
            _make_flat()
    if algorithm.name in ("c51_atari", "c51_atari_jax"):
        _mend_buffer()


def draw_in_memory(env_id: str) -> None:
    """MuJoCo draws without a display through EGL; where there is no such device, it is as if nobody had asked."""
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


def hear_scalars(link: Link, config: CleanRLWorkerConfig, ends: Ends) -> None:
    from torch.utils.tensorboard import SummaryWriter

    from cleanrl_worker.telemetry import Scalars

    def on_step(step: int) -> None:
        if step > link.step:
            link.step = step

    Scalars(on_step=on_step, stop_on_nan=config.stop_on_nan, ends=ends).observe(SummaryWriter)


def redirect_logs(folder: str) -> None:
    """What a script writes into `runs/` goes to `folder`. No link: TensorBoard follows links, and lists a run twice.

    The script's own folder is made all the same, because a model that it saves goes there.
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
    """gymnasium.make gives vectors where an env gives a Dict: these scripts' networks take nothing else."""
    import gymnasium

    make = gymnasium.make

    @functools.wraps(make)
    def make_flat(*args: Any, **options: Any) -> Any:
        return flat(make(*args, **options))

    gymnasium.make = make_flat


def _mend_buffer() -> None:
    """These scripts ask for two options that Stable-Baselines3 no longer takes together; the one that saves half of the
    memory (28 GB) stays, so the end of a game by its time limit counts as an end."""
    from stable_baselines3.common.buffers import ReplayBuffer

    make = ReplayBuffer.__init__

    @functools.wraps(make)
    def make_without_timeouts(buffer: Any, *args: Any, **options: Any) -> None:
        if options.get("optimize_memory_usage") and options.get("handle_timeout_termination", True):
            options["handle_timeout_termination"] = False
            print("cleanrl_worker: time limits count as ends of games in this replay buffer.", file=sys.stderr)
        make(buffer, *args, **options)

    ReplayBuffer.__init__ = make_without_timeouts  # type: ignore[method-assign, assignment]
