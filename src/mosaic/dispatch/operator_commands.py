"""The operators of a run as commands: `operators.json`, which its worker reads, and a config file for each operator.

    {"version": 1, "operators": {"ppo": {"kind": "rl", "argv": […], "env": {…}, "cwd": "…", "owns_env": true,
                                         "about": {…}}}}

`env` has only what differs from the environment of the run's worker, null for a variable that the operator does not
have: what the daemon was started with, such as keys, is in launch.json alone. Both have mode 0600: the training that an
operator comes from may have had secrets of its own.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from mosaic_sdk.names import WorkerEnv

from mosaic.catalog.command import Command, build_command
from mosaic.catalog.workers import Catalog
from mosaic.model import durable
from mosaic.model.run import Operator, RunConfig
from mosaic.model.rundir import RunDir, StateRoot
from mosaic.submit.record import worker_document


@dataclass(frozen=True)
class OperatorCommand:
    """An operator and what starts it."""

    operator: Operator
    command: Command
    python: Path


def write_operators(
    root: StateRoot,
    rundir: RunDir,
    config: RunConfig,
    catalog: Catalog,
    granted: Sequence[str],
    environment: Mapping[str, str],
    worker_env: Mapping[str, str],
) -> dict[str, OperatorCommand]:
    """Write the files of a run's operators and return their commands; nothing is written for a run without any.

    `worker_env`: of the run's worker, which starts them.
    """
    if not config.operators:
        return {}
    rundir.operators.mkdir(mode=0o700, exist_ok=True)
    commands = {
        name: _command(root, rundir, config, name, catalog.python_for(operator.worker), granted, environment)
        for name, operator in config.operators.items()
    }
    entries = {name: _entry(found, worker_env) for name, found in commands.items()}
    # Last: its presence means that all files of the operators are complete.
    durable.write_json(rundir.operators_file, {"version": 1, "operators": entries})
    return commands


def _command(
    root: StateRoot,
    rundir: RunDir,
    config: RunConfig,
    name: str,
    python: Path,
    granted: Sequence[str],
    environment: Mapping[str, str],
) -> OperatorCommand:
    operator = config.operators[name]
    # The run's variables too: they are those of its whole process tree, such as the key of an LLM's endpoint.
    variables = {**operator.worker.environment, **config.worker.environment}
    worker = replace(operator.worker, environment=variables, worker_id=name)
    own = replace(config, worker=worker, operators={})
    file = rundir.operators / f"{name}.json"
    durable.write_json(file, worker_document(own))
    command = build_command(own, root, rundir, python, file, granted, "", environment)
    command.env[WorkerEnv.OPERATOR] = name
    return OperatorCommand(operator, command, python)


def _entry(found: OperatorCommand, worker_env: Mapping[str, str]) -> dict[str, object]:
    command = found.command
    return {
        "kind": found.operator.kind,
        "argv": command.argv,
        "env": _changes(worker_env, command.env),
        "cwd": command.cwd,
        "owns_env": found.operator.owns_env,
        "about": dict(found.operator.about),
    }


def _changes(old: Mapping[str, str], new: Mapping[str, str]) -> dict[str, str | None]:
    return {name: new.get(name) for name in sorted({*old, *new}) if new.get(name) != old.get(name)}
