"""The settings of a worker on the command line: where each belongs in the config, and their help.

Both are read from the worker's schema.
"""

import shutil
import textwrap
from typing import Any

from mosaic_sdk import keywords

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
from mosaic.model.run import WorkerSpec
from mosaic.model.rundir import StateRoot

LONGEST_KIND = 26
NARROWEST = 34  # width of the last column, even on a narrow terminal
SCRIPT_FACTS = ("phases", "total_timesteps", "description")


def check_settings(name: str, variant: str, settings: dict[str, Any]) -> dict[str, Any]:
    """The config that a worker receives for these settings. Raises BadConfig for settings that it does not accept."""
    from mosaic.catalog.inspector import judge

    worker, descriptor = describe_worker(name, variant, StateRoot.from_environment())
    return dict(judge(WorkerSpec(module=worker.module, config=settings), descriptor).config)


def describe_settings(name: str, settings: dict[str, Any] | None = None) -> str:
    """The help that `mosaic run NAME [key=value …] --help` prints. With algo=dqn: the settings of that algorithm."""
    root = StateRoot.from_environment()
    worker_name, _, variant = name.partition("@")
    worker = Catalog(root).find(worker_name, variant)
    descriptor = Answers(root.answers).of(worker)
    usage = f"usage: mosaic run {name} [key=value …] [options; see: mosaic run --help]"
    return f"{usage}\n\n{_body(worker, descriptor, settings or {})}"


def describe_unavailable(schema: dict[str, Any]) -> list[str]:
    """`algo=pqn, algo=rainbow: the reason`: one line for each reason why values are unavailable in this environment."""
    by_reason: dict[str, list[str]] = {}
    for key, values in unavailable(schema).items():
        for value, reason in values.items():
            by_reason.setdefault(reason, []).append(f"{key}={value}")
    return [f"{', '.join(settings)}: {reason}" for reason, settings in by_reason.items()]


def _body(worker: Worker, descriptor: Descriptor, given: dict[str, Any]) -> str:
    about = str(descriptor.metadata.get("description") or "")
    if descriptor.problem:
        return f"The worker could not be asked for its settings: {descriptor.problem}"
    if not descriptor.schema:
        return (
            f"{about}\n\nThis worker publishes no schema. Its settings are passed to {worker.module} unchecked.".strip()
        )
    schema = with_common(descriptor.schema)
    parts = (
        about,
        _examples(worker, descriptor.schema),
        _settings_table(for_config(schema, put_in_place(given, schema)) if given else schema),
        "" if given else _of_one_algorithm(worker, schema),
        _scripts(worker, descriptor.schema),
    )
    return "\n\n".join(filter(None, parts))


def _settings_table(schema: Schema) -> str:
    """The settings as a table whose last column is wrapped to the width of the terminal."""
    rows = [_shortened(row) for row in help_rows(schema)]
    used = sum(max(len(row[column]) for row in rows) + 2 for column in range(3)) if rows else 0
    width = max(NARROWEST, shutil.get_terminal_size().columns - used)
    wrapped: list[tuple[str, str, str, str]] = []
    for key, kind, default, text in rows:
        first, *more = textwrap.wrap(text, width) or [""]
        wrapped += [(key, kind, default, first), *(("", "", "", line) for line in more)]
    return render_table(("KEY", "VALUE", "DEFAULT", "DESCRIPTION"), wrapped)


def _of_one_algorithm(worker: Worker, schema: Schema) -> str:
    own = inside(schema, ("extras", "algo_params")).get(ALGORITHMS_KEY)
    command = f"mosaic run {worker.spelled} algo=NAME --help"
    return f"To see the settings of one algorithm and their defaults: {command}" if own else ""


def _examples(worker: Worker, schema: dict[str, Any]) -> str:
    lines = [f"  mosaic run {worker.spelled} {settings}" for settings in schema.get(keywords.EXAMPLES, [])]
    return "\n".join(["examples:", *lines]) if lines else ""


def _scripts(worker: Worker, schema: dict[str, Any]) -> str:
    """The scripts that a worker ships, and how to run one."""
    shipped = schema.get(SCRIPTS_KEY, {})
    if not shipped:
        return ""
    rows = [(name, *(str(part.get(key, "")) for key in SCRIPT_FACTS)) for name, part in shipped.items()]
    usage = f"mosaic run --script NAME --env-of {worker.spelled} [--set key=value …]"
    return f"scripts, run with: {usage}\n\n{render_table(('NAME', 'PHASES', 'STEPS', 'DESCRIPTION'), rows)}"


def _shortened(row: tuple[str, str, str, str]) -> tuple[str, str, str, str]:
    """Long lists of choices are cut; `mosaic worker describe --json` prints all of them."""
    key, kind, default, text = row
    return key, clip(kind, LONGEST_KIND), clip(default, LONGEST_KIND), text
