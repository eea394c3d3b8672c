"""Where a worker comes from: a folder, MOSAIC itself, or the package index.

A worker's folder:

    my_worker/
      pyproject.toml             its package, with the entry point in the group mosaic.workers
      my_worker/                 its code
      requirements/default.txt   lock file: the exact versions of its dependencies, without mosaic-sdk (uv pip compile)
      requirements/jax.txt       the same for the variant `jax`

Without a lock file, its dependencies are resolved during the install, and a variant is an extra of that name.
A lock file may contain `# stale pins: cleanrl gym3`: the requirements of these packages are outdated and ignored.
"""

import re
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import mosaic
from mosaic.catalog.uv import InstallFailed
from mosaic.catalog.workers import GROUP
from mosaic.model.names import VALID, is_worker_name


@dataclass(frozen=True)
class Source:
    """What to install."""

    asked: str  # as the user wrote it
    requirement: str = ""  # a package on the index
    folder: Path | None = None  # or a folder with a pyproject.toml

    def lock(self, variant: str) -> Path | None:
        """The lock file of a variant; None if the dependencies must be resolved."""
        # A submit may name any variant.
        if self.folder is None or (variant and not is_worker_name(variant)):
            return None
        path = self.folder / "requirements" / f"{variant or 'default'}.txt"
        return path if path.is_file() else None

    def extra(self, variant: str) -> str:
        """`[variant]` if the variant is an extra. A variant that is neither an extra nor a lock file is refused."""
        if not variant or self.lock(variant):
            return ""
        if self.folder is not None and variant not in self.variants():
            known = ", ".join(self.variants()) or "none"
            raise InstallFailed(f"{self.asked} has no variant '{variant}'. It has: {known}.")
        return f"[{variant}]"

    def variants(self) -> list[str]:
        if self.folder is None:
            return []
        locks = {path.stem for path in (self.folder / "requirements").glob("*.txt")} - {"default"}
        extras = _project(self.folder).get("optional-dependencies", {})
        return sorted(locks | set(extras))


def find_source(asked: str, earlier: str = "") -> Source:
    """A folder if `asked` looks like a path, a worker that comes with MOSAIC, else a requirement for the index.

    `earlier`: the source of the installed environment of that name. Without it, `install mine --upgrade` would take a
    package of that name from the index, which may be unrelated.
    """
    if _is_path(asked):
        return Source(asked, folder=_package_folder(asked))
    folder = bundled_worker(asked)
    if folder:
        return Source(asked, folder=folder)
    if _is_path(earlier):
        return Source(asked, folder=_package_folder(earlier))
    return Source(asked, requirement=earlier or asked)


def _is_path(asked: str) -> bool:
    return asked.startswith((".", "~")) or "/" in asked


def platform_sources() -> Path | None:
    """The folder with `sdk/` and `workers/`: inside an installed MOSAIC, or its checkout. None: neither is there."""
    package = Path(mosaic.__file__).parent
    for place in (package / "bundled", package.parents[1]):
        if (place / "sdk" / "pyproject.toml").is_file():
            return place
    return None


def sdk_source() -> Source:
    """The SDK of this MOSAIC."""
    return Source("mosaic-sdk", folder=_own_folder("sdk"))


def gym_gui_source() -> Source:
    """The compatibility package for workers that were written for the public MOSAIC."""
    return Source("gym_gui", folder=_own_folder("sdk/gym_gui"))


def _own_folder(place: str) -> Path:
    home = platform_sources()
    if home is None:
        # Never from an index instead: an unrelated package may have the name there.
        raise InstallFailed("MOSAIC's own wheels are missing from this installation. Install mosaic-rl again")
    return home / place


def distribution_name(folder: Path) -> str:
    return normalized(str(_project(folder).get("name", "")))


def normalized(name: str) -> str:
    """The normalized name of a distribution or of a requirement."""
    bare = re.split(r"[\[<>=!~;@ ]", name.strip(), maxsplit=1)[0]
    return re.sub(r"[-_.]+", "-", bare).lower()


def entry_points(folder: Path) -> dict[str, str]:
    """The workers that a source registers."""
    points = _project(folder).get("entry-points", {}).get(GROUP, {})
    return {str(name): str(value) for name, value in points.items()}


def stale_pins(lock: Path) -> frozenset[str]:
    """The packages of a lock file whose own requirements are outdated, as its author declares."""
    named = re.findall(r"^# stale pins: (.*)$", lock.read_text(), re.M)
    return frozenset(normalized(name) for line in named for name in line.split())


def _package_folder(asked: str) -> Path:
    folder = Path(asked).expanduser().resolve()
    if not folder.is_dir():
        raise InstallFailed(f"There is no folder {folder}. Pass the folder with the worker's pyproject.toml.")
    if not (folder / "pyproject.toml").is_file():
        raise InstallFailed(
            f"{folder} has no pyproject.toml, so it is not a package. Create one with: mosaic worker new NAME"
        )
    names = entry_points(folder)
    if not names:
        raise InstallFailed(no_entry_point(str(folder)))
    for name in names:
        refuse_bad_name(name)
    return folder


def no_entry_point(package: str) -> str:
    return (
        f"{package} does not provide a worker. Add to its pyproject.toml: "
        f'[project.entry-points."{GROUP}"] and below it: name = "package:get_worker_metadata"'
    )


def no_worker_package(package: str) -> str:
    return (
        f"{package} does not provide a worker: it has no entry point in the group {GROUP}. "
        "To run a library, write a worker for it, starting with: mosaic worker new NAME"
    )


def refuse_bad_name(name: str) -> None:
    """The name of an entry point becomes the name of a folder in `envs/`, and any package may choose it."""
    if not is_worker_name(name):
        raise InstallFailed(f"its entry point {name!r} in the group {GROUP} is not a valid name for a worker. {VALID}")


def bundled_worker(name: str) -> Path | None:
    """The folder of a worker that comes with MOSAIC."""
    return next((folder for folder in _worker_folders() if name in (*entry_points(folder), folder.name)), None)


def bundled_names() -> list[str]:
    return sorted({name for folder in _worker_folders() for name in entry_points(folder)})


def _worker_folders() -> list[Path]:
    home = platform_sources()
    return [path.parent for path in sorted((home / "workers").glob("*/pyproject.toml"))] if home else []


def _project(folder: Path) -> dict[str, Any]:
    path = folder / "pyproject.toml"
    try:
        project = tomllib.loads(path.read_text()).get("project", {})
    except (OSError, ValueError) as error:
        raise InstallFailed(f"{path} cannot be read ({error}).") from error
    return project if isinstance(project, dict) else {}
