"""The interpreter and the folders of a script or module that was not written for MOSAIC: they must exist."""

import os
from pathlib import Path

from mosaic.model.inputs import MOST_LINKS, names_to_link
from mosaic.submit.section import Section


def check_program(worker: Section, root: Path) -> None:
    """BadConfig for `python`, `cwd` or `inputs` that cannot be used. `root`: the state folder."""
    python = _absolute(worker, "python")
    if python and not os.path.exists(python):
        raise worker.bad("python", f"'{python}' does not exist.")
    # Its real path stays unknown: the interpreter of a virtual environment is a link to that of the system.
    if python and (os.path.isdir(python) or not os.access(python, os.X_OK)):
        raise worker.bad("python", f"'{python}' is not a program. Name an interpreter, such as {_guess(python)}.")
    for name in ("cwd", "inputs"):
        folder = _absolute(worker, name)
        if folder and not os.path.isdir(folder):
            raise worker.bad(name, f"'{folder}' is not a folder.")
    inputs = worker.text("inputs")
    if inputs and len(names_to_link(inputs, root)) > MOST_LINKS:
        raise worker.bad(
            "inputs",
            f"'{inputs}' has more than {MOST_LINKS} files, too many to link. Run in it instead: --cwd {inputs}",
        )


def _absolute(worker: Section, name: str) -> str:
    path = worker.text(name)
    if "\0" in path:
        raise worker.bad(name, "contains a NUL character, which is not allowed in a path.")
    if path and not os.path.isabs(path):
        raise worker.bad(
            name, f"'{path}' is relative, and the daemon does not know your working directory. Use an absolute path."
        )
    return path


def _guess(path: str) -> str:
    inside = os.path.join(path, "bin", "python")
    return inside if os.path.exists(inside) else "/usr/bin/python3"
