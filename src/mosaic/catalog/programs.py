"""What `mosaic run python FILE …` and `--module PKG.MOD …` submit: a program that was not written for MOSAIC."""

import json
import os
import re
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mosaic.catalog.interpreters import ANSWERS_WITHIN_S, Interpreter
from mosaic.model.errors import MosaicError
from mosaic.model.nearest import nearest

_WORD = re.compile(r"python3?")  # the user leaves the choice to us
_NAMED = re.compile(r"(.*/)?python3?(\.\d+)?t?")  # the user names an interpreter: python3.12, .venv/bin/python
_MODULE = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*")
_SHELL = (".sh", ".bash", ".zsh")
# find_spec() of a top-level name imports nothing.
_QUESTION = """
import importlib.util, json, sys
spec = importlib.util.find_spec(sys.argv[1])
print("\\n" + json.dumps([spec is not None, list((spec and spec.submodule_search_locations) or [])]))
"""


@dataclass(frozen=True)
class Program:
    """A command line as the user would type it: `python FILE arguments…` or `python -m MODULE arguments…`."""

    python: str = ""  # an interpreter that the command names instead of `python`
    script: str = ""
    module: str = ""
    arguments: tuple[str, ...] = ()

    @classmethod
    def of(cls, words: Sequence[str]) -> "Program":
        """MosaicError if it is not a command of this form."""
        python = "" if _WORD.fullmatch(words[0]) else words[0]
        rest = list(words[1:])
        if rest[:1] == ["--"]:
            rest = rest[1:]
        if rest[:1] == ["-m"]:
            if len(rest) < 2:
                raise MosaicError("-m needs the name of a module: mosaic run python -m PACKAGE.MODULE")
            return cls(python, "", rest[1], tuple(rest[2:]))
        if not rest:
            raise MosaicError("Name the script: mosaic run python FILE [arguments of the script …]")
        if rest[0].startswith("-"):
            raise MosaicError(
                f"{rest[0]} is in the place of the script. Options of `mosaic run` come before `python`, those of the "
                "script after it: mosaic run --gpus 1 python train.py --lr 3e-4. Of Python's own options, only -m is "
                "supported."
            )
        return cls(python, rest[0], "", tuple(rest[1:]))

    def folder(self, cwd: Path) -> Path:
        """Where its project begins."""
        return Path(os.path.abspath(cwd / os.path.expanduser(self.script))).parent if self.script else cwd


@dataclass(frozen=True)
class Surroundings:
    """Where a program runs, and what it is given."""

    cwd: str = ""  # empty: in the run's folder, with links to the files of the caller's folder
    variables: Mapping[str, str] = field(default_factory=dict)
    observe: bool | None = None


def is_program(word: str) -> bool:
    """Whether the first word of a command line is a Python."""
    return _NAMED.fullmatch(word) is not None


def program_section(
    program: Program, interpreter: Interpreter, surroundings: Surroundings, caller: Path
) -> dict[str, Any]:
    """`metadata.worker` of the run. `caller`: the folder that the user is in."""
    folder = folder_at(surroundings.cwd, caller) if surroundings.cwd else caller
    if program.script:
        what = {"script": find_script(program.script, caller)}
    else:
        check_module(program.module, interpreter, folder)
        what = {"module": program.module}
    observe = surroundings.observe
    if observe is None and not interpreter.can_be_observed:
        observe = False
    return {
        **what,
        "python": str(interpreter.python),
        "arguments": list(program.arguments),
        **({"cwd": str(folder)} if surroundings.cwd else {"inputs": str(folder)}),
        **({"environment": dict(surroundings.variables)} if surroundings.variables else {}),
        **({"observe": observe} if observe is not None else {}),
    }


def find_script(name: str, caller: Path) -> str:
    """The absolute path of a script; MosaicError for what Python cannot run."""
    path = Path(os.path.abspath(caller / os.path.expanduser(name)))
    if path.is_dir():
        package = f" Start a package with: mosaic run --module {path.name}" if (path / "__init__.py").exists() else ""
        raise MosaicError(f"{name} is a folder. Name the script in it.{package}")
    if not path.exists():
        raise MosaicError(f"There is no file {path}.{_did_you_mean(path)}")
    if not path.is_file():
        raise MosaicError(f"{path} is not a file.")
    if path.suffix == ".ipynb":
        raise MosaicError(
            f"{name} is a notebook, which Python cannot run. Convert it first: jupyter nbconvert --to script {name}"
        )
    if path.suffix in _SHELL:
        raise MosaicError(f"{name} is a shell script. Run it with: mosaic run --script {name}")
    if not os.access(path, os.R_OK):
        raise MosaicError(f"{path} cannot be read. Check its permissions.")
    return str(path)


def folder_at(name: str, caller: Path) -> Path:
    path = Path(os.path.abspath(caller / os.path.expanduser(name)))
    if not path.is_dir():
        raise MosaicError(f"--cwd: there is no folder {path}.")
    return path


def check_module(module: str, interpreter: Interpreter, folder: Path) -> None:
    """MosaicError if `python -m MODULE`, typed in `folder`, would not find it. Nothing of it is imported."""
    if not _MODULE.fullmatch(module) or module.endswith(".py"):
        hint = f" Run a file with: mosaic run python {module}" if module.endswith(".py") else ""
        raise MosaicError(f"'{module}' is not a valid module name such as package.train.{hint}")
    top, _, rest = module.partition(".")
    is_here, locations = _look_for(top, interpreter.python, folder)
    if not is_here:
        raise MosaicError(f"{interpreter} has no module '{top}', and neither has {folder}.")
    for name in rest.split(".") if rest else ():
        inside = _modules_in(locations)
        if name not in inside:
            known = f" It has: {', '.join(_shown(inside))}." if inside else ""
            raise MosaicError(f"There is no module '{name}' in '{module.rpartition('.')[0]}'.{known}")
        locations = [os.path.join(place, name) for place in locations if os.path.isdir(os.path.join(place, name))]
        if not locations:
            return
    inside = _modules_in(locations)
    if locations and "__main__" not in inside:
        known = ", ".join(f"{module}.{name}" for name in _shown(inside))
        raise MosaicError(f"'{module}' is a package without a __main__.py. Name one of its modules: {known or 'none'}.")


def _look_for(top: str, python: Path, folder: Path) -> tuple[bool, list[str]]:
    # -c puts the current folder first in the path, like -m.
    try:
        done = subprocess.run(
            [python, "-c", _QUESTION, top], cwd=folder, capture_output=True, text=True, timeout=ANSWERS_WITHIN_S
        )
        found, locations = json.loads(done.stdout.strip().splitlines()[-1])
    except (OSError, subprocess.TimeoutExpired, ValueError, IndexError, TypeError):
        return True, []  # an unusual environment: the run itself will tell
    return bool(found), [os.path.join(folder, place) for place in locations]


def _modules_in(locations: Sequence[str]) -> set[str]:
    names = [name for place in locations if os.path.isdir(place) for name in os.listdir(place)]
    return {
        name.partition(".")[0] for name in names if _MODULE.fullmatch(name.partition(".")[0]) and name != "__pycache__"
    }


def _shown(modules: set[str]) -> list[str]:
    return sorted(name for name in modules if not name.startswith("_"))[:12]


def _did_you_mean(path: Path) -> str:
    here = os.listdir(path.parent) if path.parent.is_dir() else []
    near = nearest(path.name, [name for name in here if name.endswith(".py")], 1)
    return f" Did you mean {near[0]}?" if near else ""
