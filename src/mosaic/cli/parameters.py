"""A worker's parameters on the command line: where each goes, and its help. Read from the worker's schema."""

import sys
from typing import Any

from mosaic.catalog.answers import Answers
from mosaic.catalog.descriptor import Descriptor
from mosaic.catalog.schema import help_rows, put_in_place, variant_for
from mosaic.catalog.workers import Catalog, Worker
from mosaic.cli.table import render_table
from mosaic.model.rundir import StateRoot


def place_settings(name: str, variant: str, settings: dict[str, Any]) -> tuple[str, str, dict[str, Any]]:
    """The module, the variant and the config that `mosaic run NAME[@VARIANT] key=value …` means."""
    root = StateRoot.from_environment()
    catalog = Catalog(root)
    worker = catalog.find(name, variant)
    told = Answers(root.answers).of(worker)
    if told.problem:
        print(
            f"mosaic: {name} does not tell its settings, so they go to it unchecked ({told.problem})", file=sys.stderr
        )
    schema = told.schema
    placed = put_in_place(settings, schema)
    chosen = variant or variant_for(placed, schema)
    if chosen != variant:
        worker = catalog.find(name, chosen)
    return worker.module, chosen, placed


def environment_of(name: str) -> str:
    """The environment of a worker, as a script's config names it; empty is the platform's own."""
    if not name:
        return ""
    worker, _, variant = name.partition("@")
    environment = Catalog(StateRoot.from_environment()).find(worker, variant).environment
    return "" if environment.is_own else environment.name


def describe_settings(name: str) -> str:
    """What `mosaic run NAME --help` prints."""
    root = StateRoot.from_environment()
    worker_name, _, variant = name.partition("@")
    worker = Catalog(root).find(worker_name, variant)
    told = Answers(root.answers).of(worker)
    return f"usage: mosaic run {name} [key=value …] [options; see: mosaic run --help]\n\n{_body(worker, told)}"


def _body(worker: Worker, told: Descriptor) -> str:
    about = str(told.metadata.get("description") or "")
    if told.problem:
        return f"The worker does not describe itself: {told.problem}"
    if not told.schema:
        return (
            f"{about}\n\nIt publishes no schema of its settings; they go to {worker.module} as you write them.".strip()
        )
    rows = [_quiet(row) for row in help_rows(told.schema)]
    return f"{about}\n\n{render_table(('KEY', 'VALUE', 'DEFAULT', 'WHAT IT DOES'), rows)}".strip()


def _quiet(row: tuple[str, str, str, str]) -> tuple[str, str, str, str]:
    """Long choices are cut: `mosaic worker describe --json` has all of them."""
    key, kind, default, words = row
    return key, kind if len(kind) <= 40 else f"{kind[:39]}…", default, words
