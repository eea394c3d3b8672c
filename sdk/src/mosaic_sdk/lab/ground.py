"""The folders of a trial: every folder that a worker knows is temporary, so that its files can be found.

<folder>/
  worker.json            its --config
  run/                   its run folder and working directory
    logs/                worker.stdout.log worker.stderr.log
  tmp/                   its TMPDIR
  cache/                 compilation caches of libraries, as under the daemon
  home/                  its HOME, empty; caches (XDG_CACHE_HOME) are in home/.cache
"""

import os
import tempfile
from typing import Dict, List, Mapping

from mosaic_sdk.caches import cache_variables

_OURS = ("worker.json", "run", "tmp", "home", "cache")
_XDG = {
    "XDG_CACHE_HOME": ".cache",
    "XDG_CONFIG_HOME": ".config",
    "XDG_DATA_HOME": ".local/share",
    "XDG_STATE_HOME": ".local/state",
}
_CACHE = _XDG["XDG_CACHE_HOME"] + os.sep


class Ground:
    """`given`: variables that the user set. If they include HOME, the worker gets that one, and it is not checked."""

    def __init__(self, given: Mapping[str, str]) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="mosaic-lab-")
        self.path = os.path.realpath(self._folder.name)
        self.run = os.path.join(self.path, "run")
        self.config_file = os.path.join(self.path, "worker.json")
        self._has_own_home = "HOME" in given
        for name in ("run/logs", "run/tensorboard", "run/checkpoints", "run/videos", "tmp", "home"):
            os.makedirs(os.path.join(self.path, name))

    @property
    def variables(self) -> Dict[str, str]:
        variables = cache_variables(os.path.join(self.path, "cache"), os.environ)
        variables.update({"TMPDIR": os.path.join(self.path, "tmp"), "PWD": self.run})
        if self._has_own_home:
            return variables
        home = os.path.join(self.path, "home")
        # Packages in the user's site folder are still found: they are code, not files that a run writes.
        packages = os.environ.get("PYTHONUSERBASE") or os.path.expanduser("~/.local")
        xdg = {name: os.path.join(home, place) for name, place in _XDG.items()}
        return {**variables, **xdg, "HOME": home, "PYTHONUSERBASE": packages}

    def files_outside(self) -> List[str]:
        """The files that a run left outside its folder, as text."""
        beside = [name for name in os.listdir(self.path) if name not in _OURS]
        forgotten = os.listdir(os.path.join(self.path, "tmp"))
        home = [name for name in self._in_home() if not name.startswith(_CACHE)]
        places = (("beside the run folder", beside), ("in TMPDIR", forgotten), ("in HOME", home))
        return [f"{place}: {', '.join(sorted(names)[:5])}" for place, names in places if names]

    def files_cached(self) -> List[str]:
        """A cache is not a result: it may grow outside the run's folder."""
        return [name for name in self._in_home() if name.startswith(_CACHE)]

    def clear(self) -> None:
        self._folder.cleanup()

    def _in_home(self) -> List[str]:
        return files_below(os.path.join(self.path, "home"))


def files_below(folder: str) -> List[str]:
    """Every file, by its path below the folder, without compiled Python."""
    found = []
    for place, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if name != "__pycache__"]
        found += [os.path.relpath(os.path.join(place, name), folder) for name in names]
    return sorted(found)
