"""The reference of the command line, the trainer config and the workers' settings, made from the code."""

import argparse
import copy
import importlib
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from api import class_in, docstring, fields_of
from markdown import code, fence, join, plain, table

from mosaic.catalog.common import with_common
from mosaic.catalog.schema import UNAVAILABLE_KEY, help_rows, parameters
from mosaic.cli.main import build_parser
from mosaic.submit import config, derive

REPO = Path(__file__).parents[2]
SECTIONS = {  # of a trainer config → the class in mosaic.model.run that it becomes
    "metadata.worker": "WorkerSpec",
    "payload.resources": "ResourceRequest",
    "payload.resources.gpus": "GpuRequest",
    "payload.limits": "Limits",
}


def commands() -> str:
    parser = build_parser()
    intro = (
        "Every command also explains itself: `mosaic COMMAND --help`. How the commands work together is described in "
        "[the command line](../howto/command-line.md)."
    )
    common = [action for action in parser._actions if action.option_strings]
    parts = [part for name, verb in verbs_of(parser) for part in verb_parts(f"mosaic {name}", verb, 2)]
    return join(
        "# Commands",
        intro,
        "Options of `mosaic` itself; all but `--version` may also be given after the command:",
        actions_table(common),
        *parts,
    )


def verbs_of(parser: argparse.ArgumentParser) -> Iterator[tuple[str, argparse.ArgumentParser]]:
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            yield from action.choices.items()


def verb_parts(name: str, verb: argparse.ArgumentParser, level: int) -> Iterator[str]:
    yield f"{'#' * level} {name}"
    yield plain(verb.description or "")
    nested = list(verbs_of(verb))
    if not nested:
        own = [action for action in verb._actions if not is_common(action)]
        yield fence(usage(name, own))
        yield actions_table(own)
        yield fence(textwrap.dedent((verb.epilog or "").removeprefix("examples:\n")))
    for part_name, part in nested:
        yield from verb_parts(f"{name} {part_name}", part, level + 1)


def is_common(action: argparse.Action) -> bool:
    return action.help == argparse.SUPPRESS or bool({"-h", "-v", "--host"} & set(action.option_strings))


def usage(name: str, actions: list[argparse.Action]) -> str:
    words = [action_name(action) for action in actions if not action.option_strings]
    options = ["[options]"] if any(action.option_strings for action in actions) else []
    return " ".join([name, *words, *options])


def actions_table(actions: list[argparse.Action]) -> str:
    rows = [(code(action_name(action)), plain((action.help or "").replace("%%", "%"))) for action in actions]
    return table(("argument", "meaning"), rows)


def action_name(action: argparse.Action) -> str:
    metavar = action.metavar if isinstance(action.metavar, str) else ""
    choices = "|".join(map(str, action.choices)) if action.choices else ""
    if not action.option_strings:
        name = metavar or choices or action.dest
        return {"?": f"[{name}]", "*": f"[{name} …]", "+": f"{name} …"}.get(str(action.nargs), name)
    value = metavar or choices or action.dest.upper().replace("_", "-")
    return ", ".join(action.option_strings) + (f" {value}" if action.nargs != 0 else "")


def trainer_config() -> str:
    intro = (
        "The document that `mosaic submit` and [`submit_run`](../howto/python-client.md#the-whole-trainer-config) "
        "take; `mosaic run` and `client.run` build it. An unknown key is an error."
    )
    drawing = (config.__doc__ or "").partition("\n\n")[2]
    parts = [part for path, name in SECTIONS.items() for part in section_parts(path, name)]
    metadata = [(code(name), plain(text)) for name, text in {**config.METADATA, **derive.ASKED}.items()]
    return join("# Trainer config", intro, fence(drawing), "## metadata", table(("key", ""), metadata), *parts)


def section_parts(path: str, name: str) -> Iterator[str]:
    node, lines = class_in("mosaic.model.run", name)
    known = config.FIELDS[path]
    fields = [one for one in fields_of(node, lines) if one.name in known]
    yield f"## {path}"
    yield docstring(node)
    rows = [(code(one.name), code(one.kind), code(one.default), plain(one.comment)) for one in fields]
    yield table(("key", "type", "default", ""), rows)


def workers() -> str:
    intro = (
        "For `mosaic run WORKER key=value` and `client.run(WORKER, key=value)`; the worker's schema says where a key "
        "belongs in the config. `mosaic run WORKER --help` prints the settings of the worker that is installed, and "
        "`mosaic run cleanrl algo=dqn --help` those of one algorithm, with its defaults."
    )
    parts = [part for folder in sorted((REPO / "workers").glob("*_worker")) for part in worker_parts(folder)]
    return join("# Settings of the workers", intro, *parts)


def worker_parts(folder: Path) -> Iterator[str]:
    schema = wherever_installed(schema_of(folder))
    rows = [
        (code(name), plain(kind), code(default), plain(text))
        for name, kind, default, text in help_rows(with_common(schema))
    ]
    yield f"## {folder.name.removesuffix('_worker')}"
    yield table(("setting", "type", "default", ""), rows)


def schema_of(folder: Path) -> dict[str, Any]:
    """A worker's own schema. It needs no library: a worker describes itself before its environment is installed."""
    sys.path.insert(0, str(folder))
    try:
        schema: dict[str, Any] = getattr(importlib.import_module(folder.name), "get_worker_schema", dict)()
        return schema
    finally:
        sys.path.remove(str(folder))


def wherever_installed(schema: dict[str, Any]) -> dict[str, Any]:
    """The schema as if every library were installed: unavailable values are listed with the others."""
    schema = copy.deepcopy(schema)
    for _, _, part in parameters(schema):
        if isinstance(part, dict) and UNAVAILABLE_KEY in part:
            part["enum"] = [*part.get("enum", []), *part.pop(UNAVAILABLE_KEY)]
    return schema


def decisions() -> str:
    pages = sorted((REPO / "docs" / "adr").glob("[0-9]*.md"))
    intro = "One page for each decision that is hard to reverse. Pages are never edited, only superseded."
    names = "\n".join(page.stem for page in pages)
    return join("# Decisions", intro, f"```{{toctree}}\n:maxdepth: 1\n\n{names}\n```")
