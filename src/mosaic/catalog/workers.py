"""The catalog: which workers exist, and in which environment."""

from dataclasses import dataclass, replace
from importlib.metadata import EntryPoint, distributions
from pathlib import Path

from mosaic_sdk import __version__

from mosaic.catalog.environment import Environment, broken_in, environment_at, environments_in, own_environment
from mosaic.model.errors import UnknownWorker
from mosaic.model.names import VALID, is_worker_name
from mosaic.model.run import WorkerSpec
from mosaic.model.rundir import StateRoot

GROUP = "mosaic.workers"  # of entry points
TWO_PACKAGES = "two packages"


@dataclass(frozen=True)
class Worker:
    """Something `mosaic run` can start."""

    name: str  # of its entry point; of its package when it has none
    package: str  # top-level
    module: str  # what `python -m` gets
    version: str
    environment: Environment
    entry_point: str = ""  # "package:function", which gives its descriptor
    problem: str = ""  # why it cannot run, as far as its files show

    @property
    def spelled(self) -> str:
        """The name for `mosaic run`: NAME or NAME@VARIANT."""
        return spelled(self.name, self.environment.variant)

    @property
    def names(self) -> tuple[str, ...]:
        """What `metadata.worker.name` may call it."""
        return self.name, self.environment.worker or self.environment.name, self.package


@dataclass(frozen=True)
class Broken:
    """A folder in `envs/` that cannot be used, and why."""

    name: str
    problem: str


class Catalog:
    """Knows the platform's own environment and those in `envs/`. Reads only their files and imports nothing."""

    def __init__(self, root: StateRoot) -> None:
        self._root = root
        self._seen: dict[Environment, tuple[tuple[object, ...], list[Worker]]] = {}

    def environments(self) -> list[Environment]:
        return [*environments_in(self._root.envs), own_environment()]

    def workers(self) -> list[Worker]:
        """All workers, sorted by name."""
        found = [worker for environment in self.environments() for worker in self._workers_of(environment)]
        return sorted(found, key=lambda worker: (worker.name, worker.environment.name))

    def broken(self) -> list[Broken]:
        """The folders in `envs/` that are not an environment with a worker."""
        found = [Broken(folder.name, problem) for folder, problem in broken_in(self._root.envs)]
        known = {broken.name for broken in found}
        whole = [env for env in environments_in(self._root.envs) if env.name not in known]
        empty = [env.name for env in whole if not self._workers_of(env)]
        return [*found, *(Broken(name, f"no package in it registers a worker ({GROUP})") for name in empty)]

    def find(self, name: str, variant: str = "") -> Worker:
        """The worker for `mosaic run NAME[@VARIANT]`."""
        found = [worker for worker in self.workers() if worker.name == name and worker.environment.variant == variant]
        if not found:
            raise self._unknown("", spelled(name, variant), name)
        return _usable("", _choose("", spelled(name, variant), found))

    def for_module(self, module: str, variant: str = "", name: str = "") -> Worker:
        """The worker for `metadata.worker.module`, registered or not: found by its top-level package.

        `name`, of a worker or of an environment, selects one if several have the package.
        """
        package = module.partition(".")[0]
        candidates = [self._as_worker(environment, module, name) for environment in self.environments()]
        found = [worker for worker in candidates if worker and worker.environment.variant == variant]
        if not found:
            raise self._unknown("metadata.worker.module", spelled(package, variant), package)
        called = [worker for worker in found if not name or name in worker.names]
        if not called:
            raise UnknownWorker("metadata.worker.name", f"no '{name}' has {package}. These have it: {_listed(found)}.")
        return _usable("metadata.worker.module", _choose("metadata.worker.module", spelled(package, variant), called))

    def environment(self, name: str) -> Environment:
        """The environment called `name` in `envs/`; the platform's own when the name is empty."""
        for environment in self.environments():
            if environment.name == name or (not name and environment.is_own):
                return environment
        names = ", ".join(environment.name for environment in self.environments())
        raise UnknownWorker("metadata.worker.variant", f"there is no environment '{name}'. Installed: {names}.")

    def environment_for(self, spec: WorkerSpec) -> Environment:
        """The environment of a run's worker. A script names it with `variant` (`cleanrl`, `cleanrl@jax`)."""
        if spec.python:
            return environment_at(Path(spec.python))
        if not spec.module:
            return self.environment(spec.variant)
        return self.for_module(spec.module, spec.variant, spec.name).environment

    def python_for(self, spec: WorkerSpec) -> Path:
        return self.environment_for(spec).python

    def _workers_of(self, environment: Environment) -> list[Worker]:
        stamp = environment.stamp()
        seen = self._seen.get(environment)
        if seen is None or seen[0] != stamp:
            seen = self._seen[environment] = (stamp, registered(environment))
        return seen[1]

    def _as_worker(self, environment: Environment, module: str, name: str) -> Worker | None:
        package = module.partition(".")[0]
        if environment.locate(package) is None:
            return None
        workers = [worker for worker in self._workers_of(environment) if worker.package == package]
        # One package may register two workers.
        for worker in sorted(workers, key=lambda worker: worker.name != name):
            return replace(worker, module=module)
        return Worker(package, package, module, "", environment)

    def _unknown(self, field: str, requested: str, name: str) -> UnknownWorker:
        from mosaic.catalog.advice import how_to_get  # imported here: it imports this module

        known = sorted({worker.spelled for worker in self.workers()})
        packages = sorted({worker.package for worker in self.workers()}) if field else []
        bare, variant = name.removesuffix("_worker"), requested[len(name) + 1 :]
        for broken in self.broken():
            if broken.name == spelled(bare, variant):
                return _unusable(field, broken.name, broken.problem, self._root.envs)
        lack = f"no environment has '{requested}'" if field else f"Worker '{requested}' is not installed"
        return UnknownWorker(field, f"{lack}. {how_to_get(name, variant, known, packages, self._root.envs)}")


def registered(environment: Environment) -> list[Worker]:
    """The workers that entry points register."""
    path = [str(folder) for folder in environment.folders]
    found: dict[str, Worker] = {}
    owners: dict[str, str] = {}
    for distribution in distributions(path=path):
        # Only for workers: reading the name parses the whole metadata file.
        points = [point for point in distribution.entry_points if point.group == GROUP]
        package = distribution.metadata["Name"] if points else ""
        for point in points:
            owner = owners.setdefault(point.name, package)
            worker = found.setdefault(point.name, _worker(point, distribution.version, environment))
            # The same package again was found through a second folder on the path.
            if owner != package:
                problem = f"{TWO_PACKAGES}, {owner} and {package}, both claim this name"
                found[point.name] = replace(worker, problem=problem)
    problem = _sdk_problem(next((sdk.version for sdk in distributions(name="mosaic-sdk", path=path)), ""))
    return [replace(worker, problem=worker.problem or _bad_name(worker) or problem) for worker in found.values()]


def spelled(name: str, variant: str) -> str:
    return f"{name}@{variant}" if variant else name


def _worker(point: EntryPoint, version: str, environment: Environment) -> Worker:
    package = point.module.partition(".")[0]
    return Worker(point.name, package, _program(package, environment), version, environment, point.value)


def _program(package: str, environment: Environment) -> str:
    """The module that starts it: `package.cli`, or the package itself if only that is a program."""
    place = environment.locate(package)
    if place is None or (place / "cli.py").exists() or (place / "cli").exists():
        return f"{package}.cli"
    return package if place.is_file() or (place / "__main__.py").exists() else f"{package}.cli"


def _bad_name(worker: Worker) -> str:
    return "" if is_worker_name(worker.name) else f"its entry point {worker.name!r} is not a valid name. {VALID}"[:-1]


def _sdk_problem(sdk: str) -> str:
    """Why the environment's SDK cannot be used; empty if it is compatible with ours or records no version."""
    if not sdk or sdk.split(".")[:2] == __version__.split(".")[:2]:
        return ""
    return f"its mosaic-sdk is {sdk}, but this MOSAIC needs {__version__}"


def _choose(field: str, requested: str, found: list[Worker]) -> Worker:
    """Prefer the worker's own environment, then the platform's, then any other that has it; a tie is refused."""
    ranks = [0 if worker.environment.worker == worker.name else 2 - worker.environment.is_own for worker in found]
    best = [worker for worker, rank in zip(found, ranks, strict=True) if rank == min(ranks)]
    if len(best) == 1:
        return best[0]
    named = [worker.spelled for worker in best if worker.environment.worker == worker.name]
    hint = "metadata.worker.name" + "".join(f", or: mosaic run {name}" for name in named)
    several = "several" if field else "Several"
    raise UnknownWorker(
        field, f"{several} environments have '{requested}': {_listed(best)}. Name one of them with {hint}."
    )


def _listed(workers: list[Worker]) -> str:
    return ", ".join(sorted(worker.environment.name.partition("@")[0] for worker in workers))


def _usable(field: str, worker: Worker) -> Worker:
    if worker.problem:
        raise _unusable(field, worker.spelled, worker.problem, worker.environment.python.parents[2])
    return worker


def _unusable(field: str, name: str, problem: str, envs: Path) -> UnknownWorker:
    who = f"worker '{name}'" if field else f"Worker '{name}'"
    return UnknownWorker(field, f"{who} cannot run: {problem}. {remedy(name, problem, envs)}")


def remedy(name: str, problem: str, envs: Path) -> str:
    """What to do about a broken environment."""
    from mosaic.catalog.advice import how_to_get_again

    if problem.startswith(TWO_PACKAGES):
        return f"Remove one of them, or both with: mosaic worker remove {name}"
    return how_to_get_again(name, envs)
