"""From a claimed run to its launch.json: all that the holder needs, decided before it is started."""

import os
import secrets
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any, Protocol

from mosaic_sdk.names import WorkerEnv

from mosaic.catalog.answers import Answers
from mosaic.catalog.capabilities import known_capabilities
from mosaic.catalog.command import Command, build_command
from mosaic.catalog.observation import is_observed, takes_config
from mosaic.catalog.workers import Catalog
from mosaic.dispatch.operator_commands import OperatorCommand, write_operators
from mosaic.model import node_paths
from mosaic.model.errors import MosaicError
from mosaic.model.run import RunConfig, WorkerSpec
from mosaic.model.rundir import RunDir, StateRoot
from mosaic.submit.record import write_worker_file

# What a tailer gets of the daemon's environment: nothing that belongs to a run.
TAILER_VARIABLES = (
    *("HOME", "LANG", "LC_ALL", "PATH", "TMPDIR", "XDG_RUNTIME_DIR", "PYTHONPATH", "PYTHONDONTWRITEBYTECODE"),
    *("MOSAIC_FAILPOINTS", "MOSAIC_FAILPOINTS_DIR"),  # for the fault lab
)


DriverToken = Callable[[str, int, str], str]  # run id, attempt and experiment of a driver → its token


class Addresses(Protocol):
    """Where the daemon listens; empty while it does not."""

    unix: str
    tcp: str


# How often a node reports the CPU time of a run: so often within the time after which a silent run counts as hung.
REPORTS = 8
SHORTEST_REPORT_S, LONGEST_REPORT_S = 0.25, 20.0


@dataclass(frozen=True)
class Far:
    """What a run on another machine is told: where the daemon listens for it, and what its cluster is asked for."""

    address: str
    certificate: str  # PEM
    resources: Mapping[str, Any]  # partition, cpus, memory_mb, gpus, default_time_s
    heartbeat_s: float = 300.0  # the run's limit: its node reports several times within it
    lost_contact_s: float = 0.0  # without an answer of the daemon for so long the node ends the run; 0: never
    # Of a cluster that shares no file system with the daemon: python, root and environments, as in the cluster's file.
    node: Mapping[str, str] | None = None


# Variables that a cluster sets on the node, and what its prolog may change.
INHERITED = (
    *("CUDA_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES", "SLURM_JOB_ID", "SLURM_JOB_GPUS", "SLURMD_NODENAME", "TMPDIR"),
    *("LD_LIBRARY_PATH", "XLA_FLAGS", "CUDA_HOME"),
)


_OF_THE_NODE = ("HOME", "USER", "LOGNAME")  # where the daemon's machine has other ones
_OF_THIS_MACHINE = ("HOME", "PATH", "TMPDIR", "XDG_RUNTIME_DIR", "PYTHONPATH")


@dataclass(frozen=True)
class Plan:
    """A launch, and what is recorded in its provenance."""

    launch: dict[str, Any]
    command: Command
    python: Path
    operators: Mapping[str, OperatorCommand] = field(default_factory=dict)

    @property
    def programs(self) -> dict[str, tuple[Command, Path]]:
        """Command and Python of each operator."""
        return {name: (found.command, found.python) for name, found in self.operators.items()}


def plan_launch(
    root: StateRoot,
    rundir: RunDir,
    config: RunConfig,
    catalog: Catalog,
    attempt: int,
    granted: Sequence[str],
    addresses: Addresses,
    environment: Mapping[str, str],
    driver_token: DriverToken = lambda *_: "",
    far: Far | None = None,
    of_parts: Mapping[str, str] = MappingProxyType({}),
) -> Plan:
    """Resolve the worker, write its config file and its operators, and describe what the holder is to start.

    `of_parts`: variables of a run with parts, or of a part.
    """
    python = catalog.python_for(config.worker)
    worker_file = write_worker_file(root, config)
    answers = Answers(root.answers)
    command = build_command(
        *(config, root, rundir, python, worker_file, granted, addresses.tcp, environment),
        has_config=takes_config(config.worker, catalog),
        is_observed=is_observed(config.worker, catalog, answers),
    )
    operators = write_operators(root, rundir, config, catalog, granted, environment, command.env)
    nonce = secrets.token_hex(16)
    extras = config.worker.config.get("extras")
    launch = {
        "version": 1,
        "run_id": config.run_id,
        "attempt": attempt,
        "nonce": nonce,
        "secret": secrets.token_hex(32),  # only the holder and the daemon know it: it proves who wrote exit.json
        "worker_id": config.worker.worker_id,
        "capabilities": known_capabilities(answers, catalog, config.worker),
        "argv": list(command.argv),
        "env": {
            **command.env,
            **_registration(config, attempt, nonce),
            **_drivers_variables(config, attempt, addresses.tcp, driver_token),
            **of_parts,
        },
        "cwd": str(command.cwd),
        "inputs": config.worker.inputs,
        "pipe": command.pipe,
        "commands": config.worker.commands,
        "hold": "auto",
        "time_limit_s": config.limits.time_s,
        "grace_s": config.limits.grace_s,
        "store_observations": isinstance(extras, dict) and bool(extras.get("store_observations")),
        "tailer_argv": _tailer_argv(root, rundir, addresses.unix),
        "tailer_env": {name: os.environ[name] for name in TAILER_VARIABLES if name in os.environ},
    }
    if far:
        launch |= _far_part(launch, rundir, far)
    if far and far.node:
        launch |= _apart_part(launch, far.node, python, _name_on_nodes(root, python, catalog, config.worker))
    return Plan(launch, command, python, operators)


def _far_part(launch: Mapping[str, Any], rundir: RunDir, far: Far) -> dict[str, Any]:
    """What differs on another machine: its tailer uses one address and one certificate, and starts no daemon."""
    return {
        "daemon": {"address": far.address, "certificate": far.certificate},
        "resources": dict(far.resources),
        "report_s": _report_s(far),
        "stop_after_lost_contact_s": far.lost_contact_s,
        "inherit": list(INHERITED),
        "tailer_argv": [sys.executable, "-m", "mosaic.tail", "--run-dir", str(rundir.path), "--node"],
        "local_tailer_argv": launch["tailer_argv"],
    }


def _apart_part(launch: Mapping[str, Any], node: Mapping[str, str], python: Path, worker: str) -> dict[str, Any]:
    """What differs on a machine with a file system of its own: see daemon/arrivals.py and tail/files_home.py."""
    tailer = [node["python"] or sys.executable, *launch["tailer_argv"][1:]]
    variables = {name: value for name, value in launch["tailer_env"].items() if name not in _OF_THIS_MACHINE}
    return {
        # Whoever has the ticket gets the launch, once: so neither secret nor nonce is among what the cluster shows.
        "node": {**node, "ticket": secrets.token_hex(16), "environment": str(python.parent.parent), "worker": worker},
        "home": True,
        "inherit": [*launch["inherit"], *_OF_THE_NODE],
        "tailer_argv": tailer,
        "tailer_env": {**variables, "PYTHONPATH": node_paths.CODE, "PATH": os.defpath},
    }


def _name_on_nodes(root: StateRoot, python: Path, catalog: Catalog, worker: WorkerSpec) -> str:
    """The folder in `envs/` of a node that `mosaic worker install --on` gives this environment; empty: none."""
    environment = python.parent.parent
    if environment.parent == root.envs:
        return environment.name
    # This platform's own, which has the toy worker; a script in it has no environment that could be installed.
    return catalog.for_module(worker.module, worker.variant, worker.name).spelled if worker.module else ""


def _report_s(far: Far) -> float:
    """How often the node reports, which is also how often it hears of the daemon."""
    often = min(far.heartbeat_s / REPORTS, far.lost_contact_s / REPORTS or LONGEST_REPORT_S)
    return min(max(often, SHORTEST_REPORT_S), LONGEST_REPORT_S)


def _registration(config: RunConfig, attempt: int, nonce: str) -> dict[str, str]:
    """What a worker that uses gRPC registers with: it cannot read launch.json."""
    return {WorkerEnv.ATTEMPT: str(attempt), WorkerEnv.NONCE: nonce} if config.worker.use_grpc else {}


def _drivers_variables(config: RunConfig, attempt: int, address: str, token: DriverToken) -> dict[str, str]:
    """What a driver calls the daemon with. By TCP: the socket is hidden from workers, and its path is no secret."""
    if not config.worker.drives:
        return {}
    if not address:
        raise MosaicError(
            f"Run {config.run_id} is a driver and the daemon has no TCP address. Restart it: mosaic daemon start"
        )
    right = token(config.run_id, attempt, config.membership.experiment)
    return {WorkerEnv.DRIVER_ADDRESS: address, WorkerEnv.DRIVER_TOKEN: right}


def _tailer_argv(root: StateRoot, rundir: RunDir, address: str) -> list[str]:
    return [
        sys.executable,
        *("-m", "mosaic.tail"),
        *("--run-dir", str(rundir.path)),
        *("--address", address),
        *("--root", str(root.path)),
    ]
