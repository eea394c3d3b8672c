"""Puts the sources of the SDK and of the workers into the wheel: an installed MOSAIC makes environments from them."""

import shutil
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py

HERE = Path(__file__).parent
LEFT_OUT = shutil.ignore_patterns("__pycache__", "*.pyc", "build", "dist", "*.egg-info", ".*", "tests")


class BuildWithSources(build_py):
    def run(self):
        super().run()
        if not self.editable_mode:  # a checkout has them beside it
            for name in ("sdk", "workers"):
                target = Path(self.build_lib) / "mosaic" / "bundled" / name
                shutil.copytree(HERE / name, target, ignore=LEFT_OUT, dirs_exist_ok=True)


setup(cmdclass={"build_py": BuildWithSources})
