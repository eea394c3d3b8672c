"""`pettingzoo.mpe`, which XuanCe imports and PettingZoo 1.27 refuses: its games are in the package mpe2 now.

A finder, not an entry in sys.modules: so that MOSAIC's import hook finds each game's module and shows its frames.
"""

import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import sys
from collections.abc import Sequence
from types import ModuleType

OLD, NEW = "pettingzoo.mpe", "mpe2"


def offer() -> None:
    """Make `import pettingzoo.mpe.simple_spread_v3` work from now on."""
    if not any(isinstance(finder, _Finder) for finder in sys.meta_path):
        # Before the finder of files, which finds PettingZoo's refusal; after MOSAIC's hook, which asks the others.
        sys.meta_path.insert(sys.meta_path.index(importlib.machinery.PathFinder), _Finder())


class _Finder(importlib.abc.MetaPathFinder):
    """Finds `pettingzoo.mpe` and its games."""

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if name != OLD and not name.startswith(f"{OLD}."):
            return None
        new = NEW + name[len(OLD) :]
        if importlib.util.find_spec(new) is None:
            return None
        return importlib.machinery.ModuleSpec(name, _Loader(new), is_package=name == OLD)


class _Loader(importlib.abc.Loader):
    """Fills a module with the public names of another one."""

    def __init__(self, source: str) -> None:
        self._source = source

    def exec_module(self, module: ModuleType) -> None:
        source = importlib.import_module(self._source)
        vars(module).update({name: value for name, value in vars(source).items() if not name.startswith("_")})
