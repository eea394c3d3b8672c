import pytest
from dispatcher_rig import Rig

from mosaic.catalog import provenance


@pytest.fixture
def make_rig(tmp_path, monkeypatch):
    """Rigs that share one root. Provenance is disabled: it takes seconds and has its own tests."""
    monkeypatch.setattr(provenance, "write", lambda *_: None)
    rigs = []

    def make(**options):
        rigs.append(Rig(tmp_path, **options))
        return rigs[-1]

    yield make
    for rig in rigs:
        rig.close()


@pytest.fixture
def rig(make_rig):
    return make_rig()
