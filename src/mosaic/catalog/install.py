"""Creates and removes worker environments. A new one replaces the old one only when its worker answers."""

import hashlib
import json
import re
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from importlib.metadata import Distribution, distributions
from pathlib import Path

from mosaic.catalog import place
from mosaic.catalog.descriptor import describe
from mosaic.catalog.environment import Environment
from mosaic.catalog.installed import Installed, read_installed, size_of
from mosaic.catalog.progress import Progress
from mosaic.catalog.pythons import find_python, version_of
from mosaic.catalog.script_envs import absolute_folders, existing_file
from mosaic.catalog.sources import (
    Source,
    bundled_names,
    distribution_name,
    find_source,
    gym_gui_source,
    no_entry_point,
    no_worker_package,
    normalized,
    refuse_bad_name,
    sdk_source,
    stale_pins,
)
from mosaic.catalog.torch import arguments_for, check_build, installed_build, is_build, refuse_unknown_build
from mosaic.catalog.uv import InstallFailed, NoIndex, Uv, find_uv
from mosaic.catalog.wheels import Wheels
from mosaic.catalog.workers import GROUP, registered, spelled
from mosaic.model.names import VALID, is_worker_name
from mosaic.model.nearest import did_you_mean
from mosaic.model.root import check_root
from mosaic.model.rundir import StateRoot

FIRST_ANSWER_LIMIT_S = 60.0  # the page cache is cold


@dataclass(frozen=True)
class InstallRequest:
    """What the user asked for."""

    asked: str  # NAME, PATH or requirement
    variant: str = ""
    python: str = ""  # 3.12, or a path; empty: MOSAIC's own
    torch: str = ""  # cpu, cuda, cu128 … : which build of torch, where there are several
    upgrade: bool = False
    packages: tuple[str, ...] = ()  # that the worker needs and does not declare
    files: tuple[str, ...] = ()  # requirements files with such packages


def install(
    root: StateRoot, request: InstallRequest, progress: Progress, prepare: Callable[[StateRoot], None] = check_root
) -> tuple[Installed, bool]:
    """The environment, and whether it is new. After an error the previous one is unchanged."""
    request, source = resolve(root, request)
    extra = source.extra(request.variant)
    uv = Uv(find_uv(), progress)
    prepare(root)
    with place.changing(root.envs, progress), _naming_request(request):
        refuse_unknown_build(request.torch)
        python = find_python(request.python, uv)
        parts = Parts.gather(source, request, python, extra, uv)
        here = _same_as_before(root, request, parts)
        if here:
            return here, False
        new = place.new_folder(root.envs)
        try:
            made = _build(new, parts, request, uv, root)
            place.put(new, place.folder_of(root.envs, made.name))
            _delete_compiled(root, made.name)
        finally:
            shutil.rmtree(new, ignore_errors=True)
        return made, True


def resolve(root: StateRoot, request: InstallRequest) -> tuple[InstallRequest, Source]:
    """The request with what an earlier install of that name was asked for, and where the worker comes from."""
    _refuse_bad_request(request)
    return _where_from(root, _with_absolute_paths(request))


def _refuse_bad_request(request: InstallRequest) -> None:
    if request.variant and not is_worker_name(request.variant):
        raise InstallFailed(f"{request.variant!r} is not a valid name for a variant. {VALID}")
    for text in (request.asked, request.python, *request.packages):
        if text.startswith("-") or not text.isprintable():
            raise InstallFailed(
                f"{text!r} is not a worker, a folder, a requirement or a Python: uv would read it as an option."
            )
    if not request.asked.strip():
        raise InstallFailed("Name a worker, a folder or a requirement. List workers with: mosaic worker list")


def _with_absolute_paths(request: InstallRequest) -> InstallRequest:
    """uv runs in another folder."""
    files = tuple(existing_file(file) for file in request.files)
    return replace(request, packages=absolute_folders(request.packages), files=files)


def _where_from(root: StateRoot, request: InstallRequest) -> tuple[InstallRequest, Source]:
    """The name of an installed worker means: the same source, Python and torch build as before."""
    here = (
        read_installed(root.envs / spelled(request.asked, request.variant)) if is_worker_name(request.asked) else None
    )
    if here is None:
        # A new variant of an installed worker comes from the same source.
        other = read_installed(root.envs / request.asked) if request.variant and is_worker_name(request.asked) else None
        return request, find_source(request.asked, other.source if other else "")
    again = replace(request, python=request.python or here.asked_python, torch=request.torch or here.asked_torch)
    if not (request.packages or request.files):
        files = tuple(file for file in here.asked_files if Path(file).is_file())
        again = replace(again, packages=tuple(here.asked_packages), files=files)
    return again, find_source(request.asked, here.source)


def remove(root: StateRoot, name: str, progress: Progress) -> None:
    known = sorted(path.name for path in root.envs.glob("[!.]*"))
    # One of the entries of the folder, and so never a path; an environment made by hand may have any name.
    if name not in known:
        raise InstallFailed(f"There is no environment '{name}'. Installed: {', '.join(known) or 'none'}.")
    with place.changing(root.envs, progress):
        place.remove(root.envs / name)
        _delete_compiled(root, name)


def _delete_compiled(root: StateRoot, name: str) -> None:
    """Delete what libraries compiled for the previous environment: it may be wrong for other versions."""
    shutil.rmtree(root.cache / name, ignore_errors=True)


@dataclass(frozen=True)
class Parts:
    """Everything that goes into an environment, as arguments for uv."""

    source: Source
    python: str  # path of the interpreter
    worker: str  # a wheel or a requirement, with its extra
    sdk: str
    gym_gui: str
    lock: Path | None
    fingerprint: str

    @classmethod
    def gather(cls, source: Source, request: InstallRequest, python: str, extra: str, uv: Uv) -> "Parts":
        worker = _for_uv(source, extra, python, uv)
        sdk, gym_gui = (_for_uv(part, "", python, uv) for part in (sdk_source(), gym_gui_source()))
        lock = source.lock(request.variant)
        # Without the build of torch: _has_build looks at the installed one.
        wheels = [_without_folder(part) for part in (worker, sdk, gym_gui)]
        parts = [*wheels, lock.read_text() if lock else "", python, request.variant]
        parts += [*request.packages, *(Path(file).read_text(errors="replace") for file in request.files)]
        fingerprint = hashlib.sha256(json.dumps(parts).encode()).hexdigest()
        return cls(source, python, worker, sdk, gym_gui, lock, fingerprint)


def _same_as_before(root: StateRoot, request: InstallRequest, parts: Parts) -> Installed | None:
    """A working environment with the same fingerprint."""
    if request.upgrade:
        return None
    for folder in sorted(root.envs.glob("[!.]*")):
        installed = read_installed(folder)
        if installed and installed.fingerprint == parts.fingerprint and folder.name == installed.name:
            if not _is_whole(folder, installed) or not _has_build(folder, request.torch):
                return None
            return _remember_build(folder, installed, request.torch)
    return None


def _has_build(folder: Path, asked: str) -> bool:
    """Whether its torch is the requested build; true if it has no torch."""
    versions = [dist.version for dist in distributions(name="torch", path=[str(path) for path in _packages(folder)])]
    return not asked or not versions or is_build(asked, installed_build(versions[0], _packages(folder)[0]))


def _remember_build(folder: Path, installed: Installed, asked: str) -> Installed:
    """Record the build, so that an upgrade requests it again."""
    if not asked or asked == installed.asked_torch:
        return installed
    changed = replace(installed, asked_torch=asked)
    changed.write(folder)
    return changed


def _is_whole(folder: Path, installed: Installed) -> bool:
    workers = registered(Environment(folder.name, folder / "bin" / "python"))
    here = any(worker.name == installed.worker and not worker.problem for worker in workers)
    return here and version_of(folder / "bin" / "python") == installed.python


def _build(new: Path, parts: Parts, request: InstallRequest, uv: Uv, root: StateRoot) -> Installed:
    # Relocatable: it gets its final name only when it is complete.
    uv.progress.phase("Creating an environment")
    uv.run("venv", "--quiet", "--relocatable", "--no-project", "--python", parts.python, str(new))
    _fill(uv, new, parts, request)
    made = _inspect(new, parts, request, uv)
    _refuse_other_package(root, made)
    uv.progress.phase("Asking the worker to describe itself")
    _refuse_silent(new, made)
    made = replace(made, size_bytes=size_of(new))
    made.write(new)
    return made


@contextmanager
def _naming_request(request: InstallRequest) -> Iterator[None]:
    """Make every error message say what was not installed."""
    try:
        yield
    except InstallFailed as error:
        # A misspelled name was looked up on the index, so uv's error is about another package.
        near = (
            did_you_mean(request.asked, set(bundled_names()) - {request.asked}, 1)
            if is_worker_name(request.asked)
            else ""
        )
        raise InstallFailed(f"{request.asked} was not installed: {str(error).rstrip('.')}. {near}".rstrip()) from error


@contextmanager
def _naming_lock(lock: Path | None) -> Iterator[None]:
    try:
        yield
    except InstallFailed as error:
        if lock is None or isinstance(error, NoIndex):
            raise
        raise InstallFailed(
            f"its lock file requirements/{lock.name} cannot be used: {str(error).rstrip('.')}. "
            f"Lock again with: uv pip compile requirements/{lock.stem}.in -o requirements/{lock.name}"
        ) from error


def _fill(uv: Uv, new: Path, parts: Parts, request: InstallRequest) -> None:
    target = ("--python", str(new / "bin" / "python"), "--compile-bytecode")
    upgrade = ("--upgrade", "--refresh") if request.upgrade and not parts.lock else ()
    more = [word for file in request.files for word in ("-r", file)]
    whole = (*upgrade, *more, "--", parts.sdk, parts.worker, *request.packages)
    packages = ("--no-deps", "-r", str(parts.lock)) if parts.lock else whole
    torch = arguments_for(request.torch, uv.environ, lambda: uv.planned(*target, *packages).get("torch", ""))
    with _naming_lock(parts.lock):
        uv.install(*target, *torch, *packages, subject=_subject(parts))
    if parts.lock:
        uv.progress.phase("Installing the worker and mosaic-sdk")
        uv.run("pip", "install", *target, "--no-deps", "--", parts.sdk, parts.worker)
    if parts.lock and (request.packages or request.files):
        # What the lock file has stays as it is: uv keeps a version that the new packages accept.
        asked = ("--", *request.packages) if request.packages else ()
        uv.install(*target, *more, *asked, subject="that were asked for in addition")
    if not list(new.glob("lib/python3*/site-packages/gym_gui")):
        uv.run("pip", "install", *target, "--no-deps", parts.gym_gui)
    # An incomplete lock file is found now, not an hour into a run.
    uv.progress.phase("Checking that every requirement is met")
    with _naming_lock(parts.lock):
        uv.check(new / "bin" / "python", stale_pins(parts.lock) if parts.lock else frozenset())


def _subject(parts: Parts) -> str:
    if parts.lock:
        return f"of requirements/{parts.lock.name}"
    return f"that {parts.source.asked} needs"


def _inspect(new: Path, parts: Parts, request: InstallRequest, uv: Uv) -> Installed:
    """What is in the new environment."""
    found = {dist.metadata["Name"]: dist for dist in distributions(path=[str(path) for path in _packages(new)])}
    claims = {name: [point.name for point in dist.entry_points if point.group == GROUP] for name, dist in found.items()}
    check_build(request.torch, _version_of(found, "torch"), _packages(new)[0], uv.progress)
    package, worker = _choose(parts.source, {name: points for name, points in claims.items() if points})
    refuse_bad_name(worker)
    return Installed(
        worker=worker,
        variant=request.variant,
        package=normalized(package),
        version=found[package].version,
        source=str(parts.source.folder or parts.source.requirement),
        python=version_of(new / "bin" / "python"),
        sdk=_version_of(found, "mosaic-sdk"),
        locked=parts.lock is not None,
        fingerprint=parts.fingerprint,
        asked_python=request.python,
        asked_torch=request.torch,
        asked_packages=list(request.packages),
        asked_files=list(request.files),
    )


def _choose(source: Source, claims: dict[str, list[str]]) -> tuple[str, str]:
    """The requested distribution and its worker."""
    if not claims:
        raise InstallFailed(no_entry_point(source.asked) if source.folder else no_worker_package(source.asked))
    owners: dict[str, str] = {}
    for package, workers in sorted(claims.items()):
        for worker in workers:
            if worker in owners:
                raise InstallFailed(f"two packages, {owners[worker]} and {package}, both claim the worker '{worker}'")
            owners[worker] = package
    wanted = _distribution_of(source)
    package = next((name for name in claims if normalized(name) == wanted), min(claims))
    return package, source.asked if source.asked in claims[package] else claims[package][0]


def _refuse_other_package(root: StateRoot, made: Installed) -> None:
    for folder in root.envs.glob("[!.]*"):
        other = read_installed(folder)
        if other and other.worker == made.worker and other.package != made.package:
            raise InstallFailed(
                f"the worker '{made.worker}' already belongs to another package, {other.package} ({folder}). "
                f"Remove that first: mosaic worker remove {folder.name}"
            )


def _refuse_silent(new: Path, made: Installed) -> None:
    """Refuse an environment whose worker does not answer: it would replace one that works."""
    environment = Environment(made.name, new / "bin" / "python")
    worker = next((worker for worker in registered(environment) if worker.name == made.worker), None)
    answer = describe(worker, FIRST_ANSWER_LIMIT_S) if worker else None
    if answer is None or answer.problem:
        raise InstallFailed(f"its worker does not describe itself: {answer.problem if answer else 'it is missing'}")


def _for_uv(source: Source, extra: str, python: str, uv: Uv) -> str:
    """A folder's wheel by its path and checksum; a requirement of the user's as it was written."""
    return Wheels().of(source.folder, python, uv).requirement(extra) if source.folder else source.requirement + extra


def _without_folder(requirement: str) -> str:
    """A wheel by name and checksum: the same one may lie in another folder at the next install."""
    return re.sub(r" @ file://[^#]*/", " @ ", requirement)


def _distribution_of(source: Source) -> str:
    return distribution_name(source.folder) if source.folder else normalized(source.requirement)


def _version_of(found: dict[str, Distribution], name: str) -> str:
    return next((dist.version for key, dist in found.items() if normalized(key) == name), "")


def _packages(folder: Path) -> list[Path]:
    return sorted(folder.glob("lib/python3*/site-packages"))
