"""The code that a node needs for a run: holder, tailer and SDK, as one zip file that is the same for the same code."""

import hashlib
import io
import zipfile
from functools import cache
from pathlib import Path

import inotify_simple
import mosaic_sdk

PLATFORM = Path(__file__).parents[1]
FOLDERS = ("model", "wire", "hold", "tail")
_WHEN = (1980, 1, 1, 0, 0, 0)


@cache
def node_code() -> tuple[str, bytes]:
    """A name that contains the hash, and the zip file. Its top folders are importable: mosaic, mosaic_sdk."""
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, path in _files():
            archive.writestr(zipfile.ZipInfo(name, _WHEN), path.read_bytes(), zipfile.ZIP_DEFLATED)
    data = content.getvalue()
    return f"_ray_pkg_mosaic_{hashlib.sha256(data).hexdigest()[:24]}.zip", data


def _files() -> list[tuple[str, Path]]:
    sdk = Path(mosaic_sdk.__file__).parent
    found = [("mosaic/__init__.py", PLATFORM / "__init__.py"), ("mosaic/VERSION", PLATFORM / "VERSION")]
    found += [pair for folder in FOLDERS for pair in _below(PLATFORM / folder, f"mosaic/{folder}")]
    found += _below(sdk, "mosaic_sdk")
    # The only dependency of the tailer that is one file; grpcio and protobuf must be there.
    found.append(("inotify_simple.py", Path(inotify_simple.__file__)))
    return sorted(found)


def _below(folder: Path, name: str) -> list[tuple[str, Path]]:
    paths = (path for path in folder.rglob("*") if path.is_file() and "__pycache__" not in path.parts)
    return [(f"{name}/{path.relative_to(folder)}", path) for path in paths]
