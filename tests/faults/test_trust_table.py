"""The trust table of docs/reliability.md names everything that the platform reads."""

import re
from pathlib import Path

import mosaic_sdk
import pytest
from mosaic_sdk.names import TelemetryEnv, WorkerEnv
from raw_client import METHODS
from trust_table import PLACES, path_of, read_table

import mosaic
from mosaic.model import rundir
from mosaic.model.rundir import RunDir, StateRoot

TABLE = read_table()
NAMES = " ".join(row.name for row in TABLE)
ROOT = StateRoot("/r")
A_RUN = ROOT.run("runs", "01ARZ3NDEKTSV4RRFFQ69G5FAV")
SOURCES = [*Path(mosaic.__file__).parent.rglob("*.py"), *Path(mosaic_sdk.__file__).parent.rglob("*.py")]
IN_THE_ENVIRONMENT = re.compile(r"""environ(?:\.get\(|\[)\s*["']([A-Z][A-Z0-9_]+)["']""")
# A name in a drawing: a file with a suffix, or a folder. The areas are the places of the run folders.
DRAWN = re.compile(r"[a-z][\w-]*\.(?:jsonl|json|lock|log|db|sqlite|pid|token|addr|sock|ini)\b|\b[a-z_]+(?=/)")
NO_FILES = {"runs", "custom_scripts", "evals", "mosaic", "state", "local", "model"}


def paths_of(owner):
    kind = "run" if isinstance(owner, RunDir) else "root"
    return [f"{kind}.{name}" for name, value in vars(owner).items() if isinstance(value, Path)]


def test_every_row_has_four_cells_and_a_name_of_its_own():
    assert len(TABLE) > 40
    assert all(all(vars(row).values()) for row in TABLE)
    assert len({row.name for row in TABLE}) == len(TABLE)


def test_every_place_belongs_to_a_row():
    assert PLACES.keys() - {row.name for row in TABLE} == set()


@pytest.mark.parametrize(
    "place", [place for owner in (A_RUN, ROOT) for place in paths_of(owner) if place != "root.path"]
)
def test_every_path_of_the_state_root_has_a_row(place):
    """Add a row to docs/reliability.md and its place to trust_table.PLACES."""
    assert place in PLACES.values()


@pytest.mark.parametrize("drawing", [rundir.__doc__, RunDir.__doc__], ids=["the state root", "a run's folder"])
def test_every_name_in_the_drawings_has_a_row(drawing):
    drawn = set(DRAWN.findall(drawing)) - NO_FILES

    assert len(drawn) > 10
    assert {name for name in drawn if name not in NAMES} == set()


def test_every_environment_variable_that_is_read_has_a_row():
    read = {name for source in SOURCES for name in IN_THE_ENVIRONMENT.findall(source.read_text())}
    declared = {value for names in (WorkerEnv, TelemetryEnv) for key, value in vars(names).items() if key.isupper()}

    assert "MOSAIC_ADDRESS" in read
    assert {name for name in read | declared if f"`{name}`" not in NAMES} == set()


def test_every_call_has_a_row():
    assert {name for name in METHODS if name not in NAMES} == set()


def test_a_place_leads_to_its_file():
    assert path_of("run.exit", ROOT, A_RUN) == A_RUN.exit
    assert path_of("root.registry-wal", ROOT, A_RUN) == Path("/r/trainer/registry.db-wal")
    assert path_of("root.config_file", ROOT, A_RUN) == ROOT.config_file(A_RUN.run_id)
    assert path_of("run.nothing", ROOT, A_RUN) is None
