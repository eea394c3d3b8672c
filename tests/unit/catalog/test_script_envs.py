"""Environments for scripts: created completely or not at all, apart from those of workers."""

import subprocess

import pytest
from tiny_wheel import write_wheel

from mosaic.catalog.environment import environments_in
from mosaic.catalog.progress import Progress
from mosaic.catalog.script_envs import (
    EnvRequest,
    create,
    environment_python,
    find_environment,
    remove,
    script_environments,
)
from mosaic.catalog.uv import InstallFailed
from mosaic.catalog.workers import Catalog
from mosaic.model.errors import MosaicError


@pytest.fixture
def wheel(tmp_path):
    return str(write_wheel(tmp_path / "wheels", "tinylib", "1.0", {"tinylib.py": "ANSWER = 42\n"}))


def test_an_environment_has_what_was_asked_for_and_nothing_of_mosaic(root, wheel, tmp_path):
    (tmp_path / "more.txt").write_text("\n")

    made, is_new = create(root, EnvRequest("toy", (wheel,), (str(tmp_path / "more.txt"),)), Progress())

    assert is_new
    question = "import tinylib, importlib.util as u; print(tinylib.ANSWER, u.find_spec('mosaic_sdk'))"
    python = environment_python(root, "toy")
    assert subprocess.run([python, "-c", question], capture_output=True, text=True).stdout == "42 None\n"
    assert (made.packages, made.files) == ([wheel], [str(tmp_path / "more.txt")])
    # The worker toy is another thing, and this environment is not one of a worker.
    assert environments_in(root.envs) == []
    assert Catalog(root).find("toy").environment.is_own

    again, is_new = create(root, EnvRequest("toy", (wheel,), (str(tmp_path / "more.txt"),)), Progress())
    assert (again, is_new) == (made, False)
    with pytest.raises(InstallFailed, match=r"exists already .*tinylib.*\. Replace it with: --replace"):
        create(root, EnvRequest("toy", files=(str(tmp_path / "more.txt"),)), Progress())

    remove(root, "toy", Progress())
    assert script_environments(root) == []


def test_a_failed_install_leaves_nothing_and_the_previous_one_works(root, wheel, tmp_path):
    create(root, EnvRequest("mine", (wheel,)), Progress())
    broken = str(tmp_path / "broken-1.0-py3-none-any.whl")
    (tmp_path / "broken-1.0-py3-none-any.whl").write_text("not a wheel")

    for name in ("mine", "other"):
        with pytest.raises(InstallFailed, match=f"The environment {name} was not created: "):
            create(root, EnvRequest(name, (broken,), replace=True), Progress())

    assert [env.name for env in script_environments(root)] == ["mine"]
    assert sorted(path.name for path in root.script_envs.iterdir()) == [".lock", "mine"]
    assert environment_python(root, "mine").exists()


@pytest.mark.parametrize(
    ("request_", "expected"),
    [
        (EnvRequest("../x", ("a",)), "'../x' is not a valid name for an environment"),
        (EnvRequest("a@b", ("a",)), "'a@b' is not a valid name"),
        (EnvRequest("a"), "Say what to install: --with PACKAGE, -r FILE or --from uv.lock"),
        (EnvRequest("a", ("--index-url=x",)), "uv would read it as an option"),
        (EnvRequest("a", ("",)), "The name of a package is empty"),
        (EnvRequest("a", files=("/nowhere.txt",)), "There is no file /nowhere.txt"),
        (EnvRequest("a", lock="/etc/passwd"), "/etc/passwd is not a uv.lock. For a requirements file use: -r"),
        (EnvRequest("a", lock="/etc"), "There is no file /etc/uv.lock"),
    ],
)
def test_a_bad_request_is_refused(root, request_, expected):
    with pytest.raises(InstallFailed, match=expected):
        create(root, request_, Progress())

    assert not root.script_envs.exists()


def test_a_uv_lock_without_its_project_file_is_refused(root, tmp_path):
    (tmp_path / "uv.lock").write_text("version = 1\n")

    with pytest.raises(InstallFailed, match=r"uv\.lock has no pyproject\.toml beside it"):
        create(root, EnvRequest("a", lock=str(tmp_path)), Progress())

    assert not root.script_envs.exists()


def test_a_uv_lock_is_installed_without_its_project(root, wheel, tmp_path):
    project = tmp_path / "project"
    project.mkdir()
    (project / "pyproject.toml").write_text(
        '[project]\nname = "mine"\nversion = "1"\nrequires-python = ">=3.9"\ndependencies = ["tinylib"]\n'
        f'[tool.uv.sources]\ntinylib = {{ path = "{wheel}" }}\n'
    )
    from mosaic.catalog.uv import find_uv

    subprocess.run([find_uv(), "lock", "--offline", "--quiet"], cwd=project, check=True)

    made, _ = create(root, EnvRequest("locked", lock=str(project)), Progress())

    assert made.lock == str(project / "uv.lock")
    code = "import tinylib; import mine"
    done = subprocess.run([made.python, "-c", code], capture_output=True, text=True)
    assert "No module named 'mine'" in done.stderr


def test_a_name_that_does_not_exist_gets_advice(root, make_environment):
    make_environment("cleanrl")

    with pytest.raises(MosaicError, match="chosen with: --env-of cleanrl"):
        find_environment(root, "cleanrl")
    with pytest.raises(MosaicError, match=r"There is none yet\. Create it with: mosaic env create sb3 --with PACKAGE"):
        find_environment(root, "sb3")
