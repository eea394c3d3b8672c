"""Running an experiment: which runs of its grid are missing, and submitting those in one call."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from mosaic.catalog.derived import RESUME, derived_config
from mosaic.catalog.request import RunOptions, option_names, trainer_config, worker_sections
from mosaic.catalog.secrets import masked_keys
from mosaic.client.run import Run
from mosaic.model.durable import read_json
from mosaic.model.errors import BadConfig, MosaicError, NoCheckpoint, UnknownExperiment
from mosaic.model.experiment import (
    SEED,
    Experiment,
    Point,
    label,
    merged,
    point_key,
    points,
    read_document,
    run_key,
    settings_at,
)
from mosaic.model.rundir import StateRoot
from mosaic.model.states import RunState

if TYPE_CHECKING:
    from mosaic.client.experiment_calls import ExperimentCalls

NOT_FOR_ALL = ("name", "idempotency_key")  # options that each run of an experiment has for itself
LONGEST_NAME = 120


@dataclass(frozen=True)
class ExperimentRuns:
    """What `run_experiment` did."""

    name: str
    document: Mapping[str, Any]
    runs: tuple[Run, ...]  # the newest run at each point of the grid; after a dry run only those that exist
    added: tuple[str, ...]  # ids of the runs that were added
    missing: tuple[Mapping[str, Any], ...]  # the points that these are for, or in a dry run would be
    others: tuple[Run, ...] = ()  # runs of the experiment at points that are not in the document; they are kept


@dataclass(frozen=True)
class Todo:
    """A run to submit."""

    point: Point
    key: str
    config: dict[str, Any]


@dataclass(frozen=True)
class Plan:
    """What is missing of an experiment."""

    name: str
    document: Mapping[str, Any]
    newest: Mapping[str, Run]  # the newest run at each point, by `point_key`
    todo: Sequence[Todo]

    def begun(self, submitted: Sequence[tuple[Run, bool]]) -> ExperimentRuns:
        """`submitted`: each run, and whether it was added. Another client may have added it a moment before."""
        newest = {**self.newest, **{point_key(run.axes): run for run, _ in submitted}}
        grid = dict.fromkeys(point_key(point) for point in points(self.document))
        return ExperimentRuns(
            self.name,
            self.document,
            tuple(newest[key] for key in grid if key in newest),
            tuple(run.run_id for run, is_new in submitted if is_new),
            tuple(each.point for each in self.todo),
            tuple(run for key, run in newest.items() if run.axes and key not in grid),
        )


async def plan_experiment(
    client: "ExperimentCalls",
    root: StateRoot | None,
    name: str,
    document: Mapping[str, Any],
    retry_faulted: bool,
    is_new: bool,
) -> Plan:
    wanted = read_document(document)
    known, runs = (None, []) if is_new else await _existing(client, name)
    if known and known.is_reconstructed:
        await _refuse_other_settings(client, root, known, runs, wanted)
    elif known:
        merged(name, read_document(known.document), wanted)  # ExperimentDiffers
    newest = newest_at_points(runs)
    missing = [point for point in points(wanted) if _is_due(newest.get(point_key(point)), retry_faulted)]
    configs = await asyncio.to_thread(grid_configs, name, wanted, missing, root)
    todo = [
        Todo(point, _key_of(name, point, newest.get(point_key(point))), config)
        for point, config in zip(missing, configs, strict=True)
    ]
    return Plan(name, wanted, newest, todo)


async def _existing(client: "ExperimentCalls", name: str) -> tuple[Experiment | None, Sequence[Run]]:
    """The experiment and its runs."""
    try:
        known = await client.experiment(name)
    except UnknownExperiment:
        return None, []
    return known, (await client.list_runs(experiment=name)).runs


async def _refuse_other_settings(
    client: "ExperimentCalls", root: StateRoot | None, known: Experiment, runs: Sequence[Run], wanted: Mapping[str, Any]
) -> None:
    """ExperimentDiffers if the record is lost and a run shows that the experiment was another one."""
    seen = {**read_document(known.document), "variant": wanted["variant"], "base": wanted["base"]}
    merged(known.name, seen, wanted)
    keys = {*wanted["axes"], *([SEED] if wanted["seeds"] else [])}
    run = next((run for run in runs if set(run.axes) == keys and not run.parent_run_id), None)
    before = _settings_in(await _config_of(client, root, run)) if run else {}
    if run is None or not before or masked_keys(before):
        return  # nothing to compare with
    (again,) = await asyncio.to_thread(grid_configs, known.name, wanted, [run.axes], root)
    merged(known.name, {**wanted, "base": before}, {**wanted, "base": _settings_in(again)})


def _settings_in(config: Mapping[str, Any]) -> dict[str, Any]:
    """The settings of a run in its trainer config."""
    worker = (config.get("metadata") or {}).get("worker") or {}
    return {key: value for key, value in (worker.get("config") or {}).items() if key != "run_id"}


def newest_at_points(runs: Sequence[Run]) -> dict[str, Run]:
    """The newest run at each point, by `point_key`. A run that was resumed is replaced by its successor."""
    return {point_key(run.axes): run for run in sorted(runs, key=lambda run: run.created_at)}


def _is_due(run: Run | None, retry_faulted: bool) -> bool:
    return run is None or (retry_faulted and run.state is RunState.FAULTED)


def _key_of(name: str, point: Point, failed: Run | None) -> str:
    """By the failed run's id: two who retry it at the same time start one run."""
    return run_key(name, point, failed.run_id if failed else "")


def grid_configs(
    name: str, document: Mapping[str, Any], wanted: Sequence[Point], root: StateRoot | None
) -> list[dict[str, Any]]:
    """The trainer configs of the runs at these points."""
    options = options_of(document)
    worker = f"{document['worker']}@{document['variant']}" if document["variant"] else document["worker"]
    sections = worker_sections(worker, [settings_at(document, point) for point in wanted], root)
    configs = []
    for point, section in zip(wanted, sections, strict=True):
        named = replace(options, name=f"{name} {label(point)}".strip()[:LONGEST_NAME])
        configs.append(as_member(trainer_config(section, named), name, point))
    return configs


def as_member(config: dict[str, Any], name: str, point: Point) -> dict[str, Any]:
    """The config, as one of a run of this experiment."""
    config["metadata"]["experiment"] = {"name": name, "axes": dict(point)}
    return config


def options_of(document: Mapping[str, Any]) -> RunOptions:
    for option in document["options"]:
        if option in NOT_FOR_ALL:
            known = ", ".join(name for name in option_names() if name not in NOT_FOR_ALL)
            raise BadConfig(f"experiment.options.{option}", f"each run has its own. Options: {known}.")
    return RunOptions.of(document["options"])


# ---- continuing


@dataclass(frozen=True)
class Continued:
    """A run that was ended before it was done, and the run that takes its place."""

    before: Run
    after: Run
    is_resumed: bool  # from a checkpoint; otherwise it starts again


async def resume_runs(
    client: "ExperimentCalls", root: StateRoot | None, experiment: Experiment, runs: Sequence[Run]
) -> list[Continued]:
    """Continue these runs, each from its newest checkpoint, or from the beginning where there is none.

    MosaicError for a search: its driver has pruned the trials that were cancelled, and replaced those that failed.
    """
    if experiment.document.get("search"):
        raise MosaicError(f"'{experiment.name}' is a search. Continue it with: mosaic search resume {experiment.name}")
    return [await _resume(client, root, experiment, run) for run in runs]


async def _resume(client: "ExperimentCalls", root: StateRoot | None, experiment: Experiment, run: Run) -> Continued:
    options = replace(options_of({"options": {}, **experiment.document}), name=run.name)
    key = run_key(experiment.name, run.axes, run.run_id)
    resumed = as_member(
        derived_config(run.run_id, RESUME, {}, options, is_remote=root is None), experiment.name, run.axes
    )
    try:
        return Continued(run, await client.submit_run(resumed, f"{key}/resume"), True)
    except (NoCheckpoint, BadConfig):
        # Its worker cannot resume, or it was ended before its first checkpoint.
        pass
    again = await _again(client, root, experiment, run, options)
    return Continued(run, await client.submit_run(again, key), False)


async def _config_of(client: "ExperimentCalls", root: StateRoot | None, run: Run) -> Mapping[str, Any]:
    """From its file, or as the daemon tells it; empty if it is lost."""
    if root is not None and (own := await asyncio.to_thread(read_json, root.config_file(run.run_id))):
        return own
    return (await client.get_run(run.run_id)).config or {}


async def _own_config(client: "ExperimentCalls", root: StateRoot | None, run: Run) -> Mapping[str, Any]:
    """The config of a run with its secrets: from its file, because the daemon tells them to nobody."""
    config = await _config_of(client, root, run)
    lost = f"Run {run.run_id} cannot start again: the record of its experiment is lost, and"
    if not config:
        raise MosaicError(f"{lost} so is its config file. Start it with: mosaic run")
    if secrets := masked_keys(config):
        hidden = f"its config is sent without {', '.join(secrets)}"
        raise MosaicError(f"{lost} {hidden}. Start it again on the daemon's machine, or with: mosaic run")
    return config


async def _again(
    client: "ExperimentCalls", root: StateRoot | None, experiment: Experiment, run: Run, options: RunOptions
) -> dict[str, Any]:
    """The config of a run with the same settings."""
    if not experiment.is_reconstructed:
        return (await asyncio.to_thread(grid_configs, experiment.name, experiment.document, [run.axes], root))[0]
    config = await _own_config(client, root, run)  # the base is lost
    worker = dict((config.get("metadata") or {}).get("worker") or {})
    worker.pop("worker_id", None)
    return as_member(trainer_config({**worker, "config": _settings_in(config)}, options), experiment.name, run.axes)
