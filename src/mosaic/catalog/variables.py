"""Variables of a run's environment: which ones a config may set, and which ones come from the daemon's environment.

| variable                            | in a config | from the daemon | reason
|-------------------------------------|-------------|-----------------|
| MOSAIC_*, CUDA_VISIBLE_DEVICES      | refused     | no              | MOSAIC sets them for each run
| LD_PRELOAD, LD_AUDIT                | refused     | no              | load code into every process of the run
| LD_TRACE_LOADED_OBJECTS             | refused     | no              | programs print their libraries and do not start
| PYTHONHOME                          | refused     | no              | replaces the library of the worker's own Python
| BASH_ENV                            | refused     | no              | every bash script runs another file first
| VIRTUAL_ENV, OLDPWD, UV_*           | allowed     | no              | are about the daemon's own environment
| PYTHONUNBUFFERED                    | allowed     | no              | splits the lines of forked processes
| GYM_GUI_FASTLANE_*                  | allowed     | no              | MOSAIC sets them for each run
| LD_LIBRARY_PATH, PYTHONPATH, others | allowed     | yes             | CUDA and other libraries are found with them

None of this protects against a worker: it runs any code of its author anyway, as the same user. It keeps a run
independent of the shell that happened to start the daemon, and the daemon's own programs out of reach of a config.
"""

from collections.abc import Mapping

_AFFECTS_ALL = "would affect every process of the run. If you need it, set it in your own script."
REFUSED = {  # in a config, and why
    "CUDA_VISIBLE_DEVICES": "MOSAIC sets it to the granted GPUs. Request GPUs with payload.resources.gpus.",
    "LD_PRELOAD": _AFFECTS_ALL,
    "LD_AUDIT": _AFFECTS_ALL,
    "LD_TRACE_LOADED_OBJECTS": "would make programs print their libraries instead of starting.",
    "PYTHONHOME": "would replace the library of the worker's own Python. Choose another environment with "
    "metadata.worker.variant, or add folders with PYTHONPATH.",
    "BASH_ENV": "would run this file before every bash script of the run. Source it in your own script instead.",
}
OURS = "MOSAIC_"
_NOT_INHERITED = frozenset({*REFUSED, "PYTHONUNBUFFERED", "VIRTUAL_ENV", "OLDPWD"})
_PREFIXES_NOT_INHERITED = (OURS, "UV_", "GYM_GUI_FASTLANE_")


def why_refused(name: str) -> str:
    """Why a config may not set this variable; empty if it may."""
    return f"names that start with {OURS} are reserved." if name.startswith(OURS) else REFUSED.get(name, "")


def inherited(environ: Mapping[str, str]) -> dict[str, str]:
    """What a run gets of the daemon's environment."""
    return {
        name: value
        for name, value in environ.items()
        # An entry without a name is possible, and exec refuses it.
        if name and name not in _NOT_INHERITED and not name.startswith(_PREFIXES_NOT_INHERITED)
    }
