"""From a validated config to the command that starts its worker: argv, environment, folder."""

import hashlib
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import mosaic_sdk
from mosaic_sdk.caches import cache_variables
from mosaic_sdk.names import TelemetryEnv, VideoModes, WorkerEnv

from mosaic.catalog.environment import environment_at
from mosaic.catalog.variables import inherited
from mosaic.model.errors import MosaicError
from mosaic.model.run import RunConfig, WorkerSpec
from mosaic.model.rundir import RunDir, StateRoot


@dataclass(frozen=True)
class Command:
    argv: list[str]
    env: dict[str, str]
    cwd: str
    pipe: bool  # whether stdout and stderr go through the holder: a shell script may write `> /dev/stdout`


def build_command(
    config: RunConfig,
    root: StateRoot,
    rundir: RunDir,
    worker_python: Path,
    worker_file: Path,
    granted: Sequence[str],
    tcp_address: str,
    base_env: Mapping[str, str],
    *,
    has_config: bool = True,
    is_observed: bool = False,
) -> Command:
    """The command that the holder starts.

    A module gets `--config FILE [--grpc --grpc-target T]` and then `metadata.worker.arguments`. A script, and a module
    without a config, get only their arguments: they were not written for MOSAIC, and everything else is in MOSAIC_*
    variables.
    """
    if config.worker.script:
        argv = [*_start_script(config.worker, worker_python), *config.worker.arguments]
    else:
        flags = [*(["--config", str(worker_file)] if has_config else []), *_grpc_flags(config, tcp_address)]
        argv = [str(worker_python), "-m", config.worker.module, *flags, *config.worker.arguments]
    cwd = config.worker.cwd or str(rundir.path)
    env = {
        **cache_variables(str(root.cache / _cache_name(config.worker, worker_python)), base_env),
        **inherited(base_env),
        **_python_variables(worker_python, base_env),
        **_run_variables(config, rundir, worker_file),
        **_fastlane_variables(config),
        **({WorkerEnv.OBSERVE: "1"} if is_observed else {}),
        "PWD": cwd,  # some libraries read it instead of calling getcwd()
        "CUDA_VISIBLE_DEVICES": ",".join(granted),
        **config.worker.environment,
    }
    # Last, so that a PYTHONPATH from the config is kept and does not disable the injected sitecustomize.
    env["PYTHONPATH"] = _joined(str(autowrap_folder()), env.get("PYTHONPATH", ""))
    is_shell = bool(config.worker.script) and not _is_python(config.worker)
    return Command(argv, env, cwd, is_shell)


def autowrap_folder() -> Path:
    """The folder of the SDK's `sitecustomize`, which every worker's Python runs first."""
    return Path(mosaic_sdk.__file__).parent / "autowrap"


def _grpc_flags(config: RunConfig, tcp_address: str) -> list[str]:
    if not config.worker.use_grpc:
        return []
    if not tcp_address:
        raise MosaicError(
            f"Run {config.run_id} uses gRPC and the daemon has no TCP address. Restart it: mosaic daemon start"
        )
    return ["--grpc", "--grpc-target", tcp_address]


def _cache_name(worker: WorkerSpec, python: Path) -> str:
    """Of the environment. Every other project has one called .venv: the path of such an environment is part of it."""
    mark = f"-{hashlib.sha256(os.fsencode(python)).hexdigest()[:8]}" if worker.python else ""
    return environment_at(python).name + mark


def _is_python(worker: WorkerSpec) -> bool:
    return worker.script.endswith(".py") or bool(worker.python)


def _start_script(worker: WorkerSpec, python: Path) -> list[str]:
    """A .py file runs in the worker's Python; any other file directly, by its first line, or in bash."""
    script = worker.script
    if _is_python(worker):
        return [str(python), script]
    with open(script, "rb") as file:
        head = file.read(256)
    is_executable = os.access(script, os.X_OK)
    if is_executable and head.startswith((b"#!", b"\x7fELF")):
        return [script]
    if head.startswith(b"#!"):
        line = head[2:].split(b"\n", 1)[0].decode(errors="surrogateescape").strip()
        # Like the kernel: the interpreter and at most one argument.
        return [*line.split(None, 1), script]
    return ["bash", script]


def _python_variables(python: Path, base_env: Mapping[str, str]) -> dict[str, str]:
    folder = python.parent.parent
    variables = {"PATH": _joined(str(python.parent), base_env.get("PATH", os.defpath))}
    if (folder / "pyvenv.cfg").is_file():
        variables["VIRTUAL_ENV"] = str(folder)
    if (folder / "conda-meta").is_dir():
        variables["CONDA_PREFIX"] = str(folder)
    return variables


def _run_variables(config: RunConfig, rundir: RunDir, worker_file: Path) -> dict[str, str]:
    config_file = rundir.config / "base_config.json" if config.worker.script else worker_file
    return {
        WorkerEnv.RUN_ID: config.run_id,
        WorkerEnv.RUN_DIR: str(rundir.path),
        WorkerEnv.WORKER_ID: config.worker.worker_id,
        WorkerEnv.CHECKPOINT_DIR: str(rundir.checkpoints),
        WorkerEnv.CONFIG_FILE: str(config_file),
        # Where a custom script finds base_config.json and curriculum_config.json.
        WorkerEnv.CUSTOM_SCRIPTS_DIR: str(rundir.config),
        **({WorkerEnv.OPERATORS_FILE: str(rundir.operators_file)} if config.operators else {}),
    }


def _fastlane_variables(config: RunConfig) -> dict[str, str]:
    extras = config.worker.config.get("extras")
    extras = extras if isinstance(extras, Mapping) else {}
    mode = str(extras.get("fastlane_video_mode") or VideoModes.SINGLE)
    return {
        # On by default: frames without a viewer cost nothing.
        TelemetryEnv.FASTLANE_ONLY: "0" if mode == VideoModes.OFF else "1",
        TelemetryEnv.FASTLANE_SLOT: str(extras.get("fastlane_slot") or 0),
        TelemetryEnv.FASTLANE_VIDEO_MODE: mode,
        TelemetryEnv.FASTLANE_GRID_LIMIT: str(extras.get("fastlane_grid_limit") or 4),
    }


def _joined(*folders: str) -> str:
    return os.pathsep.join(folder for folder in folders if folder)
