"""Where a run came from, as rows: from provenance.json in its folder. Its worker could have changed that file."""

from collections.abc import Mapping
from typing import Any

from mosaic.present.text import printable

Row = tuple[str, str]
MOST_BYTES = 4 * 1024 * 1024  # package lists of several environments


def provenance_rows(found: Mapping[str, Any]) -> list[Row]:
    """Versions, code, machine and seeds; only what is there."""
    python, hardware = _object(found, "python"), _object(found, "hardware")
    rows = [
        ("MOSAIC", _code(_object(found, "mosaic"))),
        ("Worker", _code(_object(found, "worker"))),
        ("Worker's source", _text(_object(found, "worker").get("source"))),
        ("Python", " ".join(filter(None, (_text(python.get("version")), _text(python.get("executable")))))),
        ("Command", _joined(found.get("argv"))),
        ("Machine", _text(found.get("host"))),
        ("CPU", _cpu(hardware)),
        ("Memory", _text(hardware.get("memory"))),
        ("GPUs", ", ".join(_text(gpu.get("model")) for gpu in _list(hardware.get("gpus")) if isinstance(gpu, Mapping))),
        ("Visible GPUs", _text(found.get("cuda_visible_devices"))),
        ("Kernel", _text(hardware.get("kernel"))),
        ("Seeds", ", ".join(f"{name}={value}" for name, value in _object(found, "seeds").items())),
    ]
    return [(name, printable(value)) for name, value in rows if value]


def packages(found: Mapping[str, Any]) -> list[str]:
    """`name==version` of every package in the worker's environment."""
    return [printable(str(package)) for package in _list(_object(found, "python").get("packages"))]


def _code(part: Mapping[str, Any]) -> str:
    git = _object(part, "git")
    commit = _text(git.get("commit"))[:12]
    changed = " with uncommitted changes" if git.get("dirty") else ""
    names = (_text(part.get("name")), _text(part.get("version")), f"commit {commit}{changed}" if commit else "")
    return " ".join(filter(None, names))


def _cpu(hardware: Mapping[str, Any]) -> str:
    cores, usable = hardware.get("cores"), hardware.get("cores_usable")
    many = f"{usable} of {cores} cores" if usable != cores else f"{cores} cores" if cores else ""
    return ", ".join(filter(None, (_text(hardware.get("cpu")), many)))


def _joined(value: object) -> str:
    return " ".join(map(str, _list(value)))


def _object(found: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    value = found.get(key)
    return value if isinstance(value, Mapping) else {}


def _list(value: object) -> list[Any]:
    return value if isinstance(value, list) else []


def _text(value: object) -> str:
    return "" if value is None else str(value)
