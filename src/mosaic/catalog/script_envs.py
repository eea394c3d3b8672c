"""Environments for scripts: `mosaic env create NAME`. They contain what the user asks for, and nothing of MOSAIC.

envs/.scripts/<name>/      apart from the workers' environments, so that no name can mean both
  environment.json         how it was created
"""

import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path

from mosaic.catalog import place
from mosaic.catalog.environment import Environment
from mosaic.catalog.installed import size_of
from mosaic.catalog.progress import Progress
from mosaic.catalog.pythons import find_python, version_of
from mosaic.catalog.torch import arguments_for, refuse_unknown_build
from mosaic.catalog.uv import InstallFailed, NoIndex, Uv, find_uv
from mosaic.model import durable
from mosaic.model.errors import MosaicError
from mosaic.model.names import VALID, is_worker_name
from mosaic.model.nearest import did_you_mean
from mosaic.model.root import check_root
from mosaic.model.rundir import StateRoot

FILE_NAME = "environment.json"


@dataclass(frozen=True)
class EnvRequest:
    """What the user asked for."""

    name: str
    packages: tuple[str, ...] = ()  # requirements, or folders
    files: tuple[str, ...] = ()  # requirements files
    lock: str = ""  # a uv.lock, or the folder with it
    python: str = ""  # 3.12, or a path; empty: MOSAIC's own
    torch: str = ""
    replace: bool = False


@dataclass(frozen=True)
class ScriptEnvironment:
    """An environment that exists."""

    name: str
    python: Path
    version: str = ""  # of its Python
    packages: list[str] = field(default_factory=list)  # as the user asked
    files: list[str] = field(default_factory=list)
    lock: str = ""
    fingerprint: str = ""
    size_bytes: int = 0

    @property
    def environment(self) -> Environment:
        return Environment(self.name, self.python)

    @property
    def made_from(self) -> str:
        return ", ".join([*self.packages, *self.files, *([self.lock] if self.lock else [])])


def script_environments(root: StateRoot) -> list[ScriptEnvironment]:
    folder = root.script_envs
    entries = sorted(folder.iterdir()) if folder.is_dir() else []
    return [_read(entry) for entry in entries if not entry.name.startswith(".") and entry.is_dir()]


def find_environment(root: StateRoot, name: str) -> ScriptEnvironment:
    found = {env.name: env for env in script_environments(root)}
    if name not in found:
        known = f"There are: {', '.join(found)}." if found else "There is none yet."
        near = did_you_mean(name, found, 1)
        hint = _worker_hint(root, name) or near or f"{known} Create it with: mosaic env create {name} --with PACKAGE"
        raise MosaicError(f"There is no environment '{name}'. {hint}")
    return found[name]


def environment_python(root: StateRoot, name: str) -> Path:
    """Its interpreter; MosaicError if there is no such environment, or it is broken."""
    python = find_environment(root, name).python
    if not os.access(python, os.X_OK):
        raise MosaicError(f"The environment '{name}' is broken: {python} is missing. Create it again with --replace.")
    return python


def create(root: StateRoot, request: EnvRequest, progress: Progress) -> tuple[ScriptEnvironment, bool]:
    """The environment, and whether it is new. After an error nothing has changed."""
    request = _checked(request)
    uv = Uv(find_uv(), progress)
    check_root(root)
    with place.changing(root.script_envs, progress), _naming(request):
        refuse_unknown_build(request.torch)
        python = find_python(request.python, uv)
        fingerprint = _fingerprint(request, python)
        here = _same_as_before(root, request, fingerprint)
        if here:
            return here, False
        new, final = place.new_folder(root.script_envs), root.script_envs / request.name
        try:
            made = _build(new, request, python, uv)
            made = replace(made, fingerprint=fingerprint, python=final / "bin" / "python", size_bytes=size_of(new))
            durable.write_json(new / FILE_NAME, {"version_of_file": 1, **_plain(made)})
            place.put(new, final)
        finally:
            shutil.rmtree(new, ignore_errors=True)
        return made, True


def remove(root: StateRoot, name: str, progress: Progress) -> None:
    find_environment(root, name)
    with place.changing(root.script_envs, progress):
        place.remove(root.script_envs / name)


def _checked(request: EnvRequest) -> EnvRequest:
    """With absolute paths: uv runs in another folder."""
    if not is_worker_name(request.name):
        raise InstallFailed(f"{request.name!r} is not a valid name for an environment. {VALID}")
    if not (request.packages or request.files or request.lock):
        raise InstallFailed("Say what to install: --with PACKAGE, -r FILE or --from uv.lock.")
    for text in (*request.packages, request.python):
        if text.startswith("-") or not text.isprintable():
            raise InstallFailed(f"{text!r} is not a package or a Python: uv would read it as an option.")
    files = tuple(existing_file(file) for file in request.files)
    return replace(request, packages=absolute_folders(request.packages), files=files, lock=_lock(request.lock))


def absolute_folders(packages: tuple[str, ...]) -> tuple[str, ...]:
    """Requirements as they are, folders and wheels by their absolute paths; an empty one is refused."""
    if not all(package.strip() for package in packages):
        raise InstallFailed("The name of a package is empty.")
    return tuple(os.path.abspath(os.path.expanduser(each)) if _is_path(each) else each for each in packages)


def existing_file(name: str) -> str:
    path = os.path.abspath(os.path.expanduser(name))
    if not os.path.isfile(path):
        raise InstallFailed(f"There is no file {path}.")
    return path


def _is_path(package: str) -> bool:
    return package.startswith((".", "~", "/")) and os.path.exists(os.path.expanduser(package))


def _lock(name: str) -> str:
    if not name:
        return ""
    path = os.path.abspath(os.path.expanduser(name))
    path = os.path.join(path, "uv.lock") if os.path.isdir(path) else path
    if os.path.basename(path) != "uv.lock":
        raise InstallFailed(f"{path} is not a uv.lock. For a requirements file use: -r {name}")
    found = existing_file(path)
    if not os.path.isfile(os.path.join(os.path.dirname(found), "pyproject.toml")):
        raise InstallFailed(f"{found} has no pyproject.toml beside it, without which a lock file cannot be read.")
    return found


def _fingerprint(request: EnvRequest, python: str) -> str:
    texts = [Path(file).read_text(errors="replace") for file in (*request.files, *filter(None, [request.lock]))]
    parts = [*request.packages, *texts, python, request.torch]
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()


def _same_as_before(root: StateRoot, request: EnvRequest, fingerprint: str) -> ScriptEnvironment | None:
    """The environment of this name if it has the same contents; one with others is only replaced on request."""
    folder = root.script_envs / request.name
    if request.replace or not os.path.lexists(folder):
        return None
    here = _read(folder)
    if here.fingerprint == fingerprint and os.access(here.python, os.X_OK):
        return here
    raise InstallFailed(f"an environment of this name exists already ({here.made_from}). Replace it with: --replace")


def _build(new: Path, request: EnvRequest, python: str, uv: Uv) -> ScriptEnvironment:
    # Relocatable: it gets its final name only when it is complete.
    uv.progress.phase("Creating an environment")
    uv.run("venv", "--quiet", "--relocatable", "--no-project", "--python", python, str(new))
    target = ("--python", str(new / "bin" / "python"), "--compile-bytecode")
    with _exported(request.lock, uv) as lock:
        files = [word for file in (*request.files, *lock) for word in ("-r", file)]
        packages = (*files, *(("--", *request.packages) if request.packages else ()))
        torch = arguments_for(request.torch, uv.environ, lambda: uv.planned(*target, *packages).get("torch", ""))
        uv.install(*target, *torch, *packages, subject=f"for {request.name}")
    return ScriptEnvironment(
        request.name,
        new / "bin" / "python",
        version_of(new / "bin" / "python"),
        list(request.packages),
        list(request.files),
        request.lock,
    )


@contextmanager
def _exported(lock: str, uv: Uv) -> Iterator[list[str]]:
    """A uv.lock as a requirements file, without the project itself: its code is beside the script."""
    if not lock:
        yield []
        return
    with tempfile.TemporaryDirectory(prefix="mosaic-env-") as folder:
        file = os.path.join(folder, "requirements.txt")
        uv.progress.phase("Reading uv.lock")
        options = ("--frozen", "--no-emit-project", "--quiet", "--output-file", file)
        uv.run("export", "--project", os.path.dirname(lock), *options)
        yield [file]


@contextmanager
def _naming(request: EnvRequest) -> Iterator[None]:
    """Make every error message say what was not created."""
    try:
        yield
    except InstallFailed as error:
        kind = NoIndex if isinstance(error, NoIndex) else InstallFailed
        raise kind(f"The environment {request.name} was not created: {error}") from error


def _read(folder: Path) -> ScriptEnvironment:
    """As its record says; one without a record was made by hand."""
    python = folder / "bin" / "python"
    try:
        stored = durable.read_json(folder / FILE_NAME) or {}
        known = {each.name for each in fields(ScriptEnvironment)} - {"name", "python"}
        return ScriptEnvironment(folder.name, python, **{key: stored[key] for key in known if key in stored})
    except (OSError, TypeError):
        return ScriptEnvironment(folder.name, python)


def _plain(made: ScriptEnvironment) -> Mapping[str, object]:
    return {**asdict(made), "python": str(made.python)}


def _worker_hint(root: StateRoot, name: str) -> str:
    """Advice for the name of a worker's environment."""
    is_workers = is_worker_name(name.partition("@")[0]) and (root.envs / name / "bin" / "python").exists()
    return f"The environment of the worker {name} is chosen with: --env-of {name}" if is_workers else ""
