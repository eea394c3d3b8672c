import pytest
from ingest_batches import RUN, Spool

from mosaic.ingest.store import RunStore


@pytest.fixture
def spool():
    return Spool()


@pytest.fixture
def path(tmp_path):
    return tmp_path / "telemetry.sqlite"


@pytest.fixture
def store(path):
    store = RunStore(path, RUN)
    yield store
    store.close()
