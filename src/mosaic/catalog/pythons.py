"""Which Python a worker's environment uses."""

import json
import os
import subprocess
import sys
from pathlib import Path

from mosaic.catalog.uv import InstallFailed, Uv

OLDEST = (3, 9)  # that the SDK supports


def find_python(asked: str, uv: Uv) -> str:
    """The interpreter for `--python 3.12` or a path; MOSAIC's own without either."""
    if not asked:
        return sys.executable
    # uv runs in another folder, so a path must be absolute.
    wanted = os.path.abspath(os.path.expanduser(asked)) if "/" in asked or asked.startswith("~") else asked
    path = uv.answer("python", "find", "--no-project", wanted)
    version = version_of(Path(path)) if path else ""
    if not version:
        raise InstallFailed(f"Python '{asked}' is not installed here. {_known(uv)}")
    if _as_numbers(version) < OLDEST:
        raise InstallFailed(f"Python {version} is too old for a worker; 3.9 is the oldest. {_known(uv)}")
    return path


def version_of(python: Path) -> str:
    """`3.11.7`; empty when there is no interpreter at that path."""
    question = "import sys; print('.'.join(map(str, sys.version_info[:3])))"
    try:
        done = subprocess.run(
            [python, "-I", "-S", "-c", question], capture_output=True, text=True, timeout=20, check=True
        )
    except (OSError, subprocess.SubprocessError):
        return ""
    return done.stdout.strip()


def _known(uv: Uv) -> str:
    try:
        listed = json.loads(uv.answer("python", "list", "--only-installed", "--output-format", "json") or "[]")
        versions = {str(python["version"]) for python in listed}
    except (ValueError, KeyError, TypeError):
        versions = set()
    good = sorted((version for version in versions if _as_numbers(version) >= OLDEST), key=_as_numbers, reverse=True)
    return f"Installed: {', '.join(good)}" if good else "Install one, and pass its path"


def _as_numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split(".") if part.isdecimal())
