"""The rows of the workers page: every installed, broken and available worker, with what it can do."""

import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mosaic_sdk import keywords

from mosaic.catalog.answers import Answers
from mosaic.catalog.environment import OWN
from mosaic.catalog.schema import unavailable
from mosaic.catalog.sources import Source, bundled_names, bundled_worker
from mosaic.catalog.workers import Catalog
from mosaic.model.rundir import StateRoot
from mosaic.present.text import size
from mosaic.present.worker_list import listing

INSTALLED, BROKEN, AVAILABLE = "installed", "broken", "available"
_MODES = {keywords.RESUME: "resume", keywords.EVAL: "evaluate", keywords.INTERACTIVE: "play as an operator"}
_SHOWN = ("supported_paradigms", "env_families", "action_spaces", "observation_spaces", "max_agents")


@dataclass(frozen=True)
class WorkerRow:
    name: str  # NAME or NAME@VARIANT
    status: str  # INSTALLED, BROKEN, AVAILABLE
    description: str = ""
    problem: str = ""
    remedy: str = ""
    version: str = ""
    python: str = ""
    size_bytes: int | None = None
    environment: str = ""  # the folder in envs/; empty for an available one
    is_own: bool = False  # it is part of MOSAIC itself and cannot be removed
    is_shadowed: bool = False  # `mosaic run` uses another environment of this name
    has_torch: bool = False  # the build of torch can be chosen
    facts: tuple[tuple[str, str], ...] = ()

    @property
    def size(self) -> str:
        return "" if self.size_bytes is None else size(self.size_bytes)

    @property
    def can_run(self) -> bool:
        return self.status == INSTALLED and not self.is_shadowed


def worker_rows(root: StateRoot) -> list[WorkerRow]:
    """All workers, by name. It reads files and may ask workers, which takes seconds the first time."""
    catalog = Catalog(root)
    listed = listing(root, catalog)
    answers = Answers(root.answers)
    found = {(worker.spelled, worker.environment.name): worker for worker in catalog.workers()}
    here = []
    for each in listed:
        worker = found.get((each["name"], each["environment"]))
        answer = answers.remembered(worker) if worker and not each["problem"] else None
        here.append(_installed(each, answer.metadata, answer.capabilities, answer.schema) if answer else _broken(each))
    return [*here, *_available({row.name for row in here})]


def _installed(each: dict[str, Any], metadata: Any, capabilities: dict[str, Any], schema: dict[str, Any]) -> WorkerRow:
    return WorkerRow(
        description=str(metadata.get("description") or ""),
        has_torch=_needs_torch(each["name"].partition("@")[0]),
        facts=(*_abilities(capabilities, schema), *_place(each)),
        **_common(each, INSTALLED),
    )


def _broken(each: dict[str, Any]) -> WorkerRow:
    problem = each["problem"] or "it has not answered yet"
    row = _common(each, BROKEN) | {"problem": problem}
    return WorkerRow(facts=_place(each), has_torch=_needs_torch(each["name"].partition("@")[0]), **row)


def _common(each: dict[str, Any], status: str) -> dict[str, Any]:
    keys = ("name", "problem", "remedy", "version", "size_bytes", "is_shadowed")
    is_own = each["environment"] == OWN
    own = {"python": each["python_version"], "environment": each["environment"], "is_own": is_own, "status": status}
    return {key: each[key] for key in keys} | own


def _abilities(capabilities: dict[str, Any], schema: dict[str, Any]) -> tuple[tuple[str, str], ...]:
    modes = ["train", *(words for keyword, words in _MODES.items() if schema.get(keyword))]
    facts = [("Modes", ", ".join(modes)), ("GPU", _gpu(capabilities))]
    facts += [(key.replace("_", " ").capitalize(), _plain(capabilities.get(key))) for key in _SHOWN]
    missing = [f"{key}={value}: {why}" for key, values in unavailable(schema).items() for value, why in values.items()]
    facts.append(("Not available here", "\n".join(missing)))
    return tuple((name, text) for name, text in facts if text)


def _gpu(capabilities: dict[str, Any]) -> str:
    if not capabilities.get("requires_gpu"):
        return "not required"
    memory = capabilities.get("gpu_memory_mb")
    return f"required, {memory:,} MB" if isinstance(memory, int) else "required"


def _place(each: dict[str, Any]) -> tuple[tuple[str, str], ...]:
    where = "part of MOSAIC" if each["environment"] == OWN else each["source"]
    lock = "" if not each["source"] else " (locked versions)" if each["locked"] else " (versions not locked)"
    facts = (("Source", f"{where}{lock}"), ("Interpreter", each["python"]), ("mosaic-sdk", each["sdk_version"]))
    return tuple((name, text) for name, text in facts if text)


def _plain(value: object) -> str:
    return ", ".join(map(str, value)) if isinstance(value, list | tuple) else "" if value is None else str(value)


def _available(known: set[str]) -> list[WorkerRow]:
    """What comes with MOSAIC and is not installed: workers, and the variants of any worker."""
    rows = []
    for name in bundled_names():
        folder = bundled_worker(name)
        if folder is None:
            continue
        variants = Source(name, folder=folder).variants()
        spellings = [name, *(f"{name}@{variant}" for variant in variants)]
        rows += [_offer(spelling, folder) for spelling in spellings if spelling not in known]
    return rows


def _offer(name: str, folder: Path) -> WorkerRow:
    project = _project(folder)
    about = str(project.get("description") or "")
    version = str(project.get("version") or "")
    return WorkerRow(name, AVAILABLE, about, version=version, has_torch=_needs_torch(name.partition("@")[0]))


def _project(folder: Path) -> dict[str, Any]:
    try:
        project = tomllib.loads((folder / "pyproject.toml").read_text()).get("project", {})
    except (OSError, ValueError):
        return {}
    return project if isinstance(project, dict) else {}


def _needs_torch(name: str) -> bool:
    folder = bundled_worker(name)
    locks = sorted((folder / "requirements").glob("*.txt")) if folder else []
    return any(line.startswith("torch==") for lock in locks for line in lock.read_text().splitlines())
