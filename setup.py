"""Builds the SDK and the workers, and puts their wheels into MOSAIC's: worker environments are made from them.

mosaic/bundled/
  sdk/                           pyproject.toml, wheel/mosaic_sdk-….whl, wheel/SHA256SUMS
  sdk/gym_gui/                   the same
  workers/<name>_worker/         the same, and requirements/ with the lock files
"""

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py

HERE = Path(__file__).parent
NOT_SOURCES = shutil.ignore_patterns("__pycache__", "*.pyc", "build", "dist", "*.egg-info", ".*", "tests")
BUILD = "import sys; from setuptools import build_meta; build_meta.build_wheel(sys.argv[1])"
# The same sources give the same wheel, byte for byte, whenever it is built.
EPOCH = {"SOURCE_DATE_EPOCH": "315532800"}


class BuildWithWorkers(build_py):
    def run(self):
        super().run()
        if not self.editable_mode:  # a checkout has them beside it
            bundle(Path(self.build_lib) / "mosaic" / "bundled")


def bundle(target):
    shutil.rmtree(target, ignore_errors=True)
    for folder in (HERE / "sdk", HERE / "sdk" / "gym_gui", *sorted((HERE / "workers").glob("*_worker"))):
        place = target / folder.relative_to(HERE)
        place.mkdir(parents=True)
        shutil.copy(folder / "pyproject.toml", place)
        if (folder / "requirements").is_dir():
            shutil.copytree(folder / "requirements", place / "requirements", ignore=NOT_SOURCES)
        build_wheel(folder, place / "wheel")
        write_sums(place / "wheel")


def build_wheel(folder, target):
    with tempfile.TemporaryDirectory() as work:  # a build leaves files behind
        source = Path(work) / folder.name
        shutil.copytree(folder, source, ignore=NOT_SOURCES)
        command = [sys.executable, "-c", BUILD, str(target.absolute())]
        subprocess.run(command, cwd=source, env={**os.environ, **EPOCH}, stdout=subprocess.DEVNULL, check=True)


def write_sums(folder):
    (wheel,) = folder.glob("*.whl")
    (folder / "SHA256SUMS").write_text(f"{hashlib.sha256(wheel.read_bytes()).hexdigest()}  {wheel.name}\n")


setup(cmdclass={"build_py": BuildWithWorkers})
