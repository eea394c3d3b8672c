"""The wheels that worker environments are made from. Each is installed by its path and checksum, never by its name:
a package index may have an unrelated package under the same name.

An installed MOSAIC contains the wheels of its SDK and its workers (setup.py). Those of any other folder are built, and
kept until the folder's contents change:

    ~/.cache/mosaic/wheels/<folder>-<digest of all its files and the Python>/
      my_worker-1.0-py3-none-any.whl
      SHA256SUMS
"""

import hashlib
import os
import shutil
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from mosaic.catalog.uv import InstallFailed, Uv
from mosaic.model.xdg import xdg_folder

SUMS = "SHA256SUMS"
_KEPT_S = 30 * 86_400.0  # a wheel that is not used for so long is deleted
_LEFT_OUT = shutil.ignore_patterns(
    *(".git", ".venv", "venv", "__pycache__", "*.pyc", "build", "dist", "*.egg-info", ".mypy_cache", ".ruff_cache"),
    *(".pytest_cache", ".hypothesis", ".tox", "node_modules"),
)


@dataclass(frozen=True)
class Wheel:
    path: Path
    sha256: str

    def requirement(self, extra: str = "") -> str:
        """A direct reference, which uv takes from this file or not at all."""
        return f"{self.path.name.partition('-')[0]}{extra} @ {self.path.as_uri()}#sha256={self.sha256}"

    @property
    def is_intact(self) -> bool:
        return _sha256(self.path) == self.sha256


class Wheels:
    """A store of wheels, named after what they were built from."""

    def __init__(self, folder: Path | None = None) -> None:
        self.folder = folder or xdg_folder("XDG_CACHE_HOME", ".cache") / "mosaic" / "wheels"

    def of(self, source: Path, python: str, uv: Uv) -> Wheel:
        """The wheel of a source folder: the one that came with MOSAIC, or one that is built from it."""
        if (source / "wheel" / SUMS).is_file():
            return read_wheel(source / "wheel")
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        work = self.folder / f".{source.name}-{os.getpid()}"
        shutil.rmtree(work, ignore_errors=True)
        try:
            _copy(source, work / "source")
            kept = self.folder / f"{source.name}-{digest(work / 'source', python)[:16]}"
            if not _is_usable(kept):
                _build(source.name, work, python, uv)
                _keep(work / "wheel", kept)
        finally:
            shutil.rmtree(work, ignore_errors=True)
        os.utime(kept)
        self._delete_old()
        return read_wheel(kept)

    def _delete_old(self) -> None:
        for kept in self.folder.iterdir():
            # Another install may delete its working folder at the same time.
            with suppress(FileNotFoundError):
                if time.time() - kept.stat().st_mtime > _KEPT_S:
                    shutil.rmtree(kept, ignore_errors=True)


def read_wheel(folder: Path) -> Wheel:
    """The only wheel in a folder, with the checksum that was written down when it was built."""
    try:
        sha256, name = (folder / SUMS).read_text().split()
    except (OSError, ValueError):
        raise InstallFailed(f"{folder / SUMS} is missing or damaged. Delete that folder and try again") from None
    return Wheel(folder / name, sha256)


def digest(folder: Path, *more: str) -> str:
    """A hash over the names and contents of all files."""
    total = hashlib.sha256("\0".join(more).encode())
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        data = path.read_bytes()
        total.update(f"{path.relative_to(folder)}\0{len(data)}\0".encode())
        total.update(data)
    return total.hexdigest()


def _copy(source: Path, target: Path) -> None:
    """A build leaves files in the folder it builds, so it gets a copy."""
    try:
        shutil.copytree(source, target, ignore=_LEFT_OUT)
    except shutil.Error as error:  # for example, a symbolic link to a file that was not copied with the folder
        path, _, why = error.args[0][0]
        raise InstallFailed(f"{path} cannot be read ({why})") from None


def _build(name: str, work: Path, python: str, uv: Uv) -> None:
    uv.progress.phase(f"Building {name}")
    # Not --quiet: that hides the build backend's own error messages.
    uv.run("build", "--wheel", "--python", python, "-o", str(work / "wheel"), str(work / "source"))
    wheels = sorted((work / "wheel").glob("*.whl"))
    if not wheels:
        raise InstallFailed(f"the build of {name} left no wheel")
    (work / "wheel" / SUMS).write_text(f"{_sha256(wheels[0])}  {wheels[0].name}\n")


def _is_usable(kept: Path) -> bool:
    """False for a wheel that was damaged or changed since it was built; it is deleted."""
    with suppress(InstallFailed, OSError):
        if read_wheel(kept).is_intact:
            return True
    shutil.rmtree(kept, ignore_errors=True)
    return False


def _keep(built: Path, kept: Path) -> None:
    try:
        built.rename(kept)
    except OSError:
        # Another install built the same in the meantime.
        if not kept.is_dir():
            raise


def _sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()
