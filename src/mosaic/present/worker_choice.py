"""The workers that a form offers, which modes each has, and whether it accepts what was typed."""

import asyncio
from dataclasses import dataclass
from typing import Any

from mosaic_sdk import keywords

from mosaic.catalog.answers import Answers
from mosaic.catalog.descriptor import Descriptor
from mosaic.catalog.inspector import Inspector
from mosaic.catalog.request import describe_worker, rename_fields
from mosaic.catalog.schema import Schema
from mosaic.catalog.sources import bundled_names
from mosaic.catalog.workers import Catalog
from mosaic.model.errors import BadConfig, MosaicError
from mosaic.model.run import WorkerSpec
from mosaic.model.rundir import StateRoot
from mosaic.present.run_request import EVALUATE, RESUMED, TRAIN, RunRequest

_KEYWORD = {RESUMED: keywords.RESUME, EVALUATE: keywords.EVAL}
_VERB = {RESUMED: "resumed", EVALUATE: "evaluated"}


@dataclass(frozen=True)
class WorkerEntry:
    name: str  # NAME or NAME@VARIANT, as `mosaic run` takes it
    is_installed: bool
    problem: str = ""  # why it cannot run
    is_own: bool = False  # it is part of the platform's own environment


def list_workers(root: StateRoot) -> list[WorkerEntry]:
    """Installed workers first. Reads only files: no worker is started."""
    found = Catalog(root).workers()
    installed = [WorkerEntry(one.spelled, True, one.problem, one.environment.is_own) for one in found]
    known = {one.name for one in found}
    missing = [WorkerEntry(name, False) for name in bundled_names() if name not in known]
    unique = {entry.name: entry for entry in (*reversed(installed),)}  # a worker's own environment comes before ours
    return [*sorted(unique.values(), key=lambda entry: entry.name), *missing]


def first_choice(entries: list[WorkerEntry], remembered: str = "") -> str:
    """The worker to show first: the one used last, else one that was installed on purpose."""
    usable = [entry for entry in entries if entry.is_installed and not entry.problem]
    ranked = sorted(usable, key=lambda entry: (entry.name != remembered, entry.is_own))
    return ranked[0].name if ranked else entries[0].name if entries else ""


def describe(name: str, root: StateRoot) -> Descriptor:
    """A worker's description of itself; one that cannot be asked has a problem. It may take seconds."""
    bare, _, variant = name.partition("@")
    try:
        return describe_worker(bare, variant, root)[1]
    except MosaicError as error:
        return Descriptor(problem=str(error))


def why_not(mode: str, schema: Schema, name: str) -> str:
    """Why the worker does not offer a mode; empty if it does."""
    keyword = _KEYWORD.get(mode, "")
    if not keyword or schema.get(keyword):
        return ""
    return f"{name} does not say how its runs are {_VERB[mode]}: its schema has no {keyword}."


def takes(schema: Schema, option: str) -> bool:
    """Whether an evaluation has this option: episodes, seed, video."""
    way: Any = schema.get(keywords.EVAL)
    return isinstance(way, dict) and f"{{{option}}}" in way.values()


def refusal(request: RunRequest, root: StateRoot) -> tuple[str, str]:
    """The dry run: the field and the sentence with which the daemon would refuse these settings; empty if it would not.

    It asks the worker and reads its files, so it does not belong into the GUI's thread.
    """
    try:
        worker = request.config(root)["metadata"]["worker"]
        if request.mode == TRAIN:
            spec = WorkerSpec(
                module=worker["module"], name=worker["name"], variant=worker.get("variant", ""), config=worker["config"]
            )
            verdict = asyncio.run(Inspector(Catalog(root), Answers(root.answers)).inspect(spec))
            return "", f"Not checked: {verdict.settings.note}." if verdict.settings.note else ""
    except BadConfig as error:
        return error.field or "?", rename_fields(str(error))
    except MosaicError as error:
        return "?", str(error)
    return "", ""
