"""What a node needs to install a worker's environment: on its own disk, from the same sources and lock file as here.

It is unpacked there like an installed MOSAIC (setup.py), so the same `install` runs on the node (catalog/on_node.py):

    mosaic/bundled/sdk/              pyproject.toml, wheel/
    mosaic/bundled/sdk/gym_gui/      the same
    mosaic/bundled/workers/NAME/     the same, and requirements/ with the lock files; not for a worker from an index
    files/0.txt …                    the user's requirements files
    request.json                     what is to be installed, and below which folder
"""

import json
import sys
from dataclasses import asdict, replace
from pathlib import Path

from mosaic.catalog.install import InstallRequest, resolve
from mosaic.catalog.progress import Progress
from mosaic.catalog.sources import Source, entry_points, gym_gui_source, sdk_source
from mosaic.catalog.uv import InstallFailed, Uv, find_uv
from mosaic.catalog.wheels import Wheels
from mosaic.model.rundir import StateRoot

CODE = ("model", "catalog")  # the folders of the platform that `install` needs
REQUEST = "request.json"


def files_for_nodes(root: StateRoot, request: InstallRequest, at: str, progress: Progress) -> dict[str, bytes]:
    """What is sent beside the platform's own code. `at`: the nodes' state folder, which may begin with ~."""
    # Which Python and which build of torch suit this machine says nothing about the nodes.
    found, source = resolve(root, request)
    found = replace(found, python=request.python, torch=request.torch)
    source.extra(found.variant)  # refuses an unknown variant
    folders = [package for package in found.packages if package.startswith("/")]
    if folders:
        raise InstallFailed(f"{folders[0]} is on this machine only. Put it on an index, or name a requirement")
    uv = Uv(find_uv(), progress)
    files = {f"files/{n}.txt": Path(file).read_bytes() for n, file in enumerate(found.files)}
    asked = replace(found, asked=_name_there(source), files=tuple(files))
    files[REQUEST] = json.dumps({"root": at, "install": asdict(asked)}).encode()
    for place, each in (("sdk", sdk_source()), ("sdk/gym_gui", gym_gui_source())):
        files |= _bundled(place, each, uv)
    return files | (_bundled(f"workers/{source.folder.name}", source, uv) if source.folder else {})


def _name_there(source: Source) -> str:
    return min(entry_points(source.folder)) if source.folder else source.requirement


def _bundled(place: str, source: Source, uv: Uv) -> dict[str, bytes]:
    folder = source.folder
    if folder is None:
        return {}
    wheel = Wheels().of(folder, sys.executable, uv)
    found = {
        "pyproject.toml": (folder / "pyproject.toml").read_bytes(),
        f"wheel/{wheel.path.name}": wheel.path.read_bytes(),
        "wheel/SHA256SUMS": f"{wheel.sha256}  {wheel.path.name}\n".encode(),
    }
    locks = sorted((folder / "requirements").glob("*.txt"))
    found |= {f"requirements/{lock.name}": lock.read_bytes() for lock in locks}
    return {f"mosaic/bundled/{place}/{name}": data for name, data in found.items()}
