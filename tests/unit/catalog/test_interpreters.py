import sys
import venv
from pathlib import Path

import pytest

from mosaic.catalog import interpreters
from mosaic.catalog.interpreters import Wanted, choose_interpreter, version_of_python
from mosaic.model.errors import MosaicError

SYSTEM = {"PATH": "/usr/bin:/bin"}


@pytest.fixture
def make_venv():
    def make(folder):
        venv.create(folder, symlinks=True, with_pip=False)
        return folder / "bin" / "python"

    return make


def write_program(folder, name, text):
    folder.mkdir(exist_ok=True)
    path = folder / name
    path.write_text(text)
    path.chmod(0o755)
    return path


def test_the_environment_of_the_project_comes_before_the_active_one(make_venv, tmp_path, root):
    project = make_venv(tmp_path / "project/.venv")
    active = make_venv(tmp_path / "active")
    (tmp_path / "project/scripts").mkdir()

    found = choose_interpreter(
        Wanted(), tmp_path / "project/scripts", {**SYSTEM, "VIRTUAL_ENV": str(active.parents[1])}, root
    )

    assert found.python == project
    assert found.version[:2] == sys.version_info[:2]
    assert f"--python {active.parents[1]}" in found.note


def test_the_search_for_a_project_ends_at_its_repository(make_venv, tmp_path, root):
    make_venv(tmp_path / ".venv")
    (tmp_path / "repo/.git").mkdir(parents=True)

    with pytest.raises(MosaicError, match=r"there is no \.venv in .*repo or above it, and none is active"):
        choose_interpreter(Wanted(), tmp_path / "repo", SYSTEM, root)


def test_the_active_environment_is_used_if_there_is_no_project(make_venv, tmp_path, root):
    python = make_venv(tmp_path / "active")
    (tmp_path / "repo/.git").mkdir(parents=True)

    for variable in ("VIRTUAL_ENV", "CONDA_PREFIX"):
        found = choose_interpreter(Wanted(), tmp_path / "repo", {**SYSTEM, variable: str(tmp_path / "active")}, root)
        assert (found.python, found.why, found.note) == (python, "the active environment", "")


def test_mosaics_own_environment_is_not_chosen_for_its_place_but_if_it_is_active(tmp_path, root, monkeypatch):
    (tmp_path / "repo/.git").mkdir(parents=True)
    venv.create(tmp_path / "repo/.venv", symlinks=True, with_pip=False)
    monkeypatch.setattr(interpreters.sys, "prefix", str(tmp_path / "repo/.venv"))

    with pytest.raises(MosaicError, match="No Python environment was found"):
        choose_interpreter(Wanted(), tmp_path / "repo", SYSTEM, root)
    active = choose_interpreter(
        Wanted(), tmp_path / "repo", {**SYSTEM, "VIRTUAL_ENV": str(tmp_path / "repo/.venv")}, root
    )
    assert active.why == "MOSAIC's own environment, which is active"


def test_an_environment_that_belongs_to_another_user_is_not_trusted(make_venv, tmp_path, root, monkeypatch):
    make_venv(tmp_path / ".venv")
    (tmp_path / ".git").mkdir()
    monkeypatch.setattr(interpreters.os, "geteuid", lambda: 54321)

    if (tmp_path / ".venv").stat().st_uid == 0:
        pytest.skip("the tests run as root, whom everyone trusts")
    with pytest.raises(MosaicError, match="No Python environment"):
        choose_interpreter(Wanted(), tmp_path, SYSTEM, root)


def test_nothing_found_names_every_choice(tmp_path, root):
    (tmp_path / ".git").mkdir()
    (tmp_path / "pyproject.toml").touch()
    (tmp_path / "uv.lock").touch()

    with pytest.raises(MosaicError) as failure:
        choose_interpreter(Wanted(), tmp_path, SYSTEM, root)

    text = str(failure.value)
    assert f"the project {tmp_path} has no .venv" in text
    assert all(words in text for words in ("uv sync", "--python PATH", "--env-of WORKER (toy)", "mosaic env create"))


def test_an_interpreter_is_named_by_path_folder_or_name(make_venv, tmp_path, root):
    python = make_venv(tmp_path / "mine")

    for asked in (str(python), str(tmp_path / "mine")):
        assert choose_interpreter(Wanted(python=asked), tmp_path, SYSTEM, root).python == python
    assert choose_interpreter(Wanted(python="python3"), tmp_path, SYSTEM, root).python == Path("/usr/bin/python3")
    assert choose_interpreter(Wanted(env_of="toy"), tmp_path, SYSTEM, root).python == Path(sys.executable)


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        ("/nowhere/python", "There is no Python at /nowhere/python"),
        ("/etc", "The folder /etc is not a Python environment: it has no bin/python"),
        ("/etc/passwd", "/etc/passwd does not start: "),
        ("3.99", "There is no python3.99 on the PATH"),
        ("/bin/true", "/bin/true is not a working Python interpreter"),
    ],
)
def test_what_is_not_a_python_is_refused(asked, expected, tmp_path, root):
    with pytest.raises(MosaicError, match=expected):
        choose_interpreter(Wanted(python=asked), tmp_path, SYSTEM, root)


def test_an_old_python_is_refused_and_an_older_one_is_not_observed(tmp_path, root):
    two = write_program(tmp_path, "python2", "#!/bin/sh\nprintf 2.7.18\n")
    eight = write_program(tmp_path, "python3.8", "#!/bin/sh\nprintf 3.8.18\n")

    with pytest.raises(MosaicError, match=r"python2 is Python 2\.7\.18, which is too old; 3\.6 is the oldest"):
        version_of_python(two)
    assert not choose_interpreter(Wanted(python=str(eight)), tmp_path, SYSTEM, root).can_be_observed
