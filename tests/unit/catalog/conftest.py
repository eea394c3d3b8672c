import sys
import venv

import pytest

from mosaic.catalog.installed import Installed
from mosaic.catalog.workers import Catalog
from mosaic.model.rundir import StateRoot


@pytest.fixture
def root(tmp_path):
    root = StateRoot(tmp_path / "state")
    root.make()
    return root


@pytest.fixture
def catalog(root):
    return Catalog(root)


@pytest.fixture
def make_environment(root):
    """Creates a real environment in envs/ and returns its site-packages."""

    def make(name):
        folder = root.envs / name
        venv.create(folder, symlinks=True, with_pip=False)
        return folder / "lib" / f"python3.{sys.version_info.minor}" / "site-packages"

    return make


@pytest.fixture
def install():
    """Installs a worker package into a site-packages folder, as an installer would."""

    def install(site, name, package, body="", version="1.2.3"):
        (site / package).mkdir()
        (site / package / "__init__.py").write_text(body or "raise RuntimeError('imported by the catalog')\n")
        info = site / f"{package}-{version}.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: {version}\n")
        if name:
            (info / "entry_points.txt").write_text(f"[mosaic.workers]\n{name} = {package}:get_worker_metadata\n")

    return install


@pytest.fixture
def came_from():
    """Records the source of an environment, as an install does."""

    def write(root, name, source):
        Installed(name, "", f"{name}-worker", "1", source, "3.11.7", "0.1.0", False, "").write(root.envs / name)

    return write
