import pytest
from dispatcher_rig import Rig

from mosaic.catalog import provenance


@pytest.fixture
def make_rig(tmp_path, monkeypatch):
    """Rigs of one root. Provenance asks git and lists packages, which takes seconds and has tests of its own."""
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
