"""Where a result came from: code, packages, command, machine, seeds. Written beside the run, without secrets."""

import os
import platform
import socket
import subprocess
import time
from collections.abc import Iterator, Mapping
from functools import lru_cache
from importlib.metadata import distributions
from pathlib import Path
from typing import Any

import mosaic
from mosaic.catalog.command import Command
from mosaic.catalog.environment import Environment, environment_at
from mosaic.catalog.pythons import version_of
from mosaic.catalog.secrets import redact, redact_arguments
from mosaic.model import durable
from mosaic.model.run import RunConfig, WorkerSpec
from mosaic.model.rundir import RunDir

__all__ = ["collect", "redact", "write"]

Programs = Mapping[str, tuple[Command, Path]]  # by the operator's name
_GIT_LIMIT_S = 10.0


def write(
    config: RunConfig, command: Command, worker_python: Path, rundir: RunDir, operators: Programs | None = None
) -> None:
    durable.write_json(rundir.provenance, collect(config, command, worker_python, rundir, operators))


def collect(
    config: RunConfig, command: Command, worker_python: Path, rundir: RunDir, operators: Programs | None = None
) -> dict[str, Any]:
    """The contents of provenance.json. Slow (git, package lists): call it after the spawn, off the event loop.

    `operators`: the command and the Python of each.
    """
    environment = environment_at(worker_python)
    return {
        "version": 1,
        "run_id": config.run_id,
        "run_dir": str(rundir.path),
        "recorded_at": time.time(),
        "host": socket.gethostname(),
        "worker": {"name": config.worker_name, **_code(config.worker, environment)},
        "mosaic": {"version": _mosaic_version(), "git": git_state(Path(mosaic.__file__))},
        "argv": redact_arguments(command.argv),
        "environment": redact(dict(config.worker.environment)),
        "cuda_visible_devices": command.env.get("CUDA_VISIBLE_DEVICES", ""),
        "python": _python(environment),
        "hardware": hardware(),
        "seeds": dict(_seeds(config.worker.config)),
        **({"operators": _operators(config, operators)} if operators else {}),
    }


def _operators(config: RunConfig, programs: Programs) -> dict[str, Any]:
    """Code, packages and checkpoint of each operator: they run in environments of their own."""
    found: dict[str, Any] = {}
    for name, (command, python) in programs.items():
        operator, environment = config.operators[name], environment_at(python)
        found[name] = {
            **{"kind": operator.kind, "about": redact(dict(operator.about))},
            **{"code": _code(operator.worker, environment), "argv": redact_arguments(command.argv)},
            **{"environment": redact(dict(operator.worker.environment)), "python": _python(environment)},
            "settings": redact(dict(operator.worker.config)),
        }
    return found


def _code(worker: WorkerSpec, environment: Environment) -> dict[str, Any]:
    source = Path(worker.script) if worker.script else environment.locate(worker.module.partition(".")[0])
    return {"source": str(source) if source else None, "git": git_state(source) if source else None}


def _python(environment: Environment) -> dict[str, Any]:
    return {
        "executable": str(environment.python),
        "version": _python_version(environment),
        "packages": freeze(environment),
    }


def git_state(place: Path) -> dict[str, Any] | None:
    """Commit and dirty flag of the checkout that contains `place`; None without a checkout or without git."""
    folder = place if place.is_dir() else place.parent
    commit = _git(folder, "rev-parse", "HEAD")
    # Untracked files do not count: results in the checkout do not change the code.
    changes = _git(folder, "status", "--porcelain", "--untracked-files=no")
    if commit is None or changes is None:
        return None
    return {"commit": commit, "dirty": bool(changes)}


def freeze(environment: Environment) -> list[str]:
    """`name==version` of every package, read from their files and cached until one is installed or removed."""
    return list(_packages(environment, environment.stamp()))


def hardware() -> dict[str, Any]:
    return {
        "machine": platform.machine(),
        "kernel": platform.release(),
        "cpu": _field("/proc/cpuinfo", "model name"),
        "cores": os.cpu_count(),
        "cores_usable": len(os.sched_getaffinity(0)),
        "memory": _field("/proc/meminfo", "MemTotal"),
        "gpus": _gpus(),
    }


def _git(folder: Path, *arguments: str) -> str | None:
    # No optional locks and no file-system monitor: reading must neither lock the checkout nor run a program of it.
    command = ["git", "--no-optional-locks", "-c", "core.fsmonitor=false", "-C", str(folder), *arguments]
    env = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    try:
        done = subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=_GIT_LIMIT_S, env=env)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() if done.returncode == 0 else None


@lru_cache(maxsize=32)
def _packages(environment: Environment, stamp: tuple[object, ...]) -> tuple[str, ...]:
    found = distributions(path=[str(folder) for folder in environment.folders])
    return tuple(sorted({f"{item.name}=={item.version}" for item in found if item.name}, key=str.lower))


def _mosaic_version() -> str:
    found = next(iter(distributions(name="mosaic-rl")), None)
    return found.version if found else ""


def _python_version(environment: Environment) -> str:
    if environment.is_own:
        return platform.python_version()
    settings = environment.python.parent.parent / "pyvenv.cfg"
    # venv calls it version, uv version_info. An interpreter of the system or of conda has no such file.
    return _field(settings, "version", "=") or _field(settings, "version_info", "=") or version_of(environment.python)


def _field(path: str | Path, name: str, separator: str = ":") -> str | None:
    """The first value called `name` in a file of `name: value` lines."""
    try:
        lines = Path(path).read_text(errors="replace").splitlines()
    except OSError:
        return None
    pairs = (line.partition(separator) for line in lines)
    return next((value.strip() for key, _, value in pairs if key.strip() == name), None)


def _gpus() -> list[dict[str, str | None]]:
    # The driver's own files: no library to load, nothing to initialise.
    files = sorted(Path("/proc/driver/nvidia/gpus").glob("*/information"))
    return [{"model": _field(file, "Model"), "uuid": _field(file, "GPU UUID")} for file in files]


def _seeds(values: Mapping[str, Any], path: str = "") -> Iterator[tuple[str, Any]]:
    """Every `seed`, `eval_seed`, `seeds` … of a config, at any depth, by its dotted path."""
    for name, value in values.items():
        if isinstance(value, Mapping):
            yield from _seeds(value, f"{path}{name}.")
        elif name.lower().removesuffix("s").endswith("seed"):
            yield f"{path}{name}", value
