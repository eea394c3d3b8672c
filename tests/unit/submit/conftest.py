import os

import pytest

from mosaic.catalog.workers import Catalog
from mosaic.model.machine import Machine
from mosaic.model.rundir import StateRoot
from mosaic.submit.validate import SubmitContext


@pytest.fixture
def root(tmp_path):
    root = StateRoot(tmp_path / "state")
    root.make()
    return root


@pytest.fixture
def make_context(root):
    """A daemon without runs on a machine with the toy worker, two GPUs, four CPUs and 8 GB."""

    def make(**changes):
        fields = {
            "root": root,
            "catalog": Catalog(root),
            "run_exists": lambda run_id: False,
            "tcp_address": "127.0.0.1:50055",
            "gpu_count": 2,
            "machine": Machine(4.0, 8192),
        }
        return SubmitContext(**{**fields, **changes})

    return make


@pytest.fixture
def files_below():
    """Every path below a folder with its modification time, to check that nothing was written."""

    def files(folder):
        return sorted(
            (os.path.join(place, name), os.lstat(os.path.join(place, name)).st_mtime_ns)
            for place, folders, names in os.walk(folder)
            for name in (*folders, *names)
        )

    return files
