"""Python environments: the platform's own and those in `envs/`. Only their files are read; nothing is imported."""

import ast
import importlib
import importlib.util
import os
import re
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.machinery import EXTENSION_SUFFIXES, SOURCE_SUFFIXES
from pathlib import Path

OWN = ".venv"  # the name of the platform's own environment; its folder may have another
# Two threads that invalidate the caches at the same moment delete the same entry, and one gets a KeyError.
_IMPORT_CACHES = threading.Lock()


@dataclass(frozen=True)
class Environment:
    """A Python with its packages. In `envs/` the name is `<worker>` or `<worker>@<variant>`."""

    name: str
    python: Path

    @property
    def is_own(self) -> bool:
        return self.name == OWN

    @property
    def worker(self) -> str:
        return "" if self.is_own else self.name.partition("@")[0]

    @property
    def variant(self) -> str:
        return self.name.partition("@")[2]

    @property
    def folders(self) -> list[Path]:
        """The folders with its packages."""
        if self.is_own:
            return [Path(entry) for entry in sys.path if entry and os.path.isdir(entry)]
        return sorted(self.python.parent.parent.glob("lib*/python3*/*-packages"))  # dist-packages: Debian's own Python

    def stamp(self) -> tuple[tuple[str, int], ...]:
        """Changes when a package is installed or removed."""
        return tuple((str(folder), folder.stat().st_mtime_ns) for folder in self.folders if folder.exists())

    def locate(self, package: str) -> Path | None:
        """The folder or file of a top-level package; None if this environment does not have it."""
        if package in sys.stdlib_module_names:
            return None
        return _locate_own(package) if self.is_own else _locate(package, self.folders)


def own_environment() -> Environment:
    return Environment(OWN, Path(sys.executable))


def environment_at(python: Path) -> Environment:
    """The environment that an interpreter belongs to."""
    own = own_environment()
    return own if python == own.python else Environment(python.parent.parent.name, python)


def environments_in(folder: Path) -> list[Environment]:
    """Every environment in `envs/` that has an interpreter; an unfinished one has none yet."""
    if not folder.is_dir():
        return []
    pythons = [entry / "bin" / "python" for entry in sorted(folder.iterdir()) if not entry.name.startswith(".")]
    return [Environment(python.parent.parent.name, python) for python in pythons if os.access(python, os.X_OK)]


def broken_in(folder: Path) -> list[tuple[Path, str]]:
    """Folders in `envs/` that cannot be used, with the reason."""
    entries = sorted(folder.iterdir()) if folder.is_dir() else []
    found = ((entry, _problem(entry)) for entry in entries if entry.is_dir() and not entry.name.startswith("."))
    return [(entry, problem) for entry, problem in found if problem]


def _problem(folder: Path) -> str:
    python = folder / "bin" / "python"
    if not os.path.lexists(python):
        return "it has no bin/python: it was partly deleted, or never finished"
    if not os.access(python, os.X_OK):
        return f"its interpreter {os.path.realpath(python)} is missing"
    if not list(folder.glob("lib*/python3*/site-packages")):
        return "its packages are missing"
    return ""


def _locate_own(package: str) -> Path | None:
    with _IMPORT_CACHES:
        # Packages may have been installed since this process started.
        importlib.invalidate_caches()
        try:
            spec = importlib.util.find_spec(package)
        except (ImportError, ValueError):
            return None
    # Without an origin it is only a folder of that name on the path.
    if spec is None or not spec.origin:
        return None
    origin = Path(spec.origin)
    return origin.parent if spec.submodule_search_locations else origin


def _locate(package: str, folders: list[Path]) -> Path | None:
    for folder in folders:
        for place in (folder, *_linked_folders(folder)):
            found = _in_folder(package, place)
            if found:
                return found
        editable = _editable_packages(folder).get(package)
        if editable:
            return editable
    return None


def _in_folder(package: str, folder: Path) -> Path | None:
    if (folder / package / "__init__.py").is_file():
        return folder / package
    files = (folder / f"{package}{suffix}" for suffix in (*SOURCE_SUFFIXES, *EXTENSION_SUFFIXES))
    return next((file for file in files if file.is_file()), None)


def _linked_folders(folder: Path) -> Iterator[Path]:
    """The folders that `.pth` files add to the path."""
    for file in sorted(folder.glob("*.pth")):
        for line in file.read_text(errors="replace").splitlines():
            text = line.strip()
            if text and not text.startswith(("#", "import ", "import\t")):
                yield folder / text


def _editable_packages(folder: Path) -> dict[str, Path]:
    """The mappings of setuptools' editable finders, read as literals; no finder is executed."""
    found: dict[str, Path] = {}
    for file in sorted(folder.glob("__editable___*_finder.py")):
        match = re.search(r"^MAPPING[^=]*=\s*(\{.*?\})\s*$", file.read_text(errors="replace"), re.M)
        if match:
            found |= {name: Path(place) for name, place in ast.literal_eval(match.group(1)).items()}
    return found
