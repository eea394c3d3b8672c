"""An ordinary user for tests that root runs: its id, and a Python with MOSAIC in it that it may start."""

import functools
import os
import shutil
import site
import subprocess
import sys
from pathlib import Path

NOBODY = 65534
FOLDERS = "import site; list(map(site.addsitedir, {paths!r}))\n"


def as_nobody(command: list[str]) -> bool:
    """Whether the command succeeds as nobody."""
    try:
        done = subprocess.run(command, user=NOBODY, group=NOBODY, extra_groups=[], capture_output=True, timeout=60)
    except OSError:
        return False
    return done.returncode == 0


@functools.cache
def python_for_nobody() -> str:
    """A Python of our version that nobody may start; empty if there is none. Ours may lie in root's home."""
    name = f"python3.{sys.version_info.minor}"
    candidates = [sys.executable, shutil.which(name, path=os.defpath) or "", f"/usr/local/bin/{name}"]
    return next((path for path in candidates if path and as_nobody([path, "-c", ""])), "")


def make_environment(folder: Path) -> str:
    """An environment that sees the packages of ours; returns its Python."""
    subprocess.run([python_for_nobody(), "-m", "venv", "--without-pip", str(folder)], check=True, timeout=60)
    packages = next(folder.glob("lib/python3*/site-packages"))
    (packages / "ours.pth").write_text(FOLDERS.format(paths=site.getsitepackages()))
    return str(folder / "bin" / "python")
