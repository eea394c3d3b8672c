"""The workers of this machine as JSON: installed, broken and shadowed ones, with the remedy."""

from pathlib import Path
from typing import Any

from mosaic.catalog.answers import Answers
from mosaic.catalog.environment import OWN, Environment
from mosaic.catalog.installed import read_installed
from mosaic.catalog.workers import Catalog, Worker, remedy
from mosaic.model.rundir import StateRoot


def listing(root: StateRoot, catalog: Catalog) -> list[dict[str, Any]]:
    """All workers with their problems, then the environments in `envs/` that contain no worker."""
    workers = catalog.workers()
    sound = [worker for worker in workers if not worker.problem]
    descriptors = Answers(root.answers).of_all(sound)
    problems = dict(zip(sound, (descriptor.problem for descriptor in descriptors), strict=True))
    listed = [{**to_dict(worker), "problem": worker.problem or problems[worker]} for worker in workers]
    broken = [{**_without_worker(root.envs / each.name), "problem": each.problem} for each in catalog.broken()]
    own = {each["name"] for each in listed if each["environment"] == each["name"]}
    return [
        {**each, "remedy": _remedy(each, root), "is_shadowed": _is_shadowed(each, own)} for each in (*listed, *broken)
    ]


def _is_shadowed(listed: dict[str, Any], own: set[str]) -> bool:
    """Whether `mosaic run NAME` uses another environment: a worker's own one takes precedence."""
    return listed["name"] in own and listed["environment"] != listed["name"]


def _remedy(listed: dict[str, Any], root: StateRoot) -> str:
    if not listed["problem"] or listed["environment"] == OWN:
        return ""
    return remedy(listed["name"], listed["problem"], root.envs)


def to_dict(worker: Worker) -> dict[str, Any]:
    folder = worker.environment.python.parent.parent
    made = None if worker.environment.is_own else read_installed(folder)
    return {
        "name": worker.spelled,
        "variant": worker.environment.variant,
        "module": worker.module,
        "version": worker.version,
        "environment": worker.environment.name,
        "python": str(worker.environment.python),
        "python_version": made.python if made else _version_from(folder),
        "sdk_version": made.sdk if made else "",
        "source": made.source if made else "",
        "locked": bool(made and made.locked),
        "size_bytes": made.size_bytes if made else None,
    }


def _without_worker(folder: Path) -> dict[str, Any]:
    """An environment without a worker, described by the record of its install."""
    made = read_installed(folder)
    environment = Environment(folder.name, folder / "bin" / "python")
    return to_dict(Worker(environment.worker, "", "", made.version if made else "", environment))


def _version_from(folder: Path) -> str:
    """The Python version from pyvenv.cfg, for environments that MOSAIC did not create."""
    try:
        lines = (folder / "pyvenv.cfg").read_text().splitlines()
    except OSError:
        return ""
    pairs = dict(line.replace(" ", "").partition("=")[::2] for line in lines)
    return pairs.get("version") or pairs.get("version_info") or ""
