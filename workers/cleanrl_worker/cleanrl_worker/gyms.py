"""Which package a script imports as `gym`: gym 0.23 itself, our shim over Gymnasium, or what a checkout brings."""

import sys
from pathlib import Path

from cleanrl_worker.registry import OLD_GYM, SHIM, Algorithm

SHIM_FOLDER = Path(__file__).parent / "gym_shim"


def choose_gym(algorithm: Algorithm, upstream_path: str = "") -> None:
    """Put the folder in which the script must find its `gym` first on the path.

    A process can import only one gym: RuntimeError when it has already imported the other one.
    """
    if not upstream_path:
        _require_unloaded(algorithm)
    folder = upstream_path or (str(SHIM_FOLDER) if algorithm.gym == SHIM else "")
    if folder and folder not in sys.path[:1]:
        sys.path.insert(0, folder)


def _require_unloaded(algorithm: Algorithm) -> None:
    loaded = getattr(sys.modules.get("gym"), "__file__", None) or ""
    is_shim = loaded.startswith(str(SHIM_FOLDER))
    if loaded and algorithm.gym in (SHIM, OLD_GYM) and is_shim != (algorithm.gym == SHIM):
        raise RuntimeError(f"This process has already imported another gym ({loaded}). Use a new process.")
