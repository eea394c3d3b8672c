"""Lanes with unique names, and processes that end with the test."""

import contextlib
import os
import secrets

import pytest
from lanes import Scripts, segments


@pytest.fixture
def run_id():
    """A unique run; its files in /dev/shm are removed."""
    run_id = f"test-{os.getpid()}-{secrets.token_hex(4)}"
    yield run_id
    for name in segments(run_id):
        with contextlib.suppress(FileNotFoundError):
            os.unlink(f"/dev/shm/{name}")


@pytest.fixture
def scripts(tmp_path):
    scripts = Scripts(tmp_path)
    yield scripts
    scripts.close()
