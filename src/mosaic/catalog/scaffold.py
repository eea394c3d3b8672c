"""A new worker from the template: a complete one that passes `mosaic worker test` before a line of it was changed."""

import keyword
import re
from pathlib import Path

from mosaic.model.errors import MosaicError

TEMPLATE = Path(__file__).parent / "template"
SUFFIX = ".txt"  # so that no tool takes the template for code of ours


def write_worker(name: str, folder: Path) -> Path:
    """Write `<folder>/<name>_worker/` and give its path. What is there already is not touched."""
    name = name.removesuffix("_worker")
    if not re.fullmatch(r"[a-z][a-z0-9_]*", name) or keyword.iskeyword(name):
        raise MosaicError(f"'{name}' cannot name a worker. Use small letters, digits and _, with a letter first.")
    target = folder.expanduser().resolve() / f"{name}_worker"
    if target.exists():
        raise MosaicError(f"{target} is there already. Choose another name, or another folder with --in.")
    for source in sorted(TEMPLATE.rglob(f"*{SUFFIX}")):
        _write(source, target / _filled(str(source.relative_to(TEMPLATE)), name).removesuffix(SUFFIX), name)
    return target


def _write(source: Path, path: Path, name: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(_filled(source.read_text(), name))


def _filled(text: str, name: str) -> str:
    """NAME and Name in the template become the worker's name, as an identifier and as a class's name."""
    return text.replace("NAME", name).replace("Name", "".join(part.capitalize() for part in name.split("_")))
