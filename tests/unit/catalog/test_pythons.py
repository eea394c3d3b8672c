import os
import sys
from pathlib import Path

import pytest

from mosaic.catalog.progress import Progress
from mosaic.catalog.pythons import find_python, version_of
from mosaic.catalog.uv import InstallFailed, Uv, find_uv, uv_environment


@pytest.fixture
def uv():
    return Uv(find_uv(), Progress())


def test_a_python_is_mosaics_own_a_version_or_a_path(uv, tmp_path, monkeypatch):
    monkeypatch.chdir(Path(sys.executable).parent)
    own = version_of(Path(sys.executable))

    assert find_python("", uv) == sys.executable
    assert version_of(Path(find_python(sys.executable, uv))) == own
    assert version_of(Path(find_python(f"./{Path(sys.executable).name}", uv))) == own


@pytest.mark.parametrize("asked", ["3.99", "/bin/sh"])
def test_a_missing_python_is_named_with_those_that_are_installed(uv, asked):
    with pytest.raises(InstallFailed, match=rf"Python '{asked}' is not installed here\. (Installed: 3\.|Install one)"):
        find_python(asked, uv)


def test_a_python_older_than_the_sdk_is_refused(tmp_path):
    old = tmp_path / "python3.8"
    old.write_text("#!/bin/sh\necho 3.8.18\n")
    old.chmod(0o755)

    class Finds(Uv):
        def answer(self, *arguments):
            return str(old) if "find" in arguments else "[]"

    with pytest.raises(InstallFailed, match=r"Python 3\.8\.18 is too old for a worker"):
        find_python("3.8", Finds(find_uv(), print))


def test_pythons_of_pyenv_are_found_although_only_one_is_active(tmp_path):
    (tmp_path / ".pyenv/versions/3.12.1/bin").mkdir(parents=True)

    env = uv_environment({"HOME": str(tmp_path), "PATH": f"{tmp_path}/.pyenv/shims:/usr/bin"})

    assert env["PATH"] == f"/usr/bin{os.pathsep}{tmp_path}/.pyenv/versions/3.12.1/bin"


def test_a_pyenv_folder_that_cannot_be_read_is_ignored(tmp_path):
    hidden = tmp_path / "hidden"
    (hidden / ".pyenv").mkdir(parents=True)
    hidden.chmod(0)
    try:
        env = uv_environment({"PYENV_ROOT": str(hidden / ".pyenv"), "PATH": "/usr/bin"})
    finally:
        hidden.chmod(0o700)

    assert env["PATH"] == "/usr/bin"
