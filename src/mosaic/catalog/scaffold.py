"""A new worker from the template. It passes `mosaic worker test` before any line is changed."""

import keyword
import re
from pathlib import Path

from mosaic.model.errors import MosaicError
from mosaic.model.names import is_worker_name

TEMPLATE = Path(__file__).parent / "template"
SUFFIX = ".txt"  # so that no tool reads the template as code


def write_worker(name: str, folder: Path) -> Path:
    """Write `<folder>/<name>_worker/` and return its path. An existing folder is not changed."""
    name = name.removesuffix("_worker")
    if not re.fullmatch(r"[a-z][a-z0-9_]*", name) or keyword.iskeyword(name) or not is_worker_name(name):
        raise MosaicError(
            f"'{name}' is not a valid name for a worker. Use lowercase letters, digits and _, with a letter first."
        )
    target = folder.expanduser().resolve() / f"{name}_worker"
    if target.exists():
        raise MosaicError(f"{target} already exists. Choose another name, or another folder with --in.")
    for source in sorted(TEMPLATE.rglob(f"*{SUFFIX}")):
        _write(source, target / _filled(str(source.relative_to(TEMPLATE)), name).removesuffix(SUFFIX), name)
    return target


def _write(source: Path, path: Path, name: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(_filled(source.read_text(), name))


def _filled(text: str, name: str) -> str:
    """Replace NAME and Name in the template with the worker's name and its class name."""
    return text.replace("NAME", name).replace("Name", "".join(part.capitalize() for part in name.split("_")))
