"""Imports point one way: this names any that does not."""

import ast
import sys
from pathlib import Path

import pytest

REPO = Path(__file__).parents[1]
SOURCE = REPO / "src" / "mosaic"

LAYERS = {  # folder → folders it may import
    "model": set(),
    "wire": {"model"},
    "catalog": {"wire", "model"},
    "engines": {"model"},
    "registry": {"model"},
    "broadcast": {"wire", "model"},
    "submit": {"engines", "catalog", "wire", "model"},
    "ingest": {"registry", "broadcast", "wire", "model"},
    "dispatch": {"engines", "submit", "ingest", "registry", "broadcast", "catalog", "wire", "model"},
    "hold": {"model"},
    "tail": {"wire", "model"},
    "proxy": {"tail"},
    "daemon": {"engines", "submit", "dispatch", "ingest", "registry", "broadcast", "catalog", "wire", "model"},
    "imports": {"model"},
    "client": {"imports", "catalog", "wire", "model"},
    "stats": set(),
    "present": {"stats", "client", "catalog", "wire", "model"},
    "exports": {"present", "client", "catalog", "wire", "model"},
    "gui": {"present", "stats", "client", "catalog", "wire", "model"},
    "cli": {"engines", "gui", "exports", "imports", "present", "stats", "client", "catalog", "wire", "model"},
}
FILES = [path for path in SOURCE.rglob("*.py") if "_pb2" not in path.name]


def imports_of(path):
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_imports_point_one_way(path):
    folder = path.relative_to(SOURCE).parts[0]
    if folder.endswith(".py"):
        return
    allowed = LAYERS[folder] | {folder}

    for name in imports_of(path):
        parts = name.split(".")
        if parts[0] == "mosaic" and len(parts) > 1 and (SOURCE / parts[1]).is_dir():
            assert parts[1] in allowed, f"{path.relative_to(REPO)} imports {name}"


def test_the_model_imports_nothing_third_party():
    for path in (SOURCE / "model").glob("*.py"):
        for name in imports_of(path):
            assert name.split(".")[0] in sys.stdlib_module_names | {"mosaic"}, f"{path.name} imports {name}"


def test_the_holder_imports_only_the_standard_library():
    for path in (SOURCE / "hold").glob("*.py"):
        for name in imports_of(path):
            assert name.split(".")[0] in sys.stdlib_module_names | {"mosaic"}, f"{path.name} imports {name}"


def test_what_screens_share_knows_no_toolkit():
    for path in (SOURCE / "present").glob("*.py"):
        for name in imports_of(path):
            assert name.split(".")[0] not in ("rich", "PySide6", "pyqtgraph", "argparse"), f"{path.name} imports {name}"


def test_the_statistics_import_only_numpy():
    for path in (SOURCE / "stats").glob("*.py"):
        for name in imports_of(path):
            assert name.split(".")[0] in sys.stdlib_module_names | {"mosaic", "mosaic_sdk", "numpy"}, path.name


def test_only_its_verb_imports_the_window():
    for path in (SOURCE / "cli").glob("*.py"):
        if path.name != "gui.py":
            assert not any(name.startswith("mosaic.gui") for name in imports_of(path)), path.name


def test_workers_import_only_the_sdk():
    for path in (REPO / "workers").rglob("*.py"):
        for name in imports_of(path):
            assert name.split(".")[0] != "mosaic", f"{path.relative_to(REPO)} imports {name}"


def test_the_sdk_imports_only_the_standard_library():
    # sitecustomize: the injected one hands over to the one it stands before.
    allowed = sys.stdlib_module_names | {"mosaic_sdk", "sitecustomize"}
    for path in (REPO / "sdk" / "src").rglob("*.py"):
        for name in imports_of(path):
            # The frames and the client of language models are extras of their own.
            extra = {"fastlane": {"numpy"}, "llm": {"openai", "httpx2"}}.get(path.parent.name, set())
            assert name.split(".")[0] in allowed | extra, f"{path} imports {name}"


def test_only_its_own_folder_imports_what_asks_language_models():
    for path in (REPO / "sdk" / "src").rglob("*.py"):
        if path.parent.name != "llm":
            assert not any(name.startswith("mosaic_sdk.llm") for name in imports_of(path)), path.name
