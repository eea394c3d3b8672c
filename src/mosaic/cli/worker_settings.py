"""A worker's parameters on the command line: where each goes, and its help. Read from the worker's schema."""

import os
import shutil
import textwrap
from typing import Any

from mosaic.catalog.answers import Answers
from mosaic.catalog.common import with_common
from mosaic.catalog.descriptor import Descriptor
from mosaic.catalog.placement import put_in_place
from mosaic.catalog.request import describe_worker
from mosaic.catalog.schema import (
    ALGORITHMS_KEY,
    SCRIPTS_KEY,
    Schema,
    for_config,
    help_rows,
    inside,
    unavailable,
)
from mosaic.catalog.workers import Catalog, Worker
from mosaic.cli.table import clip, render_table
from mosaic.model.errors import MosaicError
from mosaic.model.run import WorkerSpec
from mosaic.model.rundir import StateRoot

EXAMPLES_KEY = "x-mosaic-examples"  # ["env=CartPole-v1 steps=1000", …]: settings as one types them
LONGEST_KIND = 26
NARROWEST = 34  # of the last column, on whatever terminal
SCRIPT_FACTS = ("phases", "total_timesteps", "description")


def check_settings(name: str, variant: str, settings: dict[str, Any]) -> dict[str, Any]:
    """The config that a worker is given for these settings; BadConfig for what it would not take."""
    from mosaic.catalog.inspector import judge

    worker, told = describe_worker(name, variant, StateRoot.from_environment())
    return dict(judge(WorkerSpec(module=worker.module, config=settings), told).config)


def place_script(script: str, env_of: str, settings: dict[str, Any]) -> tuple[str, str, dict[str, Any]]:
    """The file, the environment (empty: the platform's own) and the config of `mosaic run --script`."""
    if not env_of:
        return os.path.abspath(script), "", settings
    root = StateRoot.from_environment()
    name, _, variant = env_of.partition("@")
    worker = Catalog(root).find(name, variant)
    schema = Answers(root.answers).of(worker).schema
    environment = "" if worker.environment.is_own else worker.environment.name
    placed = put_in_place(settings, with_common(schema))
    return _find_script(script, env_of, schema), environment, placed


def _find_script(script: str, env_of: str, schema: dict[str, Any]) -> str:
    """A file that is there, else one of that name that the worker ships."""
    shipped = schema.get(SCRIPTS_KEY, {})
    if os.path.exists(script):
        return os.path.abspath(script)
    if script in shipped:
        return str(shipped[script]["path"])
    ships = f"{env_of} ships: {', '.join(shipped)}" if shipped else f"{env_of} ships no scripts"
    raise MosaicError(f"There is no file {script}, and {ships}.")


def describe_settings(name: str, settings: dict[str, Any] | None = None) -> str:
    """What `mosaic run NAME [key=value …] --help` prints: with algo=dqn, what that algorithm takes."""
    root = StateRoot.from_environment()
    worker_name, _, variant = name.partition("@")
    worker = Catalog(root).find(worker_name, variant)
    told = Answers(root.answers).of(worker)
    usage = f"usage: mosaic run {name} [key=value …] [options; see: mosaic run --help]"
    return f"{usage}\n\n{_body(worker, told, settings or {})}"


def describe_unavailable(schema: dict[str, Any]) -> list[str]:
    """`algo=pqn, algo=rainbow: the reason`: one line for each reason why values cannot be had in this environment."""
    by_reason: dict[str, list[str]] = {}
    for key, values in unavailable(schema).items():
        for value, reason in values.items():
            by_reason.setdefault(reason, []).append(f"{key}={value}")
    return [f"{', '.join(settings)}: {reason}" for reason, settings in by_reason.items()]


def _body(worker: Worker, told: Descriptor, given: dict[str, Any]) -> str:
    about = str(told.metadata.get("description") or "")
    if told.problem:
        return f"The worker does not describe itself: {told.problem}"
    if not told.schema:
        return (
            f"{about}\n\nIt publishes no schema of its settings; they go to {worker.module} as you write them.".strip()
        )
    schema = with_common(told.schema)
    parts = (
        about,
        _examples(worker, told.schema),
        _settings_table(for_config(schema, put_in_place(given, schema)) if given else schema),
        "" if given else _of_one_algorithm(worker, schema),
        _scripts(worker, told.schema),
    )
    return "\n\n".join(filter(None, parts))


def _settings_table(schema: Schema) -> str:
    """Its last column is wrapped: a screen has 80 to 120 columns, and some keys have a lot to say."""
    rows = [_quiet(row) for row in help_rows(schema)]
    used = sum(max(len(row[column]) for row in rows) + 2 for column in range(3)) if rows else 0
    width = max(NARROWEST, shutil.get_terminal_size().columns - used)
    wrapped: list[tuple[str, str, str, str]] = []
    for key, kind, default, words in rows:
        first, *more = textwrap.wrap(words, width) or [""]
        wrapped += [(key, kind, default, first), *(("", "", "", line) for line in more)]
    return render_table(("KEY", "VALUE", "DEFAULT", "WHAT IT DOES"), wrapped)


def _of_one_algorithm(worker: Worker, schema: Schema) -> str:
    own = inside(schema, ("extras", "algo_params")).get(ALGORITHMS_KEY)
    command = f"mosaic run {worker.spelled} algo=NAME --help"
    return f"The settings of one algorithm, with its own defaults: {command}" if own else ""


def _examples(worker: Worker, schema: dict[str, Any]) -> str:
    lines = [f"  mosaic run {worker.spelled} {settings}" for settings in schema.get(EXAMPLES_KEY, [])]
    return "\n".join(["for example:", *lines]) if lines else ""


def _scripts(worker: Worker, schema: dict[str, Any]) -> str:
    """The custom scripts that come with a worker, and how one is run."""
    shipped = schema.get(SCRIPTS_KEY, {})
    if not shipped:
        return ""
    rows = [(name, *(str(part.get(key, "")) for key in SCRIPT_FACTS)) for name, part in shipped.items()]
    usage = f"mosaic run --script NAME --env-of {worker.spelled} [--set key=value …]"
    return f"Scripts that come with it: {usage}\n\n{render_table(('NAME', 'PHASES', 'STEPS', 'WHAT IT DOES'), rows)}"


def _quiet(row: tuple[str, str, str, str]) -> tuple[str, str, str, str]:
    """Long choices are cut: `mosaic worker describe --json` has all of them."""
    key, kind, default, words = row
    return key, clip(kind, LONGEST_KIND), clip(default, LONGEST_KIND), words
