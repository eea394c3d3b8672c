"""Whether a run is observed: what its libraries log becomes telemetry, without a line for MOSAIC in its code."""

from mosaic.catalog.answers import Answers
from mosaic.catalog.descriptor import Descriptor
from mosaic.catalog.schema import ships
from mosaic.catalog.workers import Catalog
from mosaic.model.run import WorkerSpec


def is_observed(spec: WorkerSpec, catalog: Catalog, answers: Answers) -> bool:
    """As the config says; else a script is, and a worker if its metadata says so.

    A script that a worker ships writes its own telemetry, which would be doubled.
    """
    if spec.observe is not None:
        return spec.observe
    if spec.python:
        return True
    known = _descriptors(spec, catalog, answers)
    if spec.script:
        return not any(_ships(descriptor, spec.script) for descriptor in known)
    return any(descriptor.metadata.get("observe") is True for descriptor in known)


def takes_config(spec: WorkerSpec, catalog: Catalog) -> bool:
    """Whether a module gets --config: a worker always does, another module only if there is one."""
    if spec.config or not spec.module:
        return True
    return not spec.python and bool(catalog.for_module(spec.module, spec.variant, spec.name).entry_point)


def _descriptors(spec: WorkerSpec, catalog: Catalog, answers: Answers) -> list[Descriptor]:
    if spec.module:
        workers = [catalog.for_module(spec.module, spec.variant, spec.name)]
    else:
        environment = catalog.environment(spec.variant)
        workers = [worker for worker in catalog.workers() if worker.environment == environment]
    found = (answers.remembered(worker) for worker in workers if worker.entry_point)
    return [descriptor for descriptor in found if descriptor]


def _ships(descriptor: Descriptor, script: str) -> bool:
    try:
        return ships(descriptor.schema, script)
    except (TypeError, ValueError, AttributeError, KeyError):  # an invalid schema
        return False
