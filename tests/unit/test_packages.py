"""The packages of this repository: one version, complete metadata, and an SDK that only we can supply."""

import subprocess
import sys
import tomllib
from pathlib import Path

import mosaic_sdk
import pytest

import mosaic

REPO = Path(__file__).parents[2]
VERSION = (REPO / "VERSION").read_text().strip()
FOLDERS = [REPO, REPO / "sdk", REPO / "sdk/gym_gui", *sorted((REPO / "workers").glob("*_worker"))]
each_package = pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)


def pyproject(folder):
    return tomllib.loads((folder / "pyproject.toml").read_text())


@each_package
def test_every_package_takes_its_version_from_one_file(folder):
    project = pyproject(folder)
    source = project["tool"]["setuptools"]["dynamic"]["version"]
    file = folder / source.get("file", "src/mosaic_sdk/VERSION")

    assert "version" in project["project"]["dynamic"]
    assert "version" not in project["project"]
    assert file.resolve() == REPO / "VERSION"


def test_the_code_reports_that_version():
    assert mosaic.__version__ == mosaic_sdk.__version__ == VERSION


def test_the_platform_requires_exactly_our_sdk():
    label = (REPO / "sdk/setup.cfg").read_text().split("tag_build = ")[1].strip()
    needed = [name for name in pyproject(REPO)["project"]["dependencies"] if name.startswith("mosaic-sdk")]

    # Without the label anyone could upload a package that satisfies it.
    assert label.startswith("+")
    assert needed == [f"mosaic-sdk=={VERSION}{label}"]


@each_package
def test_every_package_has_complete_metadata(folder):
    project = pyproject(folder)["project"]

    assert project["authors"] == [{"name": "The MOSAIC developers"}]
    assert project["license"] == "MIT"
    assert (folder / "LICENSE").read_text() == (REPO / "LICENSE").read_text()
    assert {"description", "keywords", "classifiers", "requires-python"} <= set(project)


def test_without_the_sdk_the_command_explains_what_is_missing():
    code = f"import sys; sys.path[:0] = [{str(REPO / 'src')!r}]; from mosaic.__main__ import main; sys.exit(main())"

    done = subprocess.run([sys.executable, "-S", "-c", code, "--version"], capture_output=True, text=True)

    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("mosaic: The package mosaic-sdk is not installed.")
    assert "pip install -e . -e sdk" in done.stderr
    assert "Traceback" not in done.stderr
