"""Tests of the adversary: it must find each bug that is planted in a copy of MOSAIC."""

import re
import shutil
from dataclasses import dataclass
from pathlib import Path

import pytest
from adversary import CANCEL, FINISH, OUTSIDER, WORKER, Case
from adversary_session import ME, Session

import mosaic

pytestmark = [pytest.mark.slow, pytest.mark.timeout(400)]


@dataclass(frozen=True)
class Plant:
    """A bug: in this file, what matches the pattern is replaced. The case must report `found_as`."""

    name: str
    file: str
    good: str
    bad: str
    case: Case
    found_as: str


PLANTS = (
    Plant(
        "a read waits for the writer of a FIFO",
        "model/durable.py",
        r" \| os\.O_NONBLOCK",
        "",
        Case(0, 0, "run.exit", "FIFO", OUTSIDER, FINISH),
        "no answer within|not over after",
    ),
    Plant(
        "a writer ends with the exception of one run",
        "ingest/writers.py",
        r"( +)except MosaicError as error:\n +done\.fail\(error\)\n",
        r"\g<0>\1except Exception as error:\n\1    self._die(str(error), done)\n\1    return\n",
        Case(0, 0, "run.telemetry", "wrong type", WORKER, CANCEL),
        "bystander's lines are not stored",
    ),
    Plant(
        "rm leaves the folder",
        "daemon/trainer.py",
        r"shutil\.rmtree\(rundir\.path, ignore_errors=True\)",
        "pass",
        Case(0, 0, "run.provenance", "FIFO", WORKER, FINISH),
        "rm left",
    ),
)


@pytest.mark.parametrize("plant", PLANTS, ids=lambda plant: plant.name)
def test_the_adversary_finds_a_planted_bug(plant, tmp_path):
    session = Session(ME, str(plant_in_copy(plant, tmp_path)))

    # Three tries: a bystander's telemetry may have another writer than the victim's.
    said = []
    for verdict in session.verdicts([plant.case] * 3):
        said += verdict["violations"]
        if any(re.search(plant.found_as, violation) for violation in said):
            return
    pytest.fail(f"not found: {said}")


@pytest.mark.parametrize("plant", PLANTS, ids=lambda plant: plant.name)
def test_the_adversary_reports_nothing_without_a_planted_bug(plant):
    assert [verdict["violations"] for verdict in Session(ME).verdicts([plant.case])] == [[]]


def plant_in_copy(plant, tmp_path):
    source = Path(mosaic.__file__).parent
    shutil.copytree(source, tmp_path / "mosaic", ignore=shutil.ignore_patterns("__pycache__"))
    victim = tmp_path / "mosaic" / plant.file
    text, count = re.subn(plant.good, plant.bad, victim.read_text())
    assert count, f"{plant.file} has changed: adapt the planted bug"
    victim.write_text(text)
    return tmp_path
