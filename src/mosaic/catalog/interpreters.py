"""Which Python runs a program of the user's: the one that is named, else its project's, else the active one.

MOSAIC's own environment is never chosen for its location, only if it is named or active: what it contains is for
MOSAIC, and changes with it.
"""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from mosaic.catalog.script_envs import environment_python, script_environments
from mosaic.catalog.uv import uv_environment
from mosaic.catalog.workers import Catalog
from mosaic.model.errors import MosaicError
from mosaic.model.rundir import StateRoot

OLDEST = (3, 6)
OLDEST_OBSERVED = (3, 9)  # that the SDK supports
ANSWERS_WITHIN_S = 20.0
VENVS = (".venv", "venv")  # folders of a project
_PROJECT = ("uv.lock", "pyproject.toml", "requirements.txt")
_ACTIVE = ("VIRTUAL_ENV", "CONDA_PREFIX")
_QUESTION = "import sys; sys.stdout.write('.'.join(map(str, sys.version_info[:3])))"


@dataclass(frozen=True)
class Wanted:
    """What the user asked for; at most one of them."""

    python: str = ""  # a path, a folder with an environment, or a name on the PATH
    env_of: str = ""  # WORKER or WORKER@VARIANT
    env: str = ""  # of `mosaic env create`


@dataclass(frozen=True)
class Interpreter:
    python: Path  # not its real path: in a virtual environment it is a link
    why: str  # "the .venv of /home/me/project"
    version: tuple[int, ...] = ()
    note: str = ""  # what else the user may have meant

    @property
    def can_be_observed(self) -> bool:
        return self.version >= OLDEST_OBSERVED

    def __str__(self) -> str:
        return f"{self.python} (Python {'.'.join(map(str, self.version))}, {self.why})"


def choose_interpreter(wanted: Wanted, folder: Path, environ: Mapping[str, str], root: StateRoot) -> Interpreter:
    """The Python for a program in `folder`. It has been started once: MosaicError if it does not work."""
    found = _named(wanted, environ, root) or _project(folder) or _active(environ)
    if found is None:
        raise MosaicError(_nothing_found(folder, root))
    active = _active(environ) if not any((wanted.python, wanted.env_of, wanted.env)) else None
    note = ""
    if active and active.python != found.python:
        folder = active.python.parent.parent
        note = f"The active environment {folder} is not used; choose it with: --python {folder}"
    return Interpreter(found.python, found.why, version_of_python(found.python), note)


def version_of_python(python: Path) -> tuple[int, ...]:
    """Start it. MosaicError if it does not start, is not a Python, or too old."""
    try:
        done = subprocess.run(
            [python, "-E", "-S", "-c", _QUESTION],
            capture_output=True,
            text=True,
            errors="replace",
            timeout=ANSWERS_WITHIN_S,
        )
    except subprocess.TimeoutExpired:
        raise MosaicError(f"{python} does not start: no answer within {ANSWERS_WITHIN_S:g} s.") from None
    except OSError as error:
        raise MosaicError(f"{python} does not start: {error.strerror}.") from None
    if done.returncode or not re.fullmatch(r"\d+\.\d+\.\d+", done.stdout):
        said = next(iter((done.stderr or done.stdout).strip().splitlines()[-1:]), "")
        raise MosaicError(f"{python} is not a working Python interpreter{f': {said[:200]}' if said else '.'}")
    version = tuple(map(int, done.stdout.split(".")))
    if version < OLDEST:
        oldest = ".".join(map(str, OLDEST))
        raise MosaicError(
            f"{python} is Python {done.stdout}, which is too old; {oldest} is the oldest that can be run."
        )
    return version


def _named(wanted: Wanted, environ: Mapping[str, str], root: StateRoot) -> Interpreter | None:
    if wanted.python:
        return Interpreter(_at(wanted.python, environ), "named by --python")
    if wanted.env_of:
        name, _, variant = wanted.env_of.partition("@")
        python = Catalog(root).find(name, variant).environment.python
        return Interpreter(python, f"the environment of {wanted.env_of}")
    if wanted.env:
        return Interpreter(environment_python(root, wanted.env), f"the environment {wanted.env}")
    return None


def _at(asked: str, environ: Mapping[str, str]) -> Path:
    """The interpreter for a path, for the folder of an environment, or for a name such as python3.12 or 3.12."""
    path = Path(os.path.abspath(os.path.expanduser(asked)))
    if "/" not in asked and not asked.startswith("~"):
        name = f"python{asked}" if re.fullmatch(r"3(\.\d+)?", asked) else asked
        # As for uv: of pyenv's shims only the selected one works, but all Pythons behind them do.
        found = shutil.which(name, path=uv_environment(environ).get("PATH"))
        if found:
            return Path(found)
        if not path.exists():
            raise MosaicError(f"There is no {name} on the PATH. Name an interpreter by its path: --python PATH")
    if path.is_dir():
        inside = path / "bin" / "python"
        if not inside.exists():
            raise MosaicError(f"The folder {path} is not a Python environment: it has no bin/python.")
        return inside
    if not path.exists():
        raise MosaicError(f"There is no Python at {path}.")
    return path


def _project(folder: Path) -> Interpreter | None:
    """The environment of the project that contains the program: in its folder or above, up to the repository."""
    for place in _places(folder):
        for name in VENVS:
            python = place / name / "bin" / "python"
            if os.access(python, os.X_OK) and _is_trusted(place / name) and not _is_own(place / name):
                return Interpreter(python, f"the {name} of {place}")
    return None


def _places(folder: Path) -> list[Path]:
    """The folder and those above it that may belong to the same project."""
    places = []
    for place in (folder, *folder.parents):
        if place == Path.home() or (place != folder and not _is_trusted(place)):
            break
        places.append(place)
        if (place / ".git").exists():
            break
    return places or [folder]


def _is_trusted(folder: Path) -> bool:
    """Whether it belongs to this user or to root: anyone can create /tmp/.venv."""
    try:
        return folder.stat().st_uid in (0, os.geteuid())
    except OSError:
        return False


def _is_own(folder: Path) -> bool:
    return os.path.realpath(folder) == os.path.realpath(sys.prefix)


def _active(environ: Mapping[str, str]) -> Interpreter | None:
    for variable in _ACTIVE:
        folder = environ.get(variable, "")
        python = Path(folder) / "bin" / "python"
        if folder and os.access(python, os.X_OK):
            own = "MOSAIC's own environment, which is active" if _is_own(Path(folder)) else "the active environment"
            return Interpreter(python, own)
    return None


def _nothing_found(folder: Path, root: StateRoot) -> str:
    project = next((place for place in _places(folder) for name in _PROJECT if (place / name).is_file()), None)
    here = f"the project {project} has no .venv" if project else f"there is no .venv in {folder} or above it"
    if any(_is_own(place / name) for place in _places(folder) for name in VENVS):
        here = f"the environment beside {folder} is MOSAIC's own, which is used only if it is named or active"
    create = " Create it with: uv sync." if project and (project / "uv.lock").is_file() else ""
    workers = ", ".join(sorted({worker.spelled for worker in Catalog(root).workers()}))
    envs = ", ".join(env.name for env in script_environments(root))
    return (
        f"No Python environment was found: {here}, and none is active.{create} Choose one before `python`: "
        f"--python PATH, --env-of WORKER ({workers or 'none is installed'}), or --env NAME "
        f"({envs or 'create one with: mosaic env create NAME --with PACKAGE'})."
    )
