"""Wheels of sources, built once: a folder whose contents did not change is not built again.

~/.cache/mosaic/wheels/<folder>-<digest of all its files and the Python>/my_worker-1.0-py3-none-any.whl
"""

import hashlib
import os
import shutil
import time
from contextlib import suppress
from pathlib import Path

from mosaic.catalog.uv import InstallFailed, Uv

_KEPT_S = 30 * 86_400.0  # wheels nobody used for so long are deleted
_LEFT_OUT = shutil.ignore_patterns(
    *(".git", ".venv", "venv", "__pycache__", "*.pyc", "build", "dist", "*.egg-info", ".mypy_cache", ".ruff_cache"),
    *(".pytest_cache", ".hypothesis", ".tox", "node_modules"),
)


class Wheels:
    """A store of wheels, named by what they were built from."""

    def __init__(self, folder: Path | None = None) -> None:
        self.folder = folder or _cache() / "mosaic" / "wheels"

    def of(self, source: Path, python: str, uv: Uv) -> Path:
        """The wheel of a source folder. The source itself is not written to: a build leaves files behind."""
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        work = self.folder / f".{source.name}-{os.getpid()}"
        shutil.rmtree(work, ignore_errors=True)
        try:
            shutil.copytree(source, work / "source", ignore=_LEFT_OUT)
            kept = self.folder / f"{source.name}-{digest(work / 'source', python)[:16]}"
            if not kept.is_dir():
                uv.progress.phase(f"Building {source.name}")
                # Not --quiet: that swallows what the build backend says of its failure.
                uv.run("build", "--wheel", "--python", python, "-o", str(work / "wheel"), str(work / "source"))
                _keep(work / "wheel", kept)
        finally:
            shutil.rmtree(work, ignore_errors=True)
        os.utime(kept)
        self._forget_old()
        return _only_wheel(kept)

    def _forget_old(self) -> None:
        for kept in self.folder.iterdir():
            # Another install may take its working folder away while we look.
            with suppress(FileNotFoundError):
                if time.time() - kept.stat().st_mtime > _KEPT_S:
                    shutil.rmtree(kept, ignore_errors=True)


def digest(folder: Path, *more: str) -> str:
    """A hash over the names and contents of all files."""
    total = hashlib.sha256("\0".join(more).encode())
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        data = path.read_bytes()
        total.update(f"{path.relative_to(folder)}\0{len(data)}\0".encode())
        total.update(data)
    return total.hexdigest()


def _keep(built: Path, kept: Path) -> None:
    try:
        built.rename(kept)
    except OSError:
        # Another install built the same in the meantime.
        if not kept.is_dir():
            raise


def _only_wheel(folder: Path) -> Path:
    wheels = sorted(folder.glob("*.whl"))
    if not wheels:
        raise InstallFailed(f"there is no wheel in {folder}. Delete that folder and try again")
    return wheels[0]


def _cache() -> Path:
    cache = os.environ.get("XDG_CACHE_HOME")
    return Path(cache) if cache else Path.home() / ".cache"
