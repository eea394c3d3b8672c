"""What `client.run` and `mosaic run` submit: a trainer config made from a worker's name, its settings and options."""

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any

from mosaic.model.errors import BadConfig
from mosaic.model.nearest import did_you_mean
from mosaic.model.rundir import StateRoot

if TYPE_CHECKING:
    from mosaic.catalog.descriptor import Descriptor
    from mosaic.catalog.workers import Worker

SHORT = {"env": "env_id"}
PATIENT_S = 60.0  # the second attempt, for a worker that did not describe itself within the usual time
FIELDS = {  # fields of the trainer config, as a caller of `client.run` writes them
    "metadata.worker.config.": "",
    "metadata.worker.commands": "run_options.commands",
    "metadata.run_name": "run_options.name",
    "metadata.tags": "run_options.tags",
    "payload.resources.gpus.requested": "run_options.gpus",
    "payload.resources.gpus.mandatory": "run_options.gpus_mandatory",
    "payload.resources.": "run_options.",
    "payload.limits": "run_options.limits",
    "payload.on": "run_options.on",
    "payload.requeue_as_resume": "run_options.requeue_as_resume",
    "payload.parts": "run_options.parts",
}


@dataclass(frozen=True)
class RunOptions:
    """What MOSAIC does with a run, as opposed to the settings that its worker reads."""

    name: str = ""  # in listings; empty: the worker's name and its environment
    tags: Sequence[str] = ()  # labels to select runs by
    gpus: int = 0  # how many GPUs the run asks for
    gpus_mandatory: bool = False  # wait for the GPUs instead of running without them
    cpus: float | None = None  # that the run needs: it waits until they are free; None: 1
    memory_mb: int | None = None  # that the run needs; None: the worker's own estimate
    limits: Mapping[str, float] = field(default_factory=dict)  # time_s, spin_s …: `payload.limits` of a trainer config
    commands: bool = False  # the worker reads commands on its stdin: `TrainerClient.command_run` sends them
    on: str = ""  # where to run: `local`, or CLUSTER[:PARTITION] such as `slurm:gpu`; empty: the daemon's default
    requeue_as_resume: int = 0  # how often it is continued from its newest checkpoint after its cluster has ended it
    parts: Sequence[str | Mapping[str, Any]] = ()  # NAME[:COUNT][@PLACE], or as in a config: runs that do a part of it
    idempotency_key: str = ""  # two submissions of one config with the same key are one run

    def __post_init__(self) -> None:
        # A string is a sequence as well: without this, tags="demo" means the tags d, e, m and o.
        if isinstance(self.tags, str):
            raise BadConfig("run_options.tags", f"must be a list of strings, not {self.tags!r}.")
        if not isinstance(self.limits, Mapping):
            raise BadConfig("run_options.limits", f"must be a mapping such as {{'time_s': 600}}, not {self.limits!r}.")

    @classmethod
    def of(cls, options: "RunOptions | Mapping[str, Any] | None") -> "RunOptions":
        """Accept a plain mapping as well; BadConfig for an unknown option."""
        if isinstance(options, RunOptions):
            return options
        if options is not None and not isinstance(options, Mapping):
            raise BadConfig("run_options", f"must be a RunOptions or a mapping, not {options!r}.")
        known = option_names()
        for name in options or {}:
            if name not in known:
                hint = did_you_mean(name, known, 1) or f"Known options: {', '.join(known)}."
                raise BadConfig(f"run_options.{name}", f"there is no such option. {hint}")
        return cls(**(options or {}))


def option_names() -> list[str]:
    return [option.name for option in fields(RunOptions)]


def trainer_config(worker: Mapping[str, Any], options: RunOptions) -> dict[str, Any]:
    """The config of a run with `worker` as its `metadata.worker`."""
    metadata: dict[str, Any] = {"worker": {**worker, "commands": True} if options.commands else dict(worker)}
    if options.name:
        metadata["run_name"] = options.name
    if options.tags:
        metadata["tags"] = list(options.tags)
    asks_for_gpus = options.gpus or options.gpus_mandatory
    gpus = {"requested": options.gpus, "mandatory": options.gpus_mandatory} if asks_for_gpus else None
    payload = {
        "on": options.on,
        "requeue_as_resume": options.requeue_as_resume,
        "parts": [part_of(part) for part in options.parts],
        "resources": _given(gpus=gpus, cpus=options.cpus, memory_mb=options.memory_mb),
        "limits": dict(options.limits),
    }
    return {"metadata": metadata, "payload": {name: section for name, section in payload.items() if section}}


def part_of(part: str | Mapping[str, Any]) -> dict[str, Any]:
    """`env:2@slurm:cpu` as an entry of `payload.parts`; a mapping is one already."""
    if isinstance(part, Mapping):
        return dict(part)
    head, _, place = part.partition("@")
    name, colon, count = head.partition(":")
    if not name or (colon and not (count.isascii() and count.isdigit())) or (not place and part.endswith("@")):
        raise BadConfig("run_options.parts", f"'{part}' is not a part. Write NAME[:COUNT][@PLACE]: env:2@slurm:cpu.")
    return {"name": name, **({"count": int(count)} if count else {}), **({"on": place} if place else {})}


def worker_section(worker: str, settings: dict[str, Any], root: StateRoot | None) -> dict[str, Any]:
    """`metadata.worker` for `NAME` or `NAME@VARIANT`.

    `root`: whose catalog knows the worker. None, for a daemon on another machine: the module follows from the name.
    """
    return worker_sections(worker, [settings], root)[0]


def worker_sections(worker: str, many: Sequence[dict[str, Any]], root: StateRoot | None) -> list[dict[str, Any]]:
    """`worker_section` for many settings of one worker, which is described once."""
    name, _, variant = worker.partition("@")
    if root is None:
        module, placed = f"{name.removesuffix('_worker')}_worker.cli", list(many)
    else:
        module, placed = place_settings(name, variant, many, root)
    about: dict[str, Any] = {"variant": variant} if variant else {}
    return [{"module": module, "name": name, "config": settings, **about} for settings in placed]


def place_settings(
    name: str, variant: str, many: Sequence[dict[str, Any]], root: StateRoot
) -> tuple[str, list[dict[str, Any]]]:
    """The worker's module, and the settings with each key where the worker's schema has it."""
    from mosaic.catalog.common import with_common
    from mosaic.catalog.placement import put_in_place

    worker, answer = describe_worker(name, variant, root)
    schema = with_common(answer.schema)
    return worker.module, [with_absolute_paths(put_in_place(settings, schema), schema) for settings in many]


def describe_worker(name: str, variant: str, root: StateRoot) -> "tuple[Worker, Descriptor]":
    """A worker and its description of itself; UnknownWorker when it is not installed."""
    from mosaic.catalog.answers import Answers
    from mosaic.catalog.workers import Catalog

    worker = Catalog(root).find(name, variant)
    answers = Answers(root.answers)
    answer = answers.of(worker)
    # Without the schema a key may end up in the wrong place: on a busy machine a second attempt is worth its time.
    return worker, answers.ask(worker, PATIENT_S) if answer.problem else answer


def with_absolute_paths(settings: dict[str, Any], schema: Mapping[str, Any]) -> dict[str, Any]:
    """Make relative checkpoint paths absolute: the daemon does not know the caller's working folder.

    A path that does not exist stays as it is, because it may name a run.
    """
    from mosaic.catalog.schema import CHECKPOINT_KEY, parameters

    for place, name, part in parameters(schema):
        folder: Any = settings
        for key in place:
            folder = folder.get(key) if isinstance(folder, dict) else None
        value = folder.get(name) if isinstance(folder, dict) else None
        if part.get(CHECKPOINT_KEY) and isinstance(value, str) and value and os.path.exists(os.path.expanduser(value)):
            folder[name] = os.path.abspath(os.path.expanduser(value))
    return settings


def nest(settings: Iterable[tuple[str, Any]]) -> dict[str, Any]:
    """`[("steps", 200), ("extras.lr", 3e-4)]` → `{"steps": 200, "extras": {"lr": 0.0003}}`; `env` means `env_id`."""
    nested: dict[str, Any] = {}
    for key, value in settings:
        _put(nested, SHORT.get(key, key), value)
    return nested


def rename_fields(message: str, names: Mapping[str, str] = FIELDS) -> str:
    """An error about a field of the trainer config, in the names that the caller used."""
    for field_path, name in names.items():
        if message.startswith(field_path):
            return name + message[len(field_path) :]
    return message


def for_caller(message: str) -> str:
    """An error of `client.run` in the caller's names. An option among the settings is a likely mistake."""
    message = rename_fields(message)
    name = message.partition(":")[0]
    if name in option_names() and "has no such setting" in message:
        return f"{name}: the worker has no such setting. If you mean the option, pass run_options={{'{name}': …}}."
    return message


def _put(settings: dict[str, Any], key: str, value: Any) -> None:
    *outer, last = key.split(".")
    place = settings
    for name in outer:
        place = place.setdefault(name, {})
        if not isinstance(place, dict):
            raise BadConfig(key, f"'{name}' already has a value, so it cannot contain '{last}' as well.")
    if last in place:
        raise BadConfig(key, "given twice.")
    place[last] = value


def _given(**values: Any) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value is not None}
