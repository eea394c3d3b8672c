"""Compilation caches of libraries: all in one folder, instead of /tmp, HOME and the installed packages.

Caches of downloads (Hugging Face, torch.hub, pip) stay where the user has them.
"""

import os
from typing import Dict, Mapping

# Variable → folder below the cache; without it the library writes to …
_PLACES = {
    "TORCHINDUCTOR_CACHE_DIR": "torchinductor",  # TMPDIR/torchinductor_USER
    "TRITON_CACHE_DIR": "triton",  # ~/.triton
    "TORCH_EXTENSIONS_DIR": "torch_extensions",  # ~/.cache/torch_extensions
    "NUMBA_CACHE_DIR": "numba",  # __pycache__ beside the code
    "CUPY_CACHE_DIR": "cupy",  # ~/.cupy
    "CUDA_CACHE_PATH": "cuda",  # ~/.nv
    "MPLCONFIGDIR": "matplotlib",  # ~/.config/matplotlib and ~/.cache/matplotlib
}


def cache_variables(folder: str, environ: Mapping[str, str]) -> Dict[str, str]:
    """The variables that point into `folder`, without those that the user has set."""
    found = {name: os.path.join(folder, place) for name, place in _PLACES.items() if name not in environ}
    if _has_matplotlibrc(environ):
        found.pop("MPLCONFIGDIR", None)  # the user's own settings would be hidden
    return found


def _has_matplotlibrc(environ: Mapping[str, str]) -> bool:
    config = environ.get("XDG_CONFIG_HOME") or os.path.join(environ.get("HOME") or os.path.expanduser("~"), ".config")
    return os.path.exists(os.path.join(config, "matplotlib", "matplotlibrc"))
