"""The catalog: which workers exist, and in which environment."""

import difflib
from dataclasses import dataclass
from importlib.metadata import distributions
from pathlib import Path

from mosaic.catalog.environment import Environment, environments_in, own_environment
from mosaic.model.errors import UnknownWorker
from mosaic.model.run import WorkerSpec
from mosaic.model.rundir import StateRoot

GROUP = "mosaic.workers"


@dataclass(frozen=True)
class Worker:
    """Something `mosaic run` can start."""

    name: str  # of its entry point; of its package when it has none
    package: str  # top-level
    module: str  # what `python -m` gets
    version: str
    environment: Environment
    entry_point: str = ""  # "package:function", which gives its descriptor


class Catalog:
    """Knows the platform's own environment and those in `envs/`; asks their files, so nothing of theirs is imported."""

    def __init__(self, root: StateRoot) -> None:
        self._root = root
        self._seen: dict[Environment, tuple[tuple[object, ...], list[Worker]]] = {}

    def environments(self) -> list[Environment]:
        return [*environments_in(self._root.envs), own_environment()]

    def workers(self) -> list[Worker]:
        """All of them, by name."""
        found = [worker for environment in self.environments() for worker in self._workers_of(environment)]
        return sorted(found, key=lambda worker: (worker.name, worker.environment.name))

    def find(self, name: str, variant: str = "") -> Worker:
        """The worker `mosaic run NAME[@VARIANT]` means."""
        found = [worker for worker in self.workers() if worker.name == name and worker.environment.variant == variant]
        if not found:
            raise self._unknown("worker", _spelled(name, variant), name)
        return min(found, key=lambda worker: worker.environment.worker != name)

    def for_module(self, module: str, variant: str = "") -> Worker:
        """The worker behind `metadata.worker.module`: whoever has its top-level package, registered or not."""
        package = module.partition(".")[0]
        candidates = [self._as_worker(environment, module) for environment in self.environments()]
        found = [worker for worker in candidates if worker and worker.environment.variant == variant]
        if not found:
            raise self._unknown("metadata.worker.module", _spelled(package, variant), package)
        # Its own environment before the platform's, and that before one that merely has the package too.
        return min(found, key=lambda worker: (worker.environment.worker != worker.name, not worker.environment.is_own))

    def environment(self, name: str) -> Environment:
        """The environment called `name` in `envs/`; the platform's own when the name is empty."""
        for environment in self.environments():
            if environment.name == name or (not name and environment.is_own):
                return environment
        names = ", ".join(environment.name for environment in self.environments())
        raise UnknownWorker("metadata.worker.variant", f"there is no environment '{name}'. There are: {names}.")

    def environment_for(self, spec: WorkerSpec) -> Environment:
        """Where a run's worker lives. A script names its environment with `variant` (`cleanrl`, `cleanrl@jax`)."""
        return self.for_module(spec.module, spec.variant).environment if spec.module else self.environment(spec.variant)

    def python_for(self, spec: WorkerSpec) -> Path:
        return self.environment_for(spec).python

    def _workers_of(self, environment: Environment) -> list[Worker]:
        stamp = environment.stamp()
        seen = self._seen.get(environment)
        if seen is None or seen[0] != stamp:
            seen = self._seen[environment] = (stamp, _registered(environment))
        return seen[1]

    def _as_worker(self, environment: Environment, module: str) -> Worker | None:
        package = module.partition(".")[0]
        if environment.locate(package) is None:
            return None
        for worker in self._workers_of(environment):
            if worker.package == package:
                return Worker(worker.name, package, module, worker.version, environment, worker.entry_point)
        return Worker(package, package, module, "", environment)

    def _unknown(self, field: str, wanted: str, name: str) -> UnknownWorker:
        workers = self.workers()
        known = sorted({_spelled(worker.name, worker.environment.variant) for worker in workers})
        near = difflib.get_close_matches(name, [*known, *(worker.package for worker in workers)], n=1)
        hint = f" Did you mean '{near[0]}'?" if near else ""
        install = name.removesuffix("_worker") + wanted[len(name) :]
        return UnknownWorker(
            field,
            f"no environment has '{wanted}'.{hint} Installed: {', '.join(known) or 'none'}. "
            f"Install it with: mosaic worker install {install}",
        )


def _registered(environment: Environment) -> list[Worker]:
    """Those that an entry point names."""
    found: dict[str, Worker] = {}
    for distribution in distributions(path=[str(folder) for folder in environment.folders]):
        for point in distribution.entry_points:
            if point.group == GROUP and point.name not in found:
                package = point.module.partition(".")[0]
                found[point.name] = Worker(
                    point.name, package, f"{package}.cli", distribution.version, environment, point.value
                )
    return list(found.values())


def _spelled(name: str, variant: str) -> str:
    return f"{name}@{variant}" if variant else name
