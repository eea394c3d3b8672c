"""The code that a node needs, as one zip file that is the same for the same code: for a run holder, tailer and SDK."""

import hashlib
import io
import zipfile
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path

import inotify_simple
import mosaic_sdk

PLATFORM = Path(__file__).parents[1]
FOLDERS = ("model", "wire", "hold", "tail")
_WHEN = (1980, 1, 1, 0, 0, 0)


@cache
def node_code() -> tuple[str, bytes]:
    """What a run needs."""
    # The only dependency of the tailer that is one file; grpcio and protobuf must be there.
    files = {**platform_files(FOLDERS), "inotify_simple.py": Path(inotify_simple.__file__).read_bytes()}
    return package(files)


def package(files: Mapping[str, bytes]) -> tuple[str, bytes]:
    """A name that contains the hash, and the zip file. Its top folders are importable: mosaic, mosaic_sdk."""
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in sorted(files.items()):
            archive.writestr(zipfile.ZipInfo(name, _WHEN), data, zipfile.ZIP_DEFLATED)
    whole = content.getvalue()
    return f"_ray_pkg_mosaic_{hashlib.sha256(whole).hexdigest()[:24]}.zip", whole


def platform_files(folders: Iterable[str]) -> dict[str, bytes]:
    """The SDK, and these folders of the platform."""
    found = {"mosaic/__init__.py": PLATFORM / "__init__.py", "mosaic/VERSION": PLATFORM / "VERSION"}
    for folder in folders:
        found |= _below(PLATFORM / folder, f"mosaic/{folder}")
    found |= _below(Path(mosaic_sdk.__file__).parent, "mosaic_sdk")
    return {name: path.read_bytes() for name, path in found.items()}


def _below(folder: Path, name: str) -> dict[str, Path]:
    paths = (path for path in folder.rglob("*") if path.is_file() and "__pycache__" not in path.parts)
    return {f"{name}/{path.relative_to(folder)}": path for path in paths}
