"""`mosaic worker list` and `mosaic worker describe`. Other actions on workers are in modules named worker_*."""

import argparse
import json
from typing import TYPE_CHECKING, Any

from mosaic.cli import worker_authoring, worker_install
from mosaic.cli.connection import refuse_host
from mosaic.cli.table import render_table
from mosaic.cli.terminal_text import paint
from mosaic.cli.verb import add_json, add_verb
from mosaic.model.errors import MosaicError
from mosaic.model.rundir import StateRoot
from mosaic.present.text import size
from mosaic.present.worker_list import listing, to_dict

if TYPE_CHECKING:
    from mosaic.cli.verb import Verbs

EXAMPLES = """
mosaic worker list
mosaic worker install ./my_worker
mosaic worker describe toy
mosaic worker new acme
mosaic worker test toy
"""


def add_verbs(verbs: "Verbs") -> None:
    parser = add_verb(verbs, "worker", list_workers, "list, install, test and create workers", EXAMPLES)
    actions = parser.add_subparsers(metavar="ACTION", title="actions", required=True)
    add_json(add_verb(actions, "list", list_workers, "list the installed workers", "mosaic worker list"))
    parser = add_verb(
        actions, "describe", describe_worker, "show the capabilities of a worker", "mosaic worker describe toy"
    )
    parser.add_argument("name", metavar="NAME[@VARIANT]", help="a worker that `mosaic worker list` shows")
    add_json(parser)
    worker_install.add_verbs(actions)
    worker_authoring.add_verbs(actions)


def list_workers(args: argparse.Namespace) -> int:
    from mosaic.catalog.workers import Catalog

    refuse_host(args, "worker list")
    root = StateRoot.from_environment()
    listed = listing(root, Catalog(root))
    if args.json:
        print(json.dumps(listed, indent=1))
        return 0
    headings = ("WORKER", "VERSION", "PYTHON", "SIZE", "ENVIRONMENT", "MODULE")
    more = _not_installed({worker["name"] for worker in listed})
    rows = [*map(_row, listed), *((name, "", "", "", "not installed", "") for name in more)]
    print(render_table(headings, rows) if rows else "No worker is installed.")
    for worker in listed:
        if worker["problem"]:
            print(paint(f"{worker['name']} is broken: {worker['problem']}.", "red"), worker["remedy"])
    if more:
        print(paint("Install what is included in MOSAIC with: mosaic worker install NAME …", "dim"))
    return 0


def _not_installed(known: set[str]) -> list[str]:
    """The workers that are included in MOSAIC and could be installed."""
    from mosaic.catalog.sources import bundled_names

    return [name for name in bundled_names() if name not in known]


def describe_worker(args: argparse.Namespace) -> int:
    from mosaic.catalog.answers import Answers
    from mosaic.catalog.workers import Catalog

    refuse_host(args, "worker describe")
    root = StateRoot.from_environment()
    name, _, variant = args.name.partition("@")
    worker = Catalog(root).find(name, variant)
    descriptor = Answers(root.answers).of(worker)
    if descriptor.problem:
        # The problem may have been temporary, such as a busy machine.
        descriptor = Answers(root.answers).ask(worker)
    if descriptor.problem:
        raise MosaicError(f"Worker '{args.name}' could not be asked for its capabilities: {descriptor.problem}")
    answers = {"metadata": descriptor.metadata, "capabilities": descriptor.capabilities, "schema": descriptor.schema}
    whole = {**to_dict(worker), **answers}
    print(json.dumps(whole, indent=1) if args.json else _sections(whole))
    return 0


def _row(worker: dict[str, Any]) -> tuple[str, ...]:
    from mosaic.catalog.environment import OWN

    mark = " ✗" if worker["problem"] else ""
    used = "" if worker["size_bytes"] is None else size(worker["size_bytes"])
    # In JSON it is called .venv, as in a checkout, whatever its folder is called.
    environment = "MOSAIC's own" if worker["environment"] == OWN else worker["environment"]
    environment += " (not used)" if worker["is_shadowed"] else ""
    rest = (worker["version"], worker["python_version"], used, environment, worker["module"])
    return (worker["name"] + mark, *rest)


def _sections(whole: dict[str, Any]) -> str:
    """The most important facts; `--json` prints everything."""
    from mosaic.cli.worker_settings import describe_unavailable

    metadata, name = dict(whole["metadata"]), whole["name"]
    about = str(metadata.pop("description", ""))
    head = f"{paint(name, 'bold')} {whole['version']}".strip() + (f"  {about}" if about else "")
    for key in ("name", "version"):  # in the headline already
        metadata.pop(key, None)
    settings = f"mosaic run {name} --help" if whole["schema"] else "no schema published; passed to the worker unchecked"
    sections = (
        _place(whole),
        metadata,
        whole["capabilities"],
        {"settings": settings, "conformance": f"mosaic worker test {name}", "operator": _as_operator(whole)},
    )
    texts = [
        *map(_facts, sections),
        "\n".join(f"unavailable: {line}" for line in describe_unavailable(whole["schema"])),
    ]
    return "\n\n".join([head, *(text for text in texts if text)])


def _as_operator(whole: dict[str, Any]) -> str:
    from mosaic.catalog.interactive import Interactive

    if Interactive.of(whole["schema"]) is None:
        return "no: it has no interactive mode"
    return f"yes: mosaic eval --operator rl:RUN, or --operator worker:{whole['name']}"


def _place(whole: dict[str, Any]) -> dict[str, Any]:
    made = f"{whole['source']} ({'locked' if whole['locked'] else 'not locked'})" if whole["source"] else ""
    return {
        "command": f"python -m {whole['module']}",
        "python": f"{whole['python_version']}, {whole['python']}".removeprefix(", "),
        "source": made,
        "mosaic-sdk": whole["sdk_version"],
        "size": size(whole["size_bytes"]) if whole["size_bytes"] else "",
    }


def _facts(facts: dict[str, Any]) -> str:
    """One fact per line; empty, unknown and false values are left out."""
    lines = {name.replace("_", " "): _plain(value) for name, value in facts.items()}
    return "\n".join(f"{paint(f'{name:<24}', 'dim')} {value}" for name, value in lines.items() if value)


def _plain(value: object) -> str:
    if value is None or value is False:
        return ""
    if value is True:
        return "yes"
    return ", ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)
