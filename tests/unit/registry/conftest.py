import pytest

from mosaic.model.run import RunConfig, WorkerSpec
from mosaic.model.ulid import new_ulid
from mosaic.registry.registry import Registry


@pytest.fixture
def registry(tmp_path):
    registry = Registry.open(tmp_path / "registry.db")
    yield registry
    registry.close()


@pytest.fixture
def make_config():
    def make(run_id="", **fields):
        fields = {
            "name": "a run",
            "area": "runs",
            "worker_name": "toy",
            "worker": WorkerSpec(module="toy.cli"),
            **fields,
        }
        return RunConfig(run_id=run_id or new_ulid(), **fields)

    return make


@pytest.fixture
def add(registry, make_config):
    """Adds a run and returns its id."""

    def add(run_id="", **fields):
        record, _ = registry.add(make_config(run_id, **fields))
        return record.run_id

    return add
